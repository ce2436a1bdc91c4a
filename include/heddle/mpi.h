/* Tasks that wait for MPI requests, and keep no worker meanwhile, for C: heddle/mpi.hpp, which tells more.
 *
 *     heddle_mpi_t* mpi;
 *     heddle_mpi_create(runtime, &mpi);
 *     ...
 *     MPI_Request request;
 *     heddle_mpi_begin(mpi);
 *     MPI_Irecv(buffer, n, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
 *     heddle_mpi_end(mpi);
 *     heddle_mpi_wait(mpi, &request, MPI_STATUS_IGNORE, NULL);
 *
 * Idle workers test all requests that are waited for with one MPI_Testsome. Any thread and any task may wait;
 * each request is waited for by one. MPI must have been initialised with MPI_THREAD_MULTIPLE or
 * MPI_THREAD_SERIALIZED. With the latter MPI is called by one thread at a time: the program makes each of its
 * own calls between heddle_mpi_begin() and heddle_mpi_end() then, which do nothing with MPI_THREAD_MULTIPLE.
 *
 * Header-only: libheddle.so knows nothing of MPI, and a program brings the one it is built with (Open MPI,
 * MPICH). Results are as in heddle/task.h; to what is refused here and not in the library there is no
 * message, the code alone. */
#ifndef HEDDLE_MPI_H
#define HEDDLE_MPI_H

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of all in the process, whichever their runtimes, also of heddle/mpi.hpp. */
__attribute__((weak)) pthread_mutex_t heddle_mpi_one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* On the stack of who waits. */
typedef struct {
    heddle_condition_t* done; /* made when there is something to wait for */
    size_t left;
    int error; /* the first */
} heddle_mpi_waiting_t;

/* What is to be written when the request is done. */
typedef struct {
    heddle_mpi_waiting_t* wait; /* null: it is done */
    MPI_Request* request;
    MPI_Status* status; /* null: nobody wants it */
} heddle_mpi_place_t;

typedef struct {
    heddle_runtime_t* runtime;
    bool serialized;
    pthread_mutex_t entering; /* around mutex: nobody relies on a service that another cannot start */
    pthread_mutex_t mutex;    /* for all below */
    bool registered;
    size_t count, room;         /* of each of these: */
    MPI_Request* requests;      /* that are waited for, */
    heddle_mpi_place_t* places; /* by whom, */
    int* indices;               /* and for MPI_Testsome */
    MPI_Status* statuses;
} heddle_mpi_t;

/** INVALID where MPI was not initialised, was finalised, or is for one thread alone, as MPI_Query_thread()
 * says; LIMIT without memory. */
static inline heddle_task_ret_t heddle_mpi_create(heddle_runtime_t* runtime, heddle_mpi_t** created) {
    int begun = 0, ended = 0, level = MPI_THREAD_SINGLE;
    heddle_mpi_t* mpi;
    *created = NULL;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun == 0 || ended != 0) return HEDDLE_TASK_INVALID;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) return HEDDLE_TASK_INVALID;
    mpi = (heddle_mpi_t*)calloc(1, sizeof *mpi);
    if (mpi == NULL) return HEDDLE_TASK_LIMIT;
    mpi->runtime = runtime;
    mpi->serialized = level < MPI_THREAD_MULTIPLE;
    pthread_mutex_init(&mpi->entering, NULL);
    pthread_mutex_init(&mpi->mutex, NULL);
    *created = mpi;
    return HEDDLE_TASK_SUCCESS;
}

/** Around calls of MPI that do not block. Not across a wait. */
static inline void heddle_mpi_begin(heddle_mpi_t* mpi) {
    if (mpi->serialized) pthread_mutex_lock(&heddle_mpi_one_at_a_time);
}
static inline void heddle_mpi_end(heddle_mpi_t* mpi) {
    if (mpi->serialized) pthread_mutex_unlock(&heddle_mpi_one_at_a_time);
}

static inline void heddle_mpi_close_gaps(heddle_mpi_t* mpi) {
    size_t kept = 0, i;
    for (i = 0; i < mpi->count; ++i) {
        if (mpi->places[i].wait == NULL) continue;
        mpi->places[kept] = mpi->places[i];
        mpi->requests[kept++] = mpi->requests[i];
    }
    mpi->count = kept;
}

static inline void heddle_mpi_finish(heddle_mpi_t* mpi, size_t index, const MPI_Status* status, int error) {
    heddle_mpi_place_t* const place = &mpi->places[index];
    heddle_mpi_waiting_t* const wait = place->wait;
    place->wait = NULL;
    *place->request = mpi->requests[index];
    if (place->status != NULL && status != NULL) *place->status = *status;
    if (wait->error == MPI_SUCCESS) wait->error = error;
    if (--wait->left == 0) heddle_condition_signal(wait->done);
}

/* The polling service. True: nobody waits any more. */
static inline bool heddle_mpi_test(void* self) {
    heddle_mpi_t* const mpi = (heddle_mpi_t*)self;
    bool over;
    pthread_mutex_lock(&mpi->mutex);
    if (mpi->count > 0) {
        int done = 0, error, i;
        size_t k;
        bool some;
        heddle_mpi_begin(mpi);
        error = MPI_Testsome((int)mpi->count, mpi->requests, &done, mpi->indices, mpi->statuses);
        some = (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) && done != MPI_UNDEFINED;
        for (i = 0; some && i < done; ++i)
            heddle_mpi_finish(mpi, (size_t)mpi->indices[i], &mpi->statuses[i],
                              error == MPI_SUCCESS ? MPI_SUCCESS : mpi->statuses[i].MPI_ERROR);
        /* None of them is active any more, or MPI cannot say which has failed. */
        for (k = 0; !some && k < mpi->count; ++k) heddle_mpi_finish(mpi, k, NULL, error);
        heddle_mpi_end(mpi);
        heddle_mpi_close_gaps(mpi);
    }
    over = mpi->count == 0;
    mpi->registered = !over;
    pthread_mutex_unlock(&mpi->mutex);
    return over;
}

/** Nobody waits. Before MPI_Finalize, and before the runtime is destroyed. */
static inline void heddle_mpi_destroy(heddle_mpi_t* mpi) {
    if (mpi == NULL) return;
    /* It may have ended by itself, as it does when nobody waits any more. */
    (void)heddle_unregister_polling_service(mpi->runtime, &heddle_mpi_test, mpi);
    pthread_mutex_destroy(&mpi->mutex);
    pthread_mutex_destroy(&mpi->entering);
    free(mpi->requests);
    free(mpi->places);
    free(mpi->indices);
    free(mpi->statuses);
    free(mpi);
}

/* So that testing needs no memory. */
static inline bool heddle_mpi_make_room(heddle_mpi_t* mpi, size_t count) {
    const size_t room = 2 * (mpi->count + count);
    void* grown;
    if (mpi->count + count <= mpi->room) return true;
    if ((grown = realloc(mpi->requests, room * sizeof *mpi->requests)) == NULL) return false;
    mpi->requests = (MPI_Request*)grown;
    if ((grown = realloc(mpi->places, room * sizeof *mpi->places)) == NULL) return false;
    mpi->places = (heddle_mpi_place_t*)grown;
    if ((grown = realloc(mpi->indices, room * sizeof *mpi->indices)) == NULL) return false;
    mpi->indices = (int*)grown;
    if ((grown = realloc(mpi->statuses, room * sizeof *mpi->statuses)) == NULL) return false;
    mpi->statuses = (MPI_Status*)grown;
    mpi->room = room;
    return true;
}

/* It does not wait any more; its requests are its own again. */
static inline void heddle_mpi_forget(heddle_mpi_t* mpi, const heddle_mpi_waiting_t* wait, bool unregistered) {
    size_t i;
    pthread_mutex_lock(&mpi->mutex);
    for (i = 0; i < mpi->count; ++i)
        if (mpi->places[i].wait == wait) mpi->places[i].wait = NULL;
    heddle_mpi_close_gaps(mpi);
    if (unregistered) mpi->registered = false;
    pthread_mutex_unlock(&mpi->mutex);
}

/** Returns when all are done; nulls among them are. They are MPI_REQUEST_NULL afterwards (persistent ones
 * are inactive). `statuses`: as many, or MPI_STATUSES_IGNORE. SYSTEM where MPI says that one failed: its code
 * is then in `*error`, which may be NULL, for MPI_Error_string(). INVALID for less than none; LIMIT without
 * memory, and as heddle_condition_block(): what is not done is still the caller's then. */
static inline heddle_task_ret_t heddle_mpi_wait_all(heddle_mpi_t* mpi, int count, MPI_Request* requests,
                                                    MPI_Status* statuses, int* error) {
    heddle_mpi_waiting_t wait = {NULL, 0, MPI_SUCCESS};
    heddle_task_ret_t result = HEDDLE_TASK_SUCCESS;
    bool first, blocks;
    int i;
    if (error != NULL) *error = MPI_SUCCESS;
    if (count < 0 || (count > 0 && requests == NULL)) return HEDDLE_TASK_INVALID;
    wait.done = heddle_condition_create();
    if (wait.done == NULL) return heddle_task_error();
    pthread_mutex_lock(&mpi->entering);
    pthread_mutex_lock(&mpi->mutex);
    if (!heddle_mpi_make_room(mpi, (size_t)count)) {
        pthread_mutex_unlock(&mpi->mutex);
        pthread_mutex_unlock(&mpi->entering);
        heddle_condition_destroy(wait.done);
        return HEDDLE_TASK_LIMIT;
    }
    heddle_mpi_begin(mpi);
    for (i = 0; i < count; ++i) {
        MPI_Status* const status = statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i];
        int done = 0;
        const int failed = MPI_Test(&requests[i], &done, status == NULL ? MPI_STATUS_IGNORE : status);
        if (wait.error == MPI_SUCCESS) wait.error = failed;
        if (done != 0 || failed != MPI_SUCCESS) continue;
        mpi->requests[mpi->count] = requests[i];
        mpi->places[mpi->count].wait = &wait;
        mpi->places[mpi->count].request = &requests[i];
        mpi->places[mpi->count++].status = status;
        ++wait.left;
    }
    heddle_mpi_end(mpi);
    first = wait.left > 0 && !mpi->registered;
    if (first) mpi->registered = true;
    blocks = wait.left > 0;            /* read before others count down */
    pthread_mutex_unlock(&mpi->mutex); /* the service takes it */
    if (first) {
        result = heddle_register_polling_service(mpi->runtime, "MPI", &heddle_mpi_test, mpi);
        if (result != HEDDLE_TASK_SUCCESS) heddle_mpi_forget(mpi, &wait, true);
    }
    pthread_mutex_unlock(&mpi->entering);
    if (blocks && result == HEDDLE_TASK_SUCCESS) {
        result = heddle_condition_block(wait.done);
        if (result != HEDDLE_TASK_SUCCESS) heddle_mpi_forget(mpi, &wait, false);
    }
    heddle_condition_destroy(wait.done);
    if (result != HEDDLE_TASK_SUCCESS) return result;
    if (error != NULL) *error = wait.error;
    return wait.error == MPI_SUCCESS ? HEDDLE_TASK_SUCCESS : HEDDLE_TASK_SYSTEM;
}

/** The same for one. */
static inline heddle_task_ret_t heddle_mpi_wait(heddle_mpi_t* mpi, MPI_Request* request, MPI_Status* status,
                                                int* error) {
    return heddle_mpi_wait_all(mpi, 1, request, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status,
                               error);
}

#ifdef __cplusplus
}
#endif

#endif
