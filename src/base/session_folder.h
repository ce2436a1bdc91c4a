/* Where what a user's processes share lies: sockets, while the user has a session on this machine. */
#ifndef HEDDLE_BASE_SESSION_FOLDER_H
#define HEDDLE_BASE_SESSION_FOLDER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEDDLE_SESSION_FOLDER_BYTES = 32 };

/* XDG_RUNTIME_DIR, or else the usual one, written into `usual`; NULL where there is neither. A job may have
 * the variable of another machine, where that folder is; and a service has none, whose user may have
 * sessions, with which it is to share. Any thread. */
static inline const char* heddle_session_folder(char usual[HEDDLE_SESSION_FOLDER_BYTES]) {
    const char* const named = secure_getenv("XDG_RUNTIME_DIR");
    if (named != NULL && *named == '/' && (access(named, F_OK) == 0 || errno != ENOENT)) return named;
    struct stat status;
    snprintf(usual, HEDDLE_SESSION_FOLDER_BYTES, "/run/user/%u", geteuid());
    return lstat(usual, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? usual : NULL;
}

#endif
