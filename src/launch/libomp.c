/* LLVM's libomp under management: a tool of OpenMP's tools interface (OMPT, OpenMP 5.0 section 4).
 *
 * libomp calls parallel_begin before it reads how many threads the encountering task wants, so that a number
 * set there decides the region. The number stays set when the region ends, because parallel_end comes too
 * early to undo it in a region of one thread; the program is told its own number instead, and the next region
 * starts from that. A num_threads clause is stronger and is left alone. libomp yields while it waits, so its
 * waiting needs no change.
 *
 * The few declarations are written out here, because the header that has them comes with clang alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "libomp.h"
#include "link.h"
#include "process.h"
#include "real.h"
#include "region.h"

typedef union {
    uint64_t value;
    void* pointer;
} tool_data;
typedef void (*interface_function)(void);
typedef interface_function (*lookup_function)(const char* name);
typedef int (*set_callback_function)(int event, interface_function callback);

struct start_tool_result {
    int (*initialize)(lookup_function lookup, int device, tool_data* data);
    void (*finalize)(tool_data* data);
    tool_data data;
};

enum { kParallelBegin = 3, kParallelEnd = 4, kLeague = 0x40000000 };

/* Of the libomp that called us; set once, before its first region. */
static struct {
    void (*set_num_threads)(int);
    int (*max_threads)(void);
    int (*thread_limit)(void);
    int (*level)(void);
} runtime;

/* The number of threads that the program wants for regions of this thread, and the one that we set in its
 * place; 0: ours is not set. */
static __thread int own_number;
static __thread int set_number;

int libomp_own_number(int number) {
    return set_number != 0 && number == set_number && !region_inside() ? own_number : number;
}

void libomp_number_was_set(void) {
    set_number = 0;
}

static void parallel_begin(tool_data* task, const void* frame, tool_data* parallel, unsigned requested,
                           int flags, const void* code) {
    (void)task;
    (void)frame;
    (void)parallel;
    (void)code;
    if (region_inside() || (flags & kLeague) != 0 || runtime.level() > 0) return region_begin_unnoticed();
    const int number = runtime.max_threads();
    const int own = libomp_own_number(number);
    const bool by_clause = requested != (unsigned)number;
    const int limit = runtime.thread_limit();
    const int asked = by_clause ? (int)requested : own;
    const struct region region = {.wanted = (unsigned)(asked < limit ? asked : limit),
                                  .may_change = !by_clause};
    const unsigned threads = region_begin(&region);
    if (by_clause || (int)threads == number) return;
    own_number = own;
    set_number = (int)threads;
    runtime.set_num_threads(set_number);
}

static void parallel_end(tool_data* parallel, tool_data* task, int flags, const void* code) {
    (void)parallel;
    (void)task;
    (void)flags;
    (void)code;
    region_end();
}

static int initialize(lookup_function lookup, int device, tool_data* data) {
    (void)device;
    (void)data;
    Dl_info where;
    void* handle =
        dladdr((void*)lookup, &where) != 0 ? dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const set_callback_function set_callback = (set_callback_function)lookup("ompt_set_callback");
    if (handle == NULL || set_callback == NULL) return 0;
    *(void**)&runtime.set_num_threads = dlsym(handle, "omp_set_num_threads");
    *(void**)&runtime.max_threads = dlsym(handle, "omp_get_max_threads");
    *(void**)&runtime.thread_limit = dlsym(handle, "omp_get_thread_limit");
    *(void**)&runtime.level = dlsym(handle, "omp_get_level");
    if (runtime.set_num_threads == NULL || runtime.max_threads == NULL || runtime.thread_limit == NULL ||
        runtime.level == NULL)
        return 0;
    set_callback(kParallelBegin, (interface_function)parallel_begin);
    set_callback(kParallelEnd, (interface_function)parallel_end);
    return 1;
}

static void finalize(tool_data* data) {
    (void)data;
}

/* A program that names a tool of its own, or has one linked or preloaded, gets that one, and runs with the
 * number of threads it asks for. */
HEDDLE_EXPORT struct start_tool_result* ompt_start_tool(unsigned version, const char* runtime_version) {
    REAL(ompt_start_tool)
    static struct start_tool_result result = {initialize, finalize, {0}};
    struct start_tool_result* const programs = real == NULL ? NULL : real(version, runtime_version);
    if (programs != NULL) return programs;
    process_join();
    const char* others = getenv("OMP_TOOL_LIBRARIES");
    if (!link_managed() || (others != NULL && *others != '\0')) return NULL;
    return &result;
}
