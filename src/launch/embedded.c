#define _GNU_SOURCE
#include "embedded.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "object.h"

enum { kMostObjects = 64 };

/* What libgomp begins each of its messages with, in every version and also where symbols were stripped. */
static const char kMark[] = "\nlibgomp: ";

struct object {
    const void* start;
    bool has_mark;
};

/* By hand: memmem() is AddressSanitizer's in programs that have it, and reports what lies between variables.
 * Source: R. N. Horspool, "Practical fast searching in strings" (1980). */
static bool has_mark(const unsigned char* from, size_t size) {
    enum { kLength = sizeof kMark - 1 };
    size_t skip[256];
    for (size_t byte = 0; byte < 256; ++byte) skip[byte] = kLength;
    for (size_t i = 0; i < kLength - 1; ++i) skip[(unsigned char)kMark[i]] = kLength - 1 - i;
    for (size_t at = 0; at + kLength <= size; at += skip[from[at + kLength - 1]]) {
        size_t left = kLength;
        while (left > 0 && from[at + left - 1] == (unsigned char)kMark[left - 1]) --left;
        if (left == 0) return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info* info, size_t size, void* data) {
    (void)size;
    struct object* object = data;
    const char* start = NULL;
    for (int i = 0; i < info->dlpi_phnum && start == NULL; ++i)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            start = (const char*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (start != object->start) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
        /* Data that is only read; linkers of today keep it apart from code. */
        if (segment->p_type == PT_LOAD && segment->p_flags == PF_R)
            object->has_mark |=
                has_mark((const unsigned char*)(info->dlpi_addr + segment->p_vaddr), segment->p_filesz);
    }
    return 1;
}

/* True for the first caller that names this object. A full table has room for no more: those go untold. */
static bool is_new(const void* start) {
    static _Atomic(const void*) known[kMostObjects];
    for (int i = 0; i < kMostObjects; ++i) {
        const void* there = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (there == NULL && atomic_compare_exchange_strong(&known[i], &there, start)) return true;
        if (there == start) return false;
    }
    return false;
}

void embedded_noticed(const void* caller) {
    static _Atomic bool told;
    const int result = errno;
    struct dl_find_object found;
    if (!atomic_load_explicit(&told, memory_order_relaxed) &&
        _dl_find_object((void*)(size_t)caller, &found) == 0 && is_new(found.dlfo_map_start)) {
        const char* name = object_name_at(caller);
        struct object object = {.start = found.dlfo_map_start};
        /* A libgomp that nobody called yet by us is one all the same, and no embedded one. */
        if (strncmp(name, "libgomp", 7) != 0) dl_iterate_phdr(look_at, &object);
        if (object.has_mark && !atomic_exchange(&told, true))
            fprintf(stderr, "heddle: libgomp is linked into %s: its OpenMP regions run unmanaged\n",
                    *name != '\0' ? name : program_invocation_short_name);
    }
    errno = result;
}
