#define _GNU_SOURCE
#include "libgomp.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "export.h"
#include "follow.h"
#include "libgomp_entries.h"
#include "libomp.h"
#include "link.h"
#include "region.h"
#include "waiting.h"

enum { kMaxLibraries = 64, kMaxCallers = 256 };

/* One loaded libgomp. Programs have one; Python wheels bring copies of their own. */
struct library {
    void* entries[kEntryCount];
    int (*max_threads)(void);
    int (*num_procs)(void);
    void (*set_num_threads)(int);
    int (*thread_limit)(void);
    int (*level)(void);
    bool is_libomp;   /* it has libgomp's entries too; libomp.c manages it */
    const void* base; /* any address inside, for libgomp_contains */
    const void* end;
    _Atomic uint32_t parked_for; /* the `parked_word` that a team was last parked for */
};

/* A loaded object that calls libgomp, by its address range, and the libgomp that its calls belong to. */
struct caller {
    const char* from;
    const char* to;
    struct library* library;
    bool trusts_max_threads; /* sizes nothing by omp_get_max_threads but the next region */
    bool has_thread_data;    /* its threads may hold threadprivate data: their number is its own */
};

/* Tables only grow, under `growing`; readers see `*_count` entries, each complete before it is counted. */
static struct library libraries[kMaxLibraries];
static _Atomic unsigned library_count;
static struct caller callers[kMaxCallers];
static _Atomic unsigned caller_count;
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static const char* const kEntryNames[kEntryCount] = {
#define ENTRY(name) #name,
    LIBGOMP_ENTRIES(ENTRY)
#undef ENTRY
};

struct range {
    const void* inside;
    bool has_thread_data;
    const char* from;
    const char* to;
};

static int find_range(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    struct range* range = data;
    const char* low = (const char*)UINTPTR_MAX;
    const char* high = NULL;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD) continue;
        const char* start = (const char*)(object->dlpi_addr + segment->p_vaddr);
        if (start < low) low = start;
        if (start + segment->p_memsz > high) high = start + segment->p_memsz;
    }
    if ((const char*)range->inside < low || (const char*)range->inside >= high) return 0;
    for (int i = 0; i < object->dlpi_phnum; ++i)
        range->has_thread_data |= object->dlpi_phdr[i].p_type == PT_TLS;
    range->from = low;
    range->to = high;
    return 1;
}

static struct library* library_of(void* entry_parallel, void* handle) {
    const unsigned known = atomic_load(&library_count);
    for (unsigned i = 0; i < known; ++i)
        if (libraries[i].entries[kEntry_GOMP_parallel] == entry_parallel) return &libraries[i];
    if (known == kMaxLibraries) return NULL;
    struct library* library = &libraries[known];
    for (int i = 0; i < kEntryCount; ++i) library->entries[i] = dlsym(handle, kEntryNames[i]);
    *(void**)&library->max_threads = dlsym(handle, "omp_get_max_threads");
    *(void**)&library->num_procs = dlsym(handle, "omp_get_num_procs");
    *(void**)&library->set_num_threads = dlsym(handle, "omp_set_num_threads");
    *(void**)&library->thread_limit = dlsym(handle, "omp_get_thread_limit");
    *(void**)&library->level = dlsym(handle, "omp_get_level");
    if (library->max_threads == NULL || library->num_procs == NULL || library->set_num_threads == NULL ||
        library->thread_limit == NULL || library->level == NULL)
        return NULL;
    library->is_libomp = dlsym(handle, "__kmpc_fork_call") != NULL;
    struct range range = {.inside = entry_parallel};
    dl_iterate_phdr(find_range, &range);
    library->base = range.from;
    library->end = range.to;
    atomic_store(&library_count, known + 1);
    return library;
}

/* Which libgomp would `address` have called, had we not come between? The first one that the program loaded
 * for all, or, for an object that came by dlopen, the one among its own dependencies. The handle is kept: an
 * object that has called us stays loaded, so that no other comes to its addresses. */
static struct caller find_caller(const void* address) {
    struct range range = {.inside = address};
    dl_iterate_phdr(find_range, &range);
    struct caller caller = {.from = range.from, .to = range.to};
    Dl_info where;
    struct link_map* map = NULL;
    void* handle = NULL;
    if (dladdr1(address, &where, (void**)&map, RTLD_DL_LINKMAP) != 0 && map != NULL) {
        if (map->l_name[0] != '\0') handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
        caller.trusts_max_threads =
            strstr(map->l_name, "openblas") != NULL || strstr(map->l_name, "libblas") != NULL;
    }
    caller.has_thread_data = range.has_thread_data && !caller.trusts_max_threads;
    void* parallel = dlsym(RTLD_NEXT, "GOMP_parallel");
    if (parallel != NULL) {
        handle = RTLD_NEXT;
    } else if (handle != NULL) {
        parallel = dlsym(handle, "GOMP_parallel");
    }
    if (parallel != NULL) caller.library = library_of(parallel, handle);
    return caller;
}

static const struct caller* known_caller(const char* address, unsigned from, unsigned count) {
    for (unsigned i = from; i < count; ++i)
        if (address >= callers[i].from && address < callers[i].to) return &callers[i];
    return NULL;
}

static struct caller caller_at(const void* address) {
    const unsigned count = atomic_load_explicit(&caller_count, memory_order_acquire);
    const struct caller* known = known_caller(address, 0, count);
    if (known != NULL) return *known;
    pthread_mutex_lock(&growing);
    const unsigned now = atomic_load(&caller_count);
    known = known_caller(address, count, now);
    const struct caller found = known != NULL ? *known : find_caller(address);
    /* What finds the table full is looked for at each of its calls: slower, never wrong. */
    if (known == NULL && now < kMaxCallers) {
        callers[now] = found;
        atomic_store_explicit(&caller_count, now + 1, memory_order_release);
    }
    pthread_mutex_unlock(&growing);
    return found;
}

bool libgomp_contains(const void* address) {
    const unsigned count = atomic_load(&library_count);
    for (unsigned i = 0; i < count; ++i)
        if (address >= libraries[i].base && address < libraries[i].end) return true;
    Dl_info where;
    return count == 0 && dladdr(address, &where) != 0 && strstr(where.dli_fname, "libgomp") != NULL;
}

/* Where there is none the program cannot go on: its loader knew more than we do. */
static struct library* found(struct library* library) {
    if (library != NULL) return library;
    fprintf(stderr,
            "heddle: %s: a library of it uses a libgomp that is not found, as it names none among its "
            "dependencies, or there are more than %d: run it without heddle\n",
            program_invocation_short_name, kMaxLibraries);
    abort();
}

#define CALLER() caller_at(__builtin_return_address(0))
#define REAL(library, name, type) ((type)found(library)->entries[kEntry_##name])

/* Odd: waiting is to be polite now, also in a libgomp that opens its first region later. The helper thread
 * writes. The threads of a parked team sleep on it until it leaves the value they were parked for: a region
 * that begins as politeness ends may park a team too late, for a value that is over, and that team ends. */
static _Atomic uint32_t parked_word;

struct parking {
    struct library* library;
    unsigned threads;
    uint32_t word;
};

static void sleep_until_released(void* data) {
    const struct parking* parking = data;
    waiting_is_ours();
    while (atomic_load(&parked_word) == parking->word)
        syscall(SYS_futex, &parked_word, FUTEX_WAIT_PRIVATE, parking->word, NULL, NULL, 0);
}

static void* park(void* data) {
    struct parking parking = *(struct parking*)data;
    free(data);
    REAL(parking.library, GOMP_parallel, void (*)(void (*)(void*), void*, unsigned, unsigned))
    (sleep_until_released, &parking, parking.threads, 0);
    return NULL; /* libgomp ends the pool of a thread that ends, and stops counting it */
}

static void park_team(struct library* library, uint32_t word) {
    uint32_t last = atomic_load(&library->parked_for);
    if (library->is_libomp || (int32_t)(word - last) <= 0 ||
        !atomic_compare_exchange_strong(&library->parked_for, &last, word))
        return;
    struct parking* parking = malloc(sizeof *parking);
    /* libgomp counts the team's threads and the parked ones but one; above its CPUs it spins shortly. So many
     * are enough for the smallest team that has anybody to wait for. */
    const int enough = library->num_procs() < 2 ? 2 : library->num_procs();
    if (parking != NULL) *parking = (struct parking){library, (unsigned)enough, word};
    if (parking != NULL && waiting_start_uncounted(park, parking)) return;
    free(parking);
    atomic_compare_exchange_strong(&library->parked_for, &word, last);
}

/* Chooses the threads of a region that begins with its outlined function. `asked` is its own number, 0 for
 * none. */
static unsigned enter_region(const struct caller* caller, void (*body)(void*), bool is_loop, unsigned asked) {
    struct library* library = found(caller->library);
    if (library->is_libomp || asked == 1 || region_inside() || library->level() > 0) {
        region_begin_unnoticed();
        return asked;
    }
    const int wanted = asked != 0 ? (int)asked : library->max_threads();
    const int limit = library->thread_limit();
    const struct region region = {.wanted = (unsigned)(wanted < limit ? wanted : limit),
                                  .may_change = asked == 0 && !caller->has_thread_data,
                                  .body = (const void*)(size_t)body,
                                  .is_loop = is_loop};
    const unsigned threads = region_begin(&region);
    const uint32_t word = atomic_load_explicit(&parked_word, memory_order_relaxed);
    if (word % 2 != 0) park_team(library, word);
    return asked != 0 || (int)threads == wanted ? asked : threads;
}

/* An entry that runs the whole region: pass the chosen number of threads on in place of the one asked for. */
#define WHOLE_REGION(result, name, is_loop, parameters, types, arguments)          \
    HEDDLE_EXPORT result name parameters {                                         \
        const struct caller caller = CALLER();                                     \
        struct library* library = caller.library;                                  \
        num_threads = enter_region(&caller, fn, is_loop, num_threads);             \
        WHOLE_REGION_CALL_##result(REAL(library, name, result(*) types) arguments) \
    }
#define WHOLE_REGION_CALL_void(call) \
    call;                            \
    region_end();
#define WHOLE_REGION_CALL_unsigned(call) \
    const unsigned value = call;         \
    region_end();                        \
    return value;

/* An entry of the older kind: the region runs on until GOMP_parallel_end. */
#define REGION_START(name, is_loop, parameters, types, arguments)      \
    HEDDLE_EXPORT void name parameters {                               \
        const struct caller caller = CALLER();                         \
        struct library* library = caller.library;                      \
        num_threads = enter_region(&caller, fn, is_loop, num_threads); \
        REAL(library, name, void(*) types) arguments;                  \
    }

#define BODY void (*fn)(void*), void *data, unsigned num_threads
#define BODY_TYPES void (*)(void*), void*, unsigned
#define LOOP BODY, long start, long end, long incr
#define LOOP_TYPES BODY_TYPES, long, long, long

WHOLE_REGION(void, GOMP_parallel, false, (BODY, unsigned flags), (BODY_TYPES, unsigned),
             (fn, data, num_threads, flags))
WHOLE_REGION(unsigned, GOMP_parallel_reductions, false, (BODY, unsigned flags), (BODY_TYPES, unsigned),
             (fn, data, num_threads, flags))
WHOLE_REGION(void, GOMP_parallel_sections, false, (BODY, unsigned count, unsigned flags),
             (BODY_TYPES, unsigned, unsigned), (fn, data, num_threads, count, flags))

#define CHUNKED_LOOP(name)                                                                           \
    WHOLE_REGION(void, name, true, (LOOP, long chunk, unsigned flags), (LOOP_TYPES, long, unsigned), \
                 (fn, data, num_threads, start, end, incr, chunk, flags))
#define PLAIN_LOOP(name)                                                           \
    WHOLE_REGION(void, name, true, (LOOP, unsigned flags), (LOOP_TYPES, unsigned), \
                 (fn, data, num_threads, start, end, incr, flags))
#define CHUNKED_LOOP_START(name)                                     \
    REGION_START(name, true, (LOOP, long chunk), (LOOP_TYPES, long), \
                 (fn, data, num_threads, start, end, incr, chunk))

CHUNKED_LOOP(GOMP_parallel_loop_static)
CHUNKED_LOOP(GOMP_parallel_loop_dynamic)
CHUNKED_LOOP(GOMP_parallel_loop_guided)
CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PLAIN_LOOP(GOMP_parallel_loop_runtime)
PLAIN_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
PLAIN_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

REGION_START(GOMP_parallel_start, false, (BODY), (BODY_TYPES), (fn, data, num_threads))
REGION_START(GOMP_parallel_sections_start, false, (BODY, unsigned count), (BODY_TYPES, unsigned),
             (fn, data, num_threads, count))
CHUNKED_LOOP_START(GOMP_parallel_loop_static_start)
CHUNKED_LOOP_START(GOMP_parallel_loop_dynamic_start)
CHUNKED_LOOP_START(GOMP_parallel_loop_guided_start)
REGION_START(GOMP_parallel_loop_runtime_start, true, (LOOP), (LOOP_TYPES),
             (fn, data, num_threads, start, end, incr))

HEDDLE_EXPORT void GOMP_parallel_end(void) {
    REAL(CALLER().library, GOMP_parallel_end, void (*)(void))();
    region_end();
}

/* A league of teams on the host runs its teams one after the other, each a region of its own inside. */
HEDDLE_EXPORT void GOMP_teams_reg(void (*fn)(void*), void* data, unsigned teams, unsigned thread_limit,
                                  unsigned flags) {
    REAL(CALLER().library, GOMP_teams_reg, void (*)(void (*)(void*), void*, unsigned, unsigned, unsigned))
    (fn, data, teams, thread_limit, flags);
}

#define MEETING(result, name, parameters, types, arguments)             \
    HEDDLE_EXPORT result name parameters {                              \
        region_meets();                                                 \
        return REAL(CALLER().library, name, result(*) types) arguments; \
    }
MEETING(void, GOMP_barrier, (void), (void), ())
MEETING(void, GOMP_loop_end, (void), (void), ())
MEETING(void, GOMP_sections_end, (void), (void), ())
MEETING(void, GOMP_ordered_start, (void), (void), ())
MEETING(bool, GOMP_barrier_cancel, (void), (void), ())
MEETING(bool, GOMP_loop_end_cancel, (void), (void), ())
MEETING(bool, GOMP_sections_end_cancel, (void), (void), ())
MEETING(void, GOMP_doacross_post, (long* counts), (long*), (counts))
MEETING(void, GOMP_doacross_ull_post, (unsigned long long* counts), (unsigned long long*), (counts))

/* OpenBLAS sizes each region by this call and asks for that number explicitly, so it follows its grant only
 * through it. Other programs size arrays by it once and index them by thread for ever: they get the true
 * answer. */
HEDDLE_EXPORT int omp_get_max_threads(void) {
    const struct caller caller = CALLER();
    if (caller.library == NULL) return 1;
    const int most = libomp_own_number(caller.library->max_threads());
    if (!caller.trusts_max_threads || !link_managed() || region_inside()) return most;
    const unsigned cpus = follow_cpus();
    if (cpus == 0) return 1;
    return (int)cpus < most ? (int)cpus : most;
}

HEDDLE_EXPORT void omp_set_num_threads(int threads) {
    const struct caller caller = CALLER();
    if (caller.library == NULL) return;
    if (caller.library->is_libomp) libomp_number_was_set();
    caller.library->set_num_threads(threads);
}

void libgomp_wait_politely(bool politely) {
    uint32_t word = atomic_load(&parked_word);
    const bool changes = politely != (word % 2 != 0);
    if (changes) word = atomic_fetch_add(&parked_word, 1) + 1;
    if (changes && !politely) syscall(SYS_futex, &parked_word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    for (unsigned i = 0; politely && i < atomic_load(&library_count); ++i) park_team(&libraries[i], word);
}

void libgomp_forget_in_child(void) {
    for (unsigned i = 0; i < atomic_load(&library_count); ++i) atomic_store(&libraries[i].parked_for, 0);
}
