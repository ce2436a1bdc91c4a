/* launch/libgomp.c and callers.c with a libgomp that is none: a team is its own thread alone. And with
 * objects that are none: each is an array here, and the odd ones have a libgomp of their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

enum { kObjects = 4, kLibgomps = 2 };
static char objects[kObjects][64];
static char libgomps[kLibgomps][64]; /* their addresses stand for entries, and for handles */

static int dl_iterate_phdr_here(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data) {
    for (int i = 0; i < kObjects + kLibgomps; ++i) {
        const char* start = i < kObjects ? objects[i] : libgomps[i - kObjects];
        const ElfW(Phdr) segment = {.p_type = PT_LOAD, .p_memsz = sizeof objects[0]};
        struct dl_phdr_info info = {.dlpi_addr = (ElfW(Addr))start, .dlpi_phdr = &segment, .dlpi_phnum = 1};
        const int answer = visit(&info, sizeof info, data);
        if (answer != 0) return answer;
    }
    return 0;
}
static char names[kObjects][2] = {"0", "1", "2", "3"};
static const struct link_map maps[kObjects] = {
    {.l_name = names[0]}, {.l_name = names[1]}, {.l_name = names[2]}, {.l_name = names[3]}};

/* What object.h would answer. */
const struct link_map* object_at(const void* address) {
    const size_t object = (size_t)((const char*)address - objects[0]) / sizeof objects[0];
    return object < kObjects ? &maps[object] : NULL;
}
const char* object_name_at(const void* address) {
    (void)address;
    return "";
}
static void* dlopen_here(const char* name, int flags) {
    (void)flags;
    return libgomps[(name[0] - '0') % kLibgomps];
}
static int dlclose_here(void* handle) {
    (void)handle;
    return 0;
}
static void* dlsym_here(void* handle, const char* name) {
    if (handle == RTLD_NEXT || name[0] == '_') return NULL;
    return handle;
}
#define dl_iterate_phdr dl_iterate_phdr_here
#define dlopen dlopen_here
#define dlclose dlclose_here
#define dlsym dlsym_here
#include "launch/callers.c"
#include "launch/libgomp.c"

static int two(void) {
    return 2;
}
static int none(void) {
    return 0;
}
static void nothing(int threads) {
    (void)threads;
}

static _Atomic uint32_t last_parked;
static _Atomic bool parked_twice;

static void run_team(void (*fn)(void*), void* data, unsigned threads, unsigned flags) {
    (void)threads;
    (void)flags;
    const struct parking* parking = data;
    if (atomic_exchange(&last_parked, parking->word) == parking->word) atomic_store(&parked_twice, true);
    fn(data);
}

static void* begin(void* start) {
    void* (*const* run)(void*) = start;
    void* argument = ((void**)start)[1];
    void* (*const body)(void*) = *run;
    free(start);
    return body(argument);
}

/* What the rest of the launcher would answer. */
bool region_inside(void) {
    return false;
}
unsigned region_begin(const struct region* region) {
    return region->wanted;
}
void region_begin_unnoticed(void) {}
void region_end(void) {}
void region_meets(void) {}
unsigned follow_cpus(void) {
    return 2;
}
int libomp_own_number(int number) {
    return number;
}
void libomp_number_was_set(void) {}
void waiting_begins_as_ours(void) {}
void waiting_ends_as_ours(void) {}
bool waiting_start_uncounted(void* (*run)(void*), void* argument) {
    void** start = malloc(2 * sizeof *start);
    start[0] = (void*)run;
    start[1] = argument;
    pthread_t thread;
    return pthread_create(&thread, NULL, begin, start) == 0;
}

void libgomp_here_begin(void);
void libgomp_here_region(void);
bool libgomp_here_parked_twice(void);

void libgomp_here_begin(void) {
    struct library* library = &libraries[0];
    library->entries[kEntry_GOMP_parallel] = (void*)run_team;
    library->max_threads = library->num_procs = library->thread_limit = two;
    library->level = none;
    library->set_num_threads = nothing;
    atomic_store(&library_count, 1);
    libgomp_wait_politely(false);
    atomic_store(&last_parked, UINT32_MAX);
    atomic_store(&parked_twice, false);
}
void libgomp_here_region(void) {
    const struct caller caller = {.library = &libraries[0]};
    (void)enter_region(&caller, NULL, false, 0);
}
bool libgomp_here_parked_twice(void) {
    return atomic_load(&parked_twice);
}

void libgomp_here_begin_without_teams(void);
bool libgomp_here_is_parked(void);

/* No region had a team yet. */
void libgomp_here_begin_without_teams(void) {
    libgomp_here_begin();
    atomic_store(&libraries[0].has_teams, false);
}
bool libgomp_here_is_parked(void) {
    return atomic_load(&libraries[0].parked_for) == atomic_load(&parked_word);
}

void libgomp_here_forget(bool one_place_is_left);
bool libgomp_here_calls_from(unsigned object);

/* No object here is known as a caller, and no library; the table is empty, or as good as full. */
void libgomp_here_forget(bool one_place_is_left) {
    memset(callers, 0, sizeof callers);
    memset(libraries, 0, sizeof libraries);
    atomic_store(&library_count, 0);
    most_callers = 4;
    atomic_store(&caller_count, one_place_is_left ? most_callers - 1 : 0);
    /* Of others: no address here is one of theirs. */
    for (unsigned i = 0; i < atomic_load(&caller_count); ++i) atomic_store(&callers[i].to, (const char*)1);
}
/* The table's answer is all that there is to know of the object. */
bool libgomp_here_calls_from(unsigned object) {
    const struct caller caller = callers_at(&objects[object][7]);
    const char* libgomp = libgomps[object % kLibgomps];
    return caller.from == objects[object] && caller.to == objects[object] + sizeof objects[0] &&
           caller.library != NULL && caller.library->entries[kEntry_GOMP_parallel] == libgomp &&
           caller.library->entries[kEntryCount - 1] == libgomp && caller.library->base == libgomp &&
           callers_are_libgomp(libgomp);
}

void libgomp_here_forget_libomps(void);
void libgomp_here_note_libomp(unsigned object);
bool libgomp_here_is_libomp(unsigned object);

void libgomp_here_forget_libomps(void) {
    atomic_store(&libomp_count, 0);
    for (unsigned i = 0; i < kMaxLibomps; ++i) {
        atomic_store(&libomps[i].to, NULL);
        atomic_store(&libomps[i].from, NULL);
    }
}
void libgomp_here_note_libomp(unsigned object) {
    callers_note_libomp(&objects[object][7]);
}
bool libgomp_here_is_libomp(unsigned object) {
    return callers_are_libomp(&objects[object][7]);
}
