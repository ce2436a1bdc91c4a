#define _GNU_SOURCE
#include "own_masks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "real.h"

/* A hash table by thread. A mask is never changed in its place: a new one is put beside it, then the old one
 * taken away. So who reads needs no lock. */
#ifndef HEDDLE_OWN_MASKS
#define HEDDLE_OWN_MASKS 2048
#endif
enum { kPlaces = HEDDLE_OWN_MASKS, kProbes = kPlaces < 64 ? kPlaces : 64 };
enum { kMaskWords = sizeof(cpu_set_t) / sizeof(unsigned long) };
enum { kNobody = 0, kLeft = -1, kBeingWritten = -2 };

struct place {
    _Atomic pid_t thread;
    _Atomic uint32_t takings; /* who reads sees whether it is the same mask still */
    _Atomic unsigned long mask[kMaskWords];
};
static struct place places[kPlaces];
/* At least as many as there are: most programs have none. */
static _Atomic int used;

/* Of those who write. A thread that is parked may have it; then the others are parked, too, or soon. */
enum { kMostRests = 2000, kRestNs = 20000 };
static _Atomic bool is_written;

/* Who is cancelled meanwhile goes on until it has written. */
static bool begin_writing(int* cancelling) {
    REAL(syscall) /* our own wrapper would take the rest for one of the program's */
    const struct timespec rest = {.tv_nsec = kRestNs};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancelling);
    for (int rests = 0; rests < kMostRests; ++rests) {
        if (!atomic_exchange(&is_written, true)) return true;
        real(SYS_nanosleep, &rest, NULL);
    }
    pthread_setcancelstate(*cancelling, NULL);
    return false;
}

static void end_writing(int cancelling) {
    atomic_store(&is_written, false);
    pthread_setcancelstate(cancelling, NULL);
}

static struct place* probe(pid_t thread, int number) {
    return &places[((unsigned)thread * 2654435761u + (unsigned)number) % kPlaces];
}

static void leave(struct place* place, pid_t thread) {
    if (atomic_compare_exchange_strong(&place->thread, &thread, kLeft)) atomic_fetch_sub(&used, 1);
}

static struct place* take(pid_t thread) {
    for (int i = 0; i < kProbes; ++i) {
        struct place* const place = probe(thread, i);
        const pid_t holder = atomic_load(&place->thread);
        if (holder != kNobody && holder != kLeft) continue;
        atomic_fetch_add(&used, 1);
        atomic_store(&place->thread, kBeingWritten);
        atomic_fetch_add(&place->takings, 1);
        atomic_thread_fence(memory_order_release);
        return place;
    }
    return NULL;
}

static void forget_but(pid_t thread, const struct place* kept) {
    for (int i = 0; i < kProbes && atomic_load(&probe(thread, i)->thread) != kNobody; ++i)
        if (probe(thread, i) != kept) leave(probe(thread, i), thread);
}

/* Of threads that ended unseen. */
static void clear_up(pid_t thread) {
    REAL(syscall)
    const int result = errno;
    for (int i = 0; i < kProbes; ++i) {
        const pid_t holder = atomic_load(&probe(thread, i)->thread);
        if (holder > 0 && real(SYS_tgkill, getpid(), holder, 0) != 0) leave(probe(thread, i), holder);
    }
    errno = result;
}

static bool write_beside(pid_t thread, const cpu_set_t* mask) {
    struct place* place = take(thread);
    if (place == NULL) {
        forget_but(thread, NULL);
        clear_up(thread);
        place = take(thread);
    }
    if (place == NULL) return false;
    for (size_t i = 0; i < kMaskWords; ++i)
        atomic_store_explicit(&place->mask[i], ((const unsigned long*)mask->__bits)[i], memory_order_relaxed);
    atomic_store(&place->thread, thread);
    forget_but(thread, place);
    return true;
}

bool own_masks_note(pid_t thread, const cpu_set_t* mask) {
    int cancelling;
    if (!begin_writing(&cancelling)) {
        forget_but(thread, NULL);
        return false;
    }
    const bool noted = write_beside(thread, mask);
    end_writing(cancelling);
    return noted;
}

bool own_masks_note_first(pid_t thread, const cpu_set_t* mask) {
    int cancelling;
    if (!begin_writing(&cancelling)) return false;
    cpu_set_t present;
    const bool noted = own_masks_find(thread, &present) || write_beside(thread, mask);
    end_writing(cancelling);
    return noted;
}

static bool read_place(struct place* place, pid_t thread, cpu_set_t* mask) {
    const uint32_t taking = atomic_load(&place->takings);
    if (atomic_load(&place->thread) != thread) return false;
    for (size_t i = 0; i < kMaskWords; ++i)
        ((unsigned long*)mask->__bits)[i] = atomic_load_explicit(&place->mask[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&place->thread) == thread && atomic_load(&place->takings) == taking;
}

/* Twice: it may have been put beside a place that was passed, and the old one taken away ahead. */
bool own_masks_find(pid_t thread, cpu_set_t* mask) {
    if (atomic_load(&used) == 0) return false;
    for (int look = 0; look < 2; ++look)
        for (int i = 0; i < kProbes && atomic_load(&probe(thread, i)->thread) != kNobody; ++i)
            if (read_place(probe(thread, i), thread, mask)) return true;
    return false;
}

void own_masks_forget(pid_t thread) {
    if (atomic_load(&used) == 0) return;
    int cancelling;
    const bool alone = begin_writing(&cancelling);
    forget_but(thread, NULL);
    if (alone) end_writing(cancelling);
}

void own_masks_forget_all(void) {
    for (int i = 0; i < kPlaces && atomic_load(&used) > 0; ++i) atomic_store(&places[i].thread, kNobody);
    atomic_store(&used, 0);
    atomic_store(&is_written, false);
}
