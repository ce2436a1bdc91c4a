/* AL4SAN's interface called by tasks: their context is there until they have ended, their insertions are
 * ordered with all others, and what a task may not wait for keeps its tasks. */
#include <al4san.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "available_engines.h"
#include "runtime/al4san_openmp.h"
#include "runtime/al4san_parsec.h"
#include "runtime/al4san_quark.h"
#include "runtime/al4san_runtime.h"
#include "runtime/al4san_starpu.h"

#define REFUSED(call, code, words) EXPECT((call) == (code)), EXPECT_SAID(words)

static atomic_int ran, found, code;

static void sleep_ms(long ms) {
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

AL4SAN_TASK_CPU(count, count_one)
void count_one(AL4SAN_arg_list* arguments) {
    int* value;
    AL4SAN_Unpack_Arg(arguments, &value);
    ++*value;
    atomic_fetch_add(&ran, 1);
}

/* Inserts one of those into a sequence. */
AL4SAN_TASK_CPU(inserts, insert_one)
void insert_one(AL4SAN_arg_list* arguments) {
    AL4SAN_sequence_t* sequence;
    int *value, ms;
    AL4SAN_Unpack_Arg(arguments, &sequence, &value, &ms);
    if (ms > 0) sleep_ms(ms);
    if (AL4SAN_Thread_Size() > 0 && al4san_context_self() != NULL) atomic_fetch_add(&found, 1);
    AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_INOUT, value, AL4SAN_DEP, ARG_END);
}
static void insert_inserting(AL4SAN_sequence_t* into, AL4SAN_sequence_t* sequence, int* value, int ms) {
    AL4SAN_Insert_Task(AL4SAN_TASK(inserts), into, AL4SAN_VALUE, &sequence, sizeof(void*), AL4SAN_VALUE,
                       &value, sizeof(void*), AL4SAN_VALUE, &ms, sizeof(int), ARG_END);
}

AL4SAN_TASK_CPU(writes, write_late)
void write_late(AL4SAN_arg_list* arguments) {
    int* value;
    AL4SAN_Unpack_Arg(arguments, &value);
    sleep_ms(20);
    *value = 7;
}
AL4SAN_TASK_CPU(copies, copy_value)
void copy_value(AL4SAN_arg_list* arguments) {
    int *from, *to;
    AL4SAN_Unpack_Arg(arguments, &from, &to);
    *to = *from;
}

AL4SAN_TASK_CPU(destroys, destroy_own)
void destroy_own(AL4SAN_arg_list* arguments) {
    AL4SAN_sequence_t* sequence;
    AL4SAN_Unpack_Arg(arguments, &sequence);
    atomic_store(&code, AL4SAN_Sequence_Destroy(sequence));
}
AL4SAN_TASK_CPU(pauses, pause_all)
void pause_all(AL4SAN_arg_list* arguments) {
    (void)arguments;
    atomic_store(&code, AL4SAN_Pause());
}
AL4SAN_TASK_CPU(ends, end_all)
void end_all(AL4SAN_arg_list* arguments) {
    (void)arguments;
    atomic_store(&code, AL4SAN_Finalize());
}

/* Marks its own place, waits for one inside of it that does so, too, and looks whether its place is there. */
AL4SAN_TASK_CPU(marks, mark_place)
void mark_place(AL4SAN_arg_list* arguments) {
    atomic_int* wrong;
    AL4SAN_Unpack_Arg(arguments, &wrong);
    const int rank = AL4SAN_Thread_Rank();
    if (rank < 0 || rank >= AL4SAN_Thread_Size()) atomic_fetch_add(wrong, 1);
}
AL4SAN_TASK_CPU(waits, wait_for_one_inside)
void wait_for_one_inside(AL4SAN_arg_list* arguments) {
    atomic_int* wrong;
    AL4SAN_Unpack_Arg(arguments, &wrong);
    mark_place(arguments);
    AL4SAN_sequence_t* inner = AL4SAN_Sequence_Create();
    for (int i = 0; i < 8; ++i)
        AL4SAN_Insert_Task(AL4SAN_TASK(marks), inner, AL4SAN_VALUE, &wrong, sizeof(void*), ARG_END);
    if (AL4SAN_Sequence_Destroy(inner) != AL4SAN_SUCCESS) atomic_fetch_add(wrong, 1);
    const int rank = AL4SAN_Thread_Rank();
    if (rank < 0 || rank >= AL4SAN_Thread_Size()) atomic_fetch_add(wrong, 1);
}

static void start(void) {
    EXPECT(AL4SAN_Init(tested_engine, 2, 0) != NULL);
    atomic_store(&ran, 0);
    atomic_store(&found, 0);
}

static void the_context_is_there_until_its_tasks_have_ended(void) {
    start();
    int value = 0;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    for (int i = 0; i < 8; ++i) insert_inserting(sequence, sequence, &value, 5);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
    EXPECT(value == 8 && atomic_load(&found) == 8);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
}

/* The older sequence has been waited for by then. */
static void a_task_may_insert_into_an_older_sequence_during_a_switch(void) {
    start();
    int value = 0;
    AL4SAN_sequence_t *older = AL4SAN_Sequence_Create(), *younger = AL4SAN_Sequence_Create();
    insert_inserting(older, older, &value, 0);
    EXPECT(AL4SAN_Sequence_Wait(older) == AL4SAN_SUCCESS);
    for (int i = 0; i < 4; ++i) insert_inserting(younger, older, &value, 10);
    EXPECT(AL4SAN_Switch_Runtime(tested_engine, 1, 0) != NULL);
    EXPECT(value == 5);
    EXPECT(AL4SAN_Sequence_Destroy(older) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Destroy(younger) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void a_descriptor_goes_while_tasks_insert(void) {
    enum { kTasks = 1000 };
    start();
    AL4SAN_desc_t* desc = NULL;
    EXPECT(AL4SAN_Matrix_Create(&desc, NULL, Al4sanInteger, AL4SAN_Col_Major, 4, 4, 4, 8, 8, 8) ==
           AL4SAN_SUCCESS);
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_INOUT, AL4SAN_ADDR(desc, int, 0, 0), AL4SAN_DEP,
                       ARG_END);
    int* values = calloc(kTasks, sizeof(int));
    for (int i = 0; i < kTasks; ++i) insert_inserting(sequence, sequence, &values[i], 0);
    EXPECT(AL4SAN_Desc_Destroy(&desc) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(atomic_load(&ran) == kTasks + 1);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
    free(values);
}

static void sequences_are_ordered_whoever_uses_them_first(void) {
    start();
    int first = 0, value = 0, copy = 0, *to = &copy;
    AL4SAN_sequence_t *a = AL4SAN_Sequence_Create(), *b = AL4SAN_Sequence_Create();
    insert_inserting(a, b, &first, 0);
    EXPECT(AL4SAN_Sequence_Wait(a) == AL4SAN_SUCCESS);
    AL4SAN_Insert_Task(AL4SAN_TASK(writes), a, AL4SAN_OUTPUT, &value, AL4SAN_DEP, ARG_END);
    AL4SAN_Insert_Task(AL4SAN_TASK(copies), b, AL4SAN_INPUT, &value, AL4SAN_DEP, AL4SAN_VALUE, &to,
                       sizeof(void*), ARG_END);
    EXPECT(AL4SAN_Barrier() == AL4SAN_SUCCESS);
    EXPECT(first == 1 && copy == 7);
    EXPECT(AL4SAN_Sequence_Destroy(a) == AL4SAN_SUCCESS && AL4SAN_Sequence_Destroy(b) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

/* And those after it in the sequence run. */
#define REFUSED_IN_TASK(name)                                                                             \
    do {                                                                                                  \
        int value = 0;                                                                                    \
        AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();                                           \
        atomic_store(&code, 1);                                                                           \
        AL4SAN_Insert_Task(AL4SAN_TASK(name), sequence, AL4SAN_VALUE, &sequence, sizeof(void*), ARG_END); \
        while (atomic_load(&code) == 1) sleep_ms(1);                                                      \
        EXPECT(atomic_load(&code) == AL4SAN_ERR_ILLEGAL_VALUE);                                           \
        for (int i = 0; i < 10; ++i)                                                                      \
            AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_INOUT, &value, AL4SAN_DEP, ARG_END);  \
        EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);                                      \
        EXPECT(value == 10);                                                                              \
    } while (0)

static void what_a_task_may_not_do_is_refused_and_changes_nothing(void) {
    start();
    REFUSED_IN_TASK(destroys);
    REFUSED_IN_TASK(pauses);
    REFUSED_IN_TASK(ends);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void a_wait_that_is_refused_fails_nothing(void) {
    start();
    int value = 0;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    EXPECT(AL4SAN_Pause() == AL4SAN_SUCCESS);
    for (int i = 0; i < 10; ++i)
        AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_INOUT, &value, AL4SAN_DEP, ARG_END);
    REFUSED(AL4SAN_Sequence_Wait(sequence), AL4SAN_ERR_ILLEGAL_VALUE, "paused");
    EXPECT(AL4SAN_Resume() == AL4SAN_SUCCESS && AL4SAN_Barrier() == AL4SAN_SUCCESS);
    EXPECT(value == 10 && AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void a_grid_of_processes_is_refused_by_each_descriptor(void) {
    start();
    AL4SAN_desc_t* desc = NULL;
    AL4SAN_Init_Processor_Grid(2, 2);
    REFUSED(AL4SAN_Matrix_Create(&desc, NULL, Al4sanRealDouble, AL4SAN_Col_Major, 4, 4, 4, 8, 8, 8),
            AL4SAN_ERR_NOT_SUPPORTED, "2 x 2 processes");
    REFUSED(AL4SAN_Vector_Create(&desc, NULL, Al4sanRealDouble, 4, 8), AL4SAN_ERR_NOT_SUPPORTED,
            "2 x 2 processes");
    AL4SAN_Init_Processor_Grid(1, 1);
    EXPECT(AL4SAN_Vector_Create(&desc, NULL, Al4sanRealDouble, 4, 8) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Desc_Destroy(&desc) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void ranks_are_below_the_size_while_tasks_wait(void) {
    start();
    atomic_int wrong = 0, *to = &wrong;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    for (int i = 0; i < 100; ++i)
        AL4SAN_Insert_Task(AL4SAN_TASK(waits), sequence, AL4SAN_VALUE, &to, sizeof(void*), ARG_END);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(atomic_load(&wrong) == 0);
    EXPECT(AL4SAN_Thread_Rank() == -1 || AL4SAN_Thread_Rank() == 0);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void nothing_runs_while_all_is_paused(void) {
    for (int round = 0; round < 20; ++round) {
        start();
        int value = 0;
        AL4SAN_sequence_t *older = AL4SAN_Sequence_Create(), *younger = AL4SAN_Sequence_Create();
        for (int i = 0; i < 1000; ++i) insert_inserting(younger, older, &value, 0);
        EXPECT(AL4SAN_Pause() == AL4SAN_SUCCESS);
        const int before = atomic_load(&ran);
        sleep_ms(2);
        EXPECT(atomic_load(&ran) == before);
        EXPECT(AL4SAN_Resume() == AL4SAN_SUCCESS && AL4SAN_Barrier() == AL4SAN_SUCCESS);
        EXPECT(value == 1000);
        EXPECT(AL4SAN_Sequence_Destroy(older) == AL4SAN_SUCCESS);
        EXPECT(AL4SAN_Sequence_Destroy(younger) == AL4SAN_SUCCESS);
        EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
    }
}

static void a_workspace_of_options_stays_until_they_release_it(void) {
    enum { kBytes = 4096, kBlocks = 64 };
    start();
    int value = 0;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    AL4SAN_request_t request = AL4SAN_REQUEST_INITIALIZER;
    AL4SAN_option_t options;
    AL4SAN_Options_Init(&options, sequence, &request);
    EXPECT(AL4SAN_Options_Workspace_Alloc(&options, 0, kBytes) == AL4SAN_SUCCESS);
    memset(options.ws_host, 0x5a, kBytes);
    AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_INOUT, &value, AL4SAN_DEP, ARG_END);
    EXPECT(AL4SAN_Sequence_Wait(sequence) == AL4SAN_SUCCESS);
    void* blocks[kBlocks];
    for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBytes), 1, kBytes);
    for (int i = 0; i < kBytes; ++i)
        if (((unsigned char*)options.ws_host)[i] != 0x5a) ++failures;
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
    EXPECT(AL4SAN_Options_Workspace_Free(&options) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

static void all_on(const char* engine) {
    (void)engine;
    the_context_is_there_until_its_tasks_have_ended();
    a_task_may_insert_into_an_older_sequence_during_a_switch();
    a_descriptor_goes_while_tasks_insert();
    sequences_are_ordered_whoever_uses_them_first();
    what_a_task_may_not_do_is_refused_and_changes_nothing();
    a_wait_that_is_refused_fails_nothing();
    a_grid_of_processes_is_refused_by_each_descriptor();
    ranks_are_below_the_size_while_tasks_wait();
    nothing_runs_while_all_is_paused();
    a_workspace_of_options_stays_until_they_release_it();
}

int main(void) {
    for_each_available_engine(all_on);
    return failures == 0 ? 0 : 1;
}
