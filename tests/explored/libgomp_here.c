/* launch/libgomp.c with a libgomp that is none: a team is its own thread alone. */
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
unsigned region_begin(unsigned wanted, bool may_change) {
    (void)may_change;
    return wanted;
}
void region_begin_unnoticed(void) {}
void region_end(void) {}
unsigned follow_cpus(void) {
    return 2;
}
int libomp_own_number(int number) {
    return number;
}
void libomp_number_was_set(void) {}
void waiting_is_ours(void) {}
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
    (void)enter_region(&caller, 0);
}
bool libgomp_here_parked_twice(void) {
    return atomic_load(&parked_twice);
}
