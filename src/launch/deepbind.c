/* Objects that a program loads with RTLD_DEEPBIND find their own libgomp before us: their regions run past
 * the grant. They are told once they are loaded.
 *
 * The loader looks at who calls dlopen (for $ORIGIN and the caller's own search path), so the wrapper leaves
 * by a tail call and cannot look afterwards: a thread of ours does, which waits for the loader's lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "link.h"
#include "real.h"
#include "waiting.h"

/* A load that fails brings nothing to look at. */
enum { kLooks = 100, kBetweenLooksNs = 5000000 };

struct search {
    unsigned known; /* objects that were there before */
    unsigned seen;
    char found[128];
};

/* Addresses in a dynamic section are absolute, or relative where the loader may not write to it. */
static const void* at(const struct dl_phdr_info* object, ElfW(Addr) address) {
    return (const void*)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

struct tables {
    const ElfW(Sym) * symbols;
    const char* names;
};

static bool any_opens_regions(const struct tables* tables, const ElfW(Rela) * entries, size_t bytes) {
    for (size_t i = 0; entries != NULL && i < bytes / sizeof *entries; ++i) {
        const ElfW(Sym)* symbol = &tables->symbols[ELF64_R_SYM(entries[i].r_info)];
        const char* name = tables->names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF &&
            (strncmp(name, "GOMP_parallel", 13) == 0 || strcmp(name, "GOMP_teams_reg") == 0))
            return true;
    }
    return false;
}

static bool opens_regions(const struct dl_phdr_info* object) {
    const ElfW(Dyn)* entry = NULL;
    for (int i = 0; i < object->dlpi_phnum; ++i)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn)*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    struct tables tables = {NULL, NULL};
    const ElfW(Rela)* calls = NULL, *others = NULL;
    size_t call_bytes = 0, other_bytes = 0;
    for (; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) tables.symbols = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) tables.names = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_JMPREL) calls = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_PLTRELSZ) call_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_RELA) others = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_RELASZ) other_bytes = entry->d_un.d_val;
    }
    if (tables.symbols == NULL || tables.names == NULL) return false;
    return any_opens_regions(&tables, calls, call_bytes) || any_opens_regions(&tables, others, other_bytes);
}

static int count(struct dl_phdr_info* object, size_t size, void* data) {
    (void)object;
    (void)size;
    ++((struct search*)data)->known;
    return 0;
}

/* New objects stand behind those that were there. */
static int look_at(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    struct search* search = data;
    if (search->seen++ >= search->known && *search->found == '\0' && opens_regions(object)) {
        const char* slash = strrchr(object->dlpi_name, '/');
        snprintf(search->found, sizeof search->found, "%s", slash == NULL ? object->dlpi_name : slash + 1);
    }
    return 0;
}

static void* look(void* data) {
    struct search search = *(struct search*)data;
    free(data);
    for (int i = 0; i < kLooks && search.seen <= search.known; ++i) {
        const struct timespec pause = {.tv_nsec = kBetweenLooksNs};
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
        /* Not before the loader is done with what it loads. */
        void* program = dlopen(NULL, RTLD_LAZY);
        if (program != NULL) dlclose(program);
        search.seen = 0;
        dl_iterate_phdr(look_at, &search);
    }
    if (*search.found != '\0')
        fprintf(stderr, "heddle: %s was loaded with RTLD_DEEPBIND: its OpenMP regions run unmanaged\n",
                search.found);
    return NULL;
}

/* Not inlined, so that nothing of it stands in the way of the tail call. */
__attribute__((noinline)) static void notice(void) {
    const int result = errno;
    struct search* search = calloc(1, sizeof *search);
    if (search != NULL) {
        dl_iterate_phdr(count, search);
        if (!waiting_start_uncounted(look, search)) free(search);
    }
    errno = result;
}

HEDDLE_EXPORT void* dlopen(const char* file, int mode) {
    REAL(dlopen)
    if ((mode & RTLD_DEEPBIND) != 0 && link_managed()) notice();
    return real(file, mode);
}
