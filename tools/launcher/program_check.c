#define _GNU_SOURCE
#include "program_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Scripts whose interpreters are scripts: as far as the kernel follows them. */
enum { kMostInterpreters = 5, kFirstBytes = 256 };

static const char kUsualFolders[] = "/usr/local/bin:/bin:/usr/bin";

int program_find(const char* name, char path[PATH_MAX]) {
    if (strchr(name, '/') != NULL) return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : ENAMETOOLONG;
    int why = ENOENT;
    const char* folders = getenv("PATH");
    if (folders == NULL) folders = kUsualFolders;
    while (true) {
        const size_t length = strcspn(folders, ":");
        const int written = length == 0 ? snprintf(path, PATH_MAX, "./%s", name)
                                        : snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folders, name);
        struct stat status;
        if (written > 0 && written < PATH_MAX && stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
            if (access(path, X_OK) == 0) return 0;
            why = EACCES;
        }
        if (folders[length] == '\0') return why;
        folders += length + 1;
    }
}

/* The interpreter in a script's first line. */
static bool names_interpreter(const char* first, char path[PATH_MAX]) {
    if (strncmp(first, "#!", 2) != 0) return false;
    first += 2 + strspn(first + 2, " \t");
    return snprintf(path, PATH_MAX, "%.*s", (int)strcspn(first, " \t\n"), first) < PATH_MAX;
}

static const char kStatic[] = "it is linked statically";

/* A program without a program interpreter loads no libraries, and one with that of another C library cannot
 * load ours, which is made for glibc. NULL: neither. */
static const char* reason_of_loader(int fd, const Elf64_Ehdr* header) {
    if (header->e_phentsize != sizeof(Elf64_Phdr)) return NULL;
    for (Elf64_Half i = 0; i < header->e_phnum; ++i) {
        Elf64_Phdr segment;
        if (pread(fd, &segment, sizeof segment, (off_t)(header->e_phoff + i * sizeof segment)) !=
            sizeof segment)
            return NULL;
        if (segment.p_type != PT_INTERP) continue;
        char loader[PATH_MAX];
        if (segment.p_filesz >= sizeof loader ||
            pread(fd, loader, segment.p_filesz, (off_t)segment.p_offset) != (ssize_t)segment.p_filesz)
            return NULL;
        loader[segment.p_filesz] = '\0';
        const char* slash = strrchr(loader, '/');
        return strncmp(slash == NULL ? loader : slash + 1, "ld-linux", strlen("ld-linux")) == 0
                   ? NULL
                   : "it is made for another C library than glibc";
    }
    return kStatic;
}

/* The kernel tells such a program to load no libraries that its user chose. */
static bool gets_rights(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return false;
    const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
    const bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
    return changes_user || changes_group ||
           (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* `interpreter` is what a script names; empty otherwise. */
static const char* reason_of(int fd, char interpreter[PATH_MAX]) {
    union {
        char text[kFirstBytes + 1];
        Elf64_Ehdr header;
    } first;
    *interpreter = '\0';
    const ssize_t got = pread(fd, &first, kFirstBytes, 0);
    if (got <= 0) return NULL;
    first.text[got] = '\0';
    if (names_interpreter(first.text, interpreter)) return NULL;
    if (got < (ssize_t)sizeof first.header || memcmp(first.header.e_ident, ELFMAG, SELFMAG) != 0) return NULL;
    if (gets_rights(fd))
        return "it is setuid or setgid or has capabilities, and the system loads no library into it";
    const Elf64_Half machine =
#if defined __x86_64__
        EM_X86_64;
#elif defined __aarch64__
        EM_AARCH64;
#else
        first.header.e_machine;
#endif
    if (first.header.e_ident[EI_CLASS] != ELFCLASS64 || first.header.e_machine != machine)
        return "it is no program of this system's own kind, such as a 32-bit one";
    return reason_of_loader(fd, &first.header);
}

const char* program_unmanageable(const char* path, bool* children) {
    char next[PATH_MAX], interpreter[PATH_MAX];
    const char* reason = NULL;
    for (int i = 0; i < kMostInterpreters && reason == NULL && *path != '\0'; ++i) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe by its name has no end */
        if (fd < 0) break;
        reason = reason_of(fd, interpreter);
        close(fd);
        memcpy(next, interpreter, sizeof next);
        path = next;
    }
    *children = reason == kStatic;
    return reason;
}
