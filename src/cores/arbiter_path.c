#define _GNU_SOURCE
#include "cores/arbiter_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/session_folder.h"

/* The folder must be a real folder of this user that nobody else can write to: its owner decides who listens
 * there. */
static const char* folder_problem(const char* folder) {
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return strerror(errno);
    struct stat status;
    if (lstat(folder, &status) != 0) return strerror(errno);
    if (!S_ISDIR(status.st_mode)) return "it is not a folder";
    if (status.st_uid != geteuid()) return "it belongs to somebody else";
    if ((status.st_mode & 022) != 0) return "others may write to it";
    return NULL;
}

static bool names_a_path(const char* named) {
    return named != NULL && *named != '\0' && strcmp(named, "auto") != 0 && strcmp(named, "off") != 0;
}

bool heddle_arbiter_named_well(char problem[HEDDLE_PROBLEM_BYTES]) {
    const char* named = secure_getenv("HEDDLE_ARBITER");
    if (!names_a_path(named)) return true;
    if (*named != '/') {
        snprintf(problem, HEDDLE_PROBLEM_BYTES,
                 "HEDDLE_ARBITER is '%.100s'; it has to be auto, off or an absolute path", named);
        return false;
    }
    if (strlen(named) >= HEDDLE_SOCKET_PATH_BYTES) {
        snprintf(problem, HEDDLE_PROBLEM_BYTES,
                 "the path in HEDDLE_ARBITER has %zu characters, and the system allows %d for a socket: "
                 "%.100s...",
                 strlen(named), HEDDLE_SOCKET_PATH_BYTES - 1, named);
        return false;
    }
    return true;
}

enum heddle_arbiter_place heddle_arbiter_path(char path[HEDDLE_SOCKET_PATH_BYTES],
                                              char problem[HEDDLE_PROBLEM_BYTES]) {
    const char* named = secure_getenv("HEDDLE_ARBITER");
    if (named != NULL && strcmp(named, "off") == 0) return HEDDLE_ARBITER_OFF;
    if (!heddle_arbiter_named_well(problem)) return HEDDLE_ARBITER_IMPOSSIBLE;
    if (names_a_path(named)) {
        memcpy(path, named, strlen(named) + 1);
        return HEDDLE_ARBITER_EXPLICIT;
    }
    if (access(HEDDLE_SYSTEM_SOCKET, F_OK) == 0) {
        memcpy(path, HEDDLE_SYSTEM_SOCKET, sizeof HEDDLE_SYSTEM_SOCKET);
        return HEDDLE_ARBITER_SYSTEM;
    }
    char folder[HEDDLE_SOCKET_PATH_BYTES], usual[HEDDLE_SESSION_FOLDER_BYTES];
    const char* runtime = heddle_session_folder(usual);
    int length = runtime != NULL ? snprintf(folder, sizeof folder, "%s/heddle", runtime)
                                 : snprintf(folder, sizeof folder, "/tmp/heddle-%u", geteuid());
    if (length >= (int)sizeof folder - (int)sizeof "/arbiter.sock") {
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "XDG_RUNTIME_DIR is too long for a socket: %.100s...",
                 runtime);
        return HEDDLE_ARBITER_IMPOSSIBLE;
    }
    const char* why = folder_problem(folder);
    if (why != NULL) {
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "the arbiter's folder %s cannot be used: %s", folder, why);
        return HEDDLE_ARBITER_IMPOSSIBLE;
    }
    memcpy(path, folder, (size_t)length);
    memcpy(path + length, "/arbiter.sock", sizeof "/arbiter.sock");
    return HEDDLE_ARBITER_USER;
}
