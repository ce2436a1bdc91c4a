#define _GNU_SOURCE
#include "tbb.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "waiting.h"

enum { kMaxCopies = 4, kMaxAllowedParallelism = 0 };

/* tbb::detail::d1::global_control of oneTBB 2021 and later. */
struct global_control {
    size_t value;
    intptr_t reserved;
    int parameter;
};

/* One loaded oneTBB. `active` is the control that is in force, NULL for none; each control lives in one of
 * two places, so that the new one is made before the old one goes. */
struct copy {
    const void* base;
    void (*create)(struct global_control*);
    void (*destroy)(struct global_control*);
    size_t (*active_value)(int parameter);
    struct global_control controls[2];
    struct global_control* active;
    unsigned wanted;
};
static struct copy copies[kMaxCopies];
static unsigned copy_count;
/* Objects loaded so far, as the loader counts them: without a new one there is no new TBB. */
static unsigned long long seen_loads;
/* Held while TBB is called, so that it is not ended under our feet. */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;
static bool ended;
static _Atomic bool noticed;
static _Atomic unsigned limit_now;

struct search {
    char paths[kMaxCopies][512];
    unsigned count;
    unsigned long long loads;
};

static int note_tbb(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    struct search* search = data;
    search->loads = object->dlpi_adds;
    const char* slash = strrchr(object->dlpi_name, '/');
    const char* name = slash == NULL ? object->dlpi_name : slash + 1;
    /* Not libtbbmalloc, libtbbbind; wheels rename theirs to libtbb-1a2b3c.so.12. */
    const bool is_tbb = strncmp(name, "libtbb.so", 9) == 0 || strncmp(name, "libtbb-", 7) == 0;
    if (!is_tbb || search->count == kMaxCopies || strlen(object->dlpi_name) >= sizeof *search->paths)
        return 0;
    strcpy(search->paths[search->count++], object->dlpi_name);
    return 0;
}

static void end(void) {
    pthread_mutex_lock(&calling);
    ended = true;
    pthread_mutex_unlock(&calling);
}

static void add(const char* path) {
    void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) return;
    struct copy copy = {0};
    *(void**)&copy.create = dlsym(handle, "_ZN3tbb6detail2r16createERNS0_2d114global_controlE");
    *(void**)&copy.destroy = dlsym(handle, "_ZN3tbb6detail2r17destroyERNS0_2d114global_controlE");
    *(void**)&copy.active_value = dlsym(handle, "_ZN3tbb6detail2r127global_control_active_valueEi");
    copy.base = (const void*)copy.create;
    for (unsigned i = 0; i < copy_count; ++i)
        if (copies[i].base == copy.base) return;
    if (copy.create == NULL || copy.destroy == NULL || copy.active_value == NULL || copy_count == kMaxCopies)
        return;
    /* Runs before the destructors of TBB, which was loaded earlier. */
    if (copy_count == 0 && atexit(end) != 0) return;
    copies[copy_count++] = copy;
}

static void find_copies(void) {
    struct search search = {.count = 0};
    dl_iterate_phdr(note_tbb, &search);
    if (search.loads == seen_loads) return;
    seen_loads = search.loads;
    for (unsigned i = 0; i < search.count; ++i) add(search.paths[i]);
}

static void limit(struct copy* copy, unsigned threads) {
    if (copy->active != NULL && threads != 0 && copy->active->value == threads) return;
    struct global_control* before = copy->active;
    copy->active = NULL;
    if (threads != 0) {
        copy->active = before == &copy->controls[0] ? &copy->controls[1] : &copy->controls[0];
        *copy->active = (struct global_control){threads, 0, kMaxAllowedParallelism};
        /* What the program asked for shows only while no control of ours hides it. */
        if (before == NULL) copy->wanted = (unsigned)copy->active_value(kMaxAllowedParallelism);
        copy->create(copy->active);
    }
    if (before != NULL) copy->destroy(before);
}

static void* apply(void* unused) {
    (void)unused;
    pthread_mutex_lock(&calling);
    if (!ended) find_copies();
    for (unsigned i = 0; i < copy_count && !ended; ++i) limit(&copies[i], atomic_load(&limit_now));
    pthread_mutex_unlock(&calling);
    return NULL;
}

void tbb_limit(unsigned threads) {
    atomic_store(&limit_now, threads);
    if (atomic_load(&noticed)) apply(NULL);
}

/* Our caller holds TBB's locks, and the helper thread sleeps until the grant changes again: a thread of its
 * own does it. */
void tbb_noticed(void) {
    if (atomic_exchange(&noticed, true)) return;
    if (atomic_load(&limit_now) != 0) waiting_start_uncounted(apply, NULL);
}

unsigned tbb_wanted(void) {
    unsigned most = 0;
    for (unsigned i = 0; i < copy_count; ++i)
        if (copies[i].wanted > most) most = copies[i].wanted;
    return most;
}

void tbb_forget_in_child(void) {
    pthread_mutex_init(&calling, NULL);
}
