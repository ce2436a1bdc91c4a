// await_in_c ENGINE LEVEL   What tasks in C do that wait for MPI requests, on two ranks; prints what was
// wrong and exits with 1. LEVEL is multiple, serialized or funneled (which has to be refused). Built once for
// each MPI.
#include <stdio.h>
#include <string.h>

#include "heddle/mpi.h"

pthread_mutex_t* turns_of_the_second_file(void);

enum { kMostTasks = 500, kMessages = 20 };

static int failures = 0;
static int rank = 0;
static heddle_mpi_t* mpi = NULL;
static int got[kMostTasks];
static int told = 0;

static void expect(bool holds, const char* what) {
    if (holds) return;
    printf("rank %d: not so: %s\n", rank, what);
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static int receive(heddle_task_t* task) {
    int i, error = -1;
    MPI_Request request;
    MPI_Status status;
    if (heddle_unpack(task, 0, &i, sizeof i) != HEDDLE_TASK_SUCCESS) return 1;
    heddle_mpi_begin(mpi);
    MPI_Irecv(&got[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &request);
    heddle_mpi_end(mpi);
    expect(heddle_mpi_wait(mpi, &request, &status, &error) == HEDDLE_TASK_SUCCESS, "a receive ends well");
    expect(error == MPI_SUCCESS, "and without an error of MPI's");
    expect(request == MPI_REQUEST_NULL, "the request is null afterwards");
    expect(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == i, "the status is the message's");
    return 0;
}

static int send(heddle_task_t* task) {
    int i, value;
    MPI_Request request;
    if (heddle_unpack(task, 0, &i, sizeof i) != HEDDLE_TASK_SUCCESS) return 1;
    value = 1000 * rank + i;
    heddle_mpi_begin(mpi);
    MPI_Isend(&value, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &request);
    heddle_mpi_end(mpi);
    expect(heddle_mpi_wait(mpi, &request, MPI_STATUS_IGNORE, NULL) == HEDDLE_TASK_SUCCESS,
           "a send ends well");
    return 0;
}

static void insert(heddle_sequence_t* sequence, heddle_function_t function, int number) {
    const heddle_argument_t arguments[] = {heddle_value(&number, sizeof number)};
    expect(heddle_insert(sequence, function, arguments, 1, NULL) == HEDDLE_TASK_SUCCESS, "it is inserted");
}

static void wait_for(heddle_sequence_t* sequence) {
    expect(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS, "no task failed");
    expect(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS, "the sequence is not needed any more");
}

/// More receives wait than there are workers, and what they wait for comes from tasks that come after them.
static void everybody_waits_at_once(heddle_runtime_t* runtime, int tasks) {
    heddle_sequence_t* const sequence = heddle_sequence_create(runtime);
    for (int i = 0; i < tasks; ++i) got[i] = -1;
    for (int i = 0; i < tasks; ++i) insert(sequence, receive, i);
    for (int i = tasks - 1; i >= 0; --i) insert(sequence, send, i);
    wait_for(sequence);
    for (int i = 0; i < tasks; ++i) expect(got[i] == 1000 * (1 - rank) + i, "each message arrives");
}

static int several(heddle_task_t* task) {
    int sent[kMessages], arrived[kMessages], error = -1;
    MPI_Request requests[2 * kMessages + 1];
    MPI_Status statuses[2 * kMessages + 1];
    (void)task;
    heddle_mpi_begin(mpi);
    for (int i = 0; i < kMessages; ++i) {
        sent[i] = 100 * rank + i;
        MPI_Irecv(&arrived[i], 1, MPI_INT, 1 - rank, 7000 + i, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(&sent[i], 1, MPI_INT, 1 - rank, 7000 + i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    heddle_mpi_end(mpi);
    requests[2 * kMessages] = MPI_REQUEST_NULL;
    expect(heddle_mpi_wait_all(mpi, 2 * kMessages + 1, requests, statuses, &error) == HEDDLE_TASK_SUCCESS,
           "all end well");
    for (int i = 0; i < kMessages; ++i) {
        expect(arrived[i] == 100 * (1 - rank) + i, "each of them arrives");
        expect(statuses[2 * i].MPI_TAG == 7000 + i, "each has its status");
    }
    expect(heddle_mpi_wait_all(mpi, 0, NULL, MPI_STATUSES_IGNORE, NULL) == HEDDLE_TASK_SUCCESS,
           "none are done at once");
    expect(heddle_mpi_wait_all(mpi, -1, requests, MPI_STATUSES_IGNORE, NULL) == HEDDLE_TASK_INVALID,
           "less than no requests are refused");
    expect(heddle_mpi_wait_all(mpi, 1, NULL, MPI_STATUSES_IGNORE, NULL) == HEDDLE_TASK_INVALID,
           "and requests that are nowhere");
    return 0;
}

static int receive_too_little(heddle_task_t* task) {
    int small = 0, error = MPI_SUCCESS, length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    MPI_Request request;
    (void)task;
    heddle_mpi_begin(mpi);
    MPI_Irecv(&small, 1, MPI_INT, 1 - rank, 9000, MPI_COMM_WORLD, &request);
    heddle_mpi_end(mpi);
    if (heddle_mpi_wait(mpi, &request, MPI_STATUS_IGNORE, &error) != HEDDLE_TASK_SYSTEM) return 0;
    MPI_Error_string(error, text, &length);
    told = error != MPI_SUCCESS && length > 0;
    return 0;
}

static int send_too_much(heddle_task_t* task) {
    const int large[8] = {0};
    MPI_Request request;
    (void)task;
    heddle_mpi_begin(mpi);
    MPI_Isend(large, 8, MPI_INT, 1 - rank, 9000, MPI_COMM_WORLD, &request);
    heddle_mpi_end(mpi);
    (void)heddle_mpi_wait(mpi, &request, MPI_STATUS_IGNORE, NULL);
    return 0;
}

/// MPI's errors arrive where the request was waited for, and at nobody else.
static void a_message_is_too_long(heddle_runtime_t* runtime) {
    heddle_sequence_t* const sequence = heddle_sequence_create(runtime);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    insert(sequence, receive_too_little, 0);
    insert(sequence, send_too_much, 0);
    wait_for(sequence);
    expect(told == 1, "the receiver is told that the message was too long");
}

static void from_outside_of_tasks(void) {
    int sent = rank, arrived = -1;
    MPI_Request requests[2];
    heddle_mpi_begin(mpi);
    MPI_Irecv(&arrived, 1, MPI_INT, 1 - rank, 9100, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&sent, 1, MPI_INT, 1 - rank, 9100, MPI_COMM_WORLD, &requests[1]);
    heddle_mpi_end(mpi);
    expect(heddle_mpi_wait_all(mpi, 2, requests, MPI_STATUSES_IGNORE, NULL) == HEDDLE_TASK_SUCCESS,
           "both end well");
    expect(arrived == 1 - rank, "a thread outside of tasks may wait, too");
}

static void run(heddle_runtime_t* runtime) {
    /* Engines that cannot pause a task have a number of threads to spare. */
    const char* const engine = heddle_runtime_engine(runtime);
    const bool pauses = strcmp(engine, "native") == 0 || strcmp(engine, "tbb") == 0;
    heddle_sequence_t* sequence;
    expect(heddle_mpi_create(runtime, &mpi) == HEDDLE_TASK_SUCCESS, "MPI is there");
    everybody_waits_at_once(runtime, pauses ? kMostTasks : 8);
    sequence = heddle_sequence_create(runtime);
    insert(sequence, several, 0);
    wait_for(sequence);
    from_outside_of_tasks();
    a_message_is_too_long(runtime);
    heddle_mpi_destroy(mpi);
    heddle_mpi_destroy(NULL);
}

int main(int argc, char** argv) {
    int provided = 0, wanted;
    heddle_runtime_t* runtime;
    if (argc != 3) return 2;
    wanted = strcmp(argv[2], "multiple") == 0     ? MPI_THREAD_MULTIPLE
             : strcmp(argv[2], "serialized") == 0 ? MPI_THREAD_SERIALIZED
                                                  : MPI_THREAD_FUNNELED;
    runtime = heddle_runtime_create(argv[1], NULL, 1);
    expect(runtime != NULL, "there is a runtime");
    expect(heddle_mpi_create(runtime, &mpi) == HEDDLE_TASK_INVALID && mpi == NULL, "MPI comes first");
    expect(turns_of_the_second_file() == &heddle_mpi_one_at_a_time, "turns are of the process");
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (wanted == MPI_THREAD_FUNNELED)
        expect(provided > MPI_THREAD_FUNNELED || heddle_mpi_create(runtime, &mpi) == HEDDLE_TASK_INVALID,
               "one thread is not enough");
    else if (provided < wanted)
        printf("skipped: this MPI does not provide the level %s\n", argv[2]);
    else
        run(runtime);
    expect(heddle_runtime_destroy(runtime) == HEDDLE_TASK_SUCCESS, "the runtime ends");
    MPI_Finalize();
    expect(heddle_mpi_create(runtime, &mpi) == HEDDLE_TASK_INVALID, "MPI was finalised");
    return failures == 0 ? 0 : 1;
}
