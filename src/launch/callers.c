#define _GNU_SOURCE
#include "callers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "object.h"

enum { kMaxCallers = 256, kMaxRuntimes = 8 };

/* One in the table. `to` is written last, and NULL where the place is free: none but a call out of the object
 * finds its entry, and while there is one the object stays loaded. */
struct known_caller {
    _Atomic(const char*) from;
    _Atomic(const char*) to;
    struct caller caller;
};

/* Tables change under `growing`; readers see `*_count` entries, each complete before it is counted. */
struct library libraries[kMaxLibraries];
_Atomic unsigned library_count;
static struct known_caller callers[kMaxCallers];
static unsigned most_callers = kMaxCallers; /* fewer where a test looks at all that can happen */
static _Atomic unsigned caller_count;
/* Nothing that takes the loader's lock is called under it: who holds that may wait for us. */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

/* As known_caller. */
enum { kMaxLibomps = 2 };
static struct {
    _Atomic(const char*) from;
    _Atomic(const char*) to;
} libomps[kMaxLibomps];
static _Atomic unsigned libomp_count;

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

/* False where this libgomp lacks what is needed of it. */
static bool read_library(struct library* library, void* entry_parallel, void* handle) {
    for (int i = 0; i < kEntryCount; ++i) library->entries[i] = dlsym(handle, kEntryNames[i]);
    *(void**)&library->max_threads = dlsym(handle, "omp_get_max_threads");
    *(void**)&library->num_procs = dlsym(handle, "omp_get_num_procs");
    *(void**)&library->set_num_threads = dlsym(handle, "omp_set_num_threads");
    *(void**)&library->thread_limit = dlsym(handle, "omp_get_thread_limit");
    *(void**)&library->level = dlsym(handle, "omp_get_level");
    if (library->max_threads == NULL || library->num_procs == NULL || library->set_num_threads == NULL ||
        library->thread_limit == NULL || library->level == NULL)
        return false;
    const void* const of_libomp = dlsym(handle, "__kmpc_fork_call");
    library->is_libomp = of_libomp != NULL && object_at(of_libomp) == object_at(entry_parallel);
    struct range range = {.inside = entry_parallel};
    dl_iterate_phdr(find_range, &range);
    library->base = range.from;
    library->end = range.to;
    /* Its threads outlive the objects that called it. The handle is kept. */
    const struct link_map* object = object_at(entry_parallel);
    if (object != NULL) (void)dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return true;
}

struct runtimes {
    char paths[kMaxRuntimes][512];
    unsigned count;
};

static int note_runtime(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    struct runtimes* runtimes = data;
    if (object->dlpi_name == NULL || strlen(object->dlpi_name) >= sizeof *runtimes->paths) return 0;
    const char* slash = strrchr(object->dlpi_name, '/');
    const char* name = slash == NULL ? object->dlpi_name : slash + 1;
    if (strncmp(name, "libgomp", 7) != 0 && strncmp(name, "libomp", 6) != 0 &&
        strncmp(name, "libiomp", 7) != 0)
        return 0;
    if (runtimes->count < kMaxRuntimes) strcpy(runtimes->paths[runtimes->count++], object->dlpi_name);
    return 0;
}

/* For an object that names no libgomp, as what loaded it brought one: the only one there is. */
static void* only_runtime(void** handle) {
    struct runtimes runtimes = {.count = 0};
    dl_iterate_phdr(note_runtime, &runtimes);
    void* only = NULL;
    for (unsigned i = 0; i < runtimes.count; ++i) {
        void* const opened = dlopen(runtimes.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        void* const parallel = opened == NULL ? NULL : dlsym(opened, "GOMP_parallel");
        if (opened == NULL) continue;
        if (parallel == NULL || only != NULL) dlclose(opened);
        if (parallel == NULL || parallel == only) continue;
        if (only != NULL) {
            dlclose(*handle);
            return NULL;
        }
        only = parallel;
        *handle = opened;
    }
    return only;
}

/* The one that the program loaded for all, known before threads exist: nobody has to ask the loader for it,
 * whose lock a thread may have that waits for the one that asks. */
static struct library first_library;
static bool has_first_library;

void callers_know_first(void) {
    void* const parallel = dlsym(RTLD_NEXT, "GOMP_parallel");
    has_first_library = parallel != NULL && read_library(&first_library, parallel, RTLD_NEXT);
}

/* Which libgomp would `address` have called, had we not come between? The first one that the program loaded
 * for all, or, for an object that came by dlopen, the one among its own dependencies. False: there is none.
 */
static bool find_caller(const void* address, struct caller* caller, struct library* library) {
    struct range range = {.inside = address};
    dl_iterate_phdr(find_range, &range);
    *caller = (struct caller){.from = range.from, .to = range.to, .object = object_at(address)};
    const char* const path = caller->object != NULL ? caller->object->l_name : "";
    caller->trusts_max_threads = strstr(path, "openblas") != NULL || strstr(path, "libblas") != NULL;
    caller->has_thread_data = range.has_thread_data && !caller->trusts_max_threads;
    if (has_first_library) {
        *library = first_library;
        return true;
    }
    void* const own = path[0] != '\0' ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void* handle = RTLD_NEXT;
    void* parallel = dlsym(RTLD_NEXT, "GOMP_parallel");
    if (parallel == NULL && own != NULL) {
        handle = own;
        parallel = dlsym(own, "GOMP_parallel");
    }
    if (parallel == NULL) parallel = only_runtime(&handle);
    const bool is_read = parallel != NULL && read_library(library, parallel, handle);
    if (own != NULL) dlclose(own);
    return is_read;
}

static const struct caller* known_caller(const char* address) {
    const unsigned count = atomic_load_explicit(&caller_count, memory_order_acquire);
    for (unsigned i = 0; i < count; ++i)
        if (address < atomic_load_explicit(&callers[i].to, memory_order_acquire) &&
            address >= atomic_load_explicit(&callers[i].from, memory_order_relaxed))
            return &callers[i].caller;
    return NULL;
}

/* Under `growing`, as the next one. NULL where there are too many. */
static struct library* keep_library(const struct library* read) {
    const unsigned count = atomic_load(&library_count);
    for (unsigned i = 0; i < count; ++i)
        if (libraries[i].entries[kEntry_GOMP_parallel] == read->entries[kEntry_GOMP_parallel])
            return &libraries[i];
    if (count == kMaxLibraries) return NULL;
    libraries[count] = *read;
    atomic_store(&library_count, count + 1);
    return &libraries[count];
}

/* What finds the table full is looked for at each of its calls: slower, never wrong. */
static void keep_caller(const struct caller* caller) {
    const unsigned count = atomic_load(&caller_count);
    unsigned place = 0;
    while (place < count && atomic_load(&callers[place].to) != NULL) ++place;
    if (place == most_callers) return;
    atomic_store_explicit(&callers[place].from, caller->from, memory_order_relaxed);
    callers[place].caller = *caller;
    atomic_store_explicit(&callers[place].to, caller->to, memory_order_release);
    if (place == count) atomic_store_explicit(&caller_count, count + 1, memory_order_release);
}

struct caller callers_at(const void* address) {
    const struct caller* known = known_caller(address);
    if (known != NULL) return *known;
    struct caller found;
    struct library library = {0};
    if (!find_caller(address, &found, &library)) return found;
    pthread_mutex_lock(&growing);
    known = known_caller(address);
    if (known != NULL)
        found = *known;
    else
        found.library = keep_library(&library);
    if (known == NULL && found.library != NULL) keep_caller(&found);
    pthread_mutex_unlock(&growing);
    return found;
}

struct library* callers_library_at(const void* address) {
    const struct caller* const known = known_caller(address);
    return known != NULL ? known->library : callers_at(address).library;
}

void callers_forget_unloaded(void) {
    if (atomic_load_explicit(&caller_count, memory_order_relaxed) == 0) return;
    pthread_mutex_lock(&growing);
    const unsigned count = atomic_load(&caller_count);
    for (unsigned i = 0; i < count; ++i)
        if (atomic_load(&callers[i].to) != NULL &&
            object_at(atomic_load(&callers[i].from)) != callers[i].caller.object)
            atomic_store(&callers[i].to, NULL);
    pthread_mutex_unlock(&growing);
}

static const struct library* library_at(const void* address) {
    const unsigned count = atomic_load(&library_count);
    for (unsigned i = 0; i < count; ++i)
        if (address >= libraries[i].base && address < libraries[i].end) return &libraries[i];
    return NULL;
}

bool callers_are_libgomp(const void* address) {
    if (library_at(address) != NULL) return true;
    return atomic_load(&library_count) == 0 && strncmp(object_name_at(address), "libgomp", 7) == 0;
}

bool callers_are_libomp_under_another_name(const void* address) {
    const struct library* const library = library_at(address);
    return library != NULL && library->is_libomp;
}

void callers_note_libomp(const void* address) {
    if (callers_are_libomp(address)) return;
    struct range range = {.inside = address};
    dl_iterate_phdr(find_range, &range);
    const unsigned place = atomic_fetch_add(&libomp_count, 1) % kMaxLibomps;
    atomic_store(&libomps[place].to, NULL);
    atomic_store(&libomps[place].from, range.from);
    atomic_store(&libomps[place].to, range.to);
}

bool callers_are_libomp(const void* address) {
    for (unsigned i = 0; i < kMaxLibomps; ++i)
        if ((const char*)address < atomic_load_explicit(&libomps[i].to, memory_order_acquire) &&
            (const char*)address >= atomic_load_explicit(&libomps[i].from, memory_order_relaxed))
            return true;
    return false;
}

void callers_forget_in_child(void) {
    pthread_mutex_init(&growing, NULL);
}
