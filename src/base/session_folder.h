/* Where what a user's processes share lies: sockets, while the user has a session on this machine. */
#ifndef HEDDLE_BASE_SESSION_FOLDER_H
#define HEDDLE_BASE_SESSION_FOLDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEDDLE_SESSION_FOLDER_BYTES = 32 };

/* It is not there, or not this user's. What is no folder is a mistake that is told where it is used. */
static inline bool heddle_is_not_ours(const char* folder) {
    struct stat status;
    if (stat(folder, &status) != 0) return errno == ENOENT || errno == EACCES;
    return S_ISDIR(status.st_mode) && status.st_uid != geteuid();
}

/* XDG_RUNTIME_DIR, or else the usual one, written into `usual`; NULL where there is neither. A job may have
 * the variable of another machine, where that folder is; who has become another user, that of the one before;
 * and a service has none, whose user may have sessions, with which it is to share. Any thread. */
static inline const char* heddle_session_folder(char usual[HEDDLE_SESSION_FOLDER_BYTES]) {
    const char* const named = secure_getenv("XDG_RUNTIME_DIR");
    if (named != NULL && *named == '/' && !heddle_is_not_ours(named)) return named;
    snprintf(usual, HEDDLE_SESSION_FOLDER_BYTES, "/run/user/%u", geteuid());
    return heddle_is_not_ours(usual) ? NULL : usual;
}

#endif
