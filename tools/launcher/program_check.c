#define _GNU_SOURCE
#include "program_check.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens what execvp(3) would run. */
static int open_program(const char* name) {
    if (strchr(name, '/') != NULL) return open(name, O_RDONLY | O_CLOEXEC);
    const char* folders = getenv("PATH");
    while (folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        char path[PATH_MAX];
        const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, name);
        if (length > 0 && written > 0 && written < (int)sizeof path && access(path, X_OK) == 0)
            return open(path, O_RDONLY | O_CLOEXEC);
        folders += length + (folders[length] == ':' ? 1 : 0);
    }
    return -1;
}

/* A 64-bit ELF executable without a program interpreter loads no libraries. */
static bool is_static(int fd) {
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof header, 0) != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) return false;
    for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
            sizeof segment)
            return false;
        if (segment.p_type == PT_INTERP) return false;
    }
    return true;
}

const char* program_unmanageable(const char* name) {
    const int fd = open_program(name);
    if (fd < 0) return NULL;
    struct stat status;
    const char* reason = NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
        const bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
        if (changes_user || changes_group) {
            reason = "it is setuid or setgid, and the system loads no library into it";
        } else if (is_static(fd)) {
            reason = "it is linked statically";
        }
    }
    close(fd);
    return reason;
}
