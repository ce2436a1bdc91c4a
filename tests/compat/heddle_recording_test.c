/* Recordings from C, on each engine that is there: replays, values, copies, errors, and what is refused. */
#include "heddle/recording.h"

#include <stdint.h>
#include <stdlib.h>

#include "each_engine.h"

/* sum = sum * factor + addend, and spoils the value that it was given. */
static int times_plus(heddle_task_t* task) {
    uint64_t *sum, factor;
    heddle_view_t addend;
    heddle_unpack(task, 0, &sum, sizeof sum);
    heddle_unpack(task, 1, &factor, sizeof factor);
    heddle_unpack_view(task, 2, &addend);
    *sum = *sum * factor + *(uint64_t*)addend.elements;
    *(uint64_t*)addend.elements = 1000;
    return 0;
}

static heddle_task_ret_t record_step(heddle_recording_t* recording, heddle_data_t* sum, uint64_t addend) {
    const uint64_t factor = 3;
    const heddle_argument_t arguments[] = {heddle_inout(sum), heddle_value(&factor, sizeof factor),
                                           heddle_value(&addend, sizeof addend)};
    const heddle_task_options_t options = {.name = "times_plus"};
    return heddle_record(recording, times_plus, arguments, 3, &options);
}

static void replays_are_as_recorded(heddle_runtime_t* runtime) {
    uint64_t sum = 1, expected = 1;
    heddle_data_t* data = heddle_scalar_create(runtime, &sum, sizeof sum);
    heddle_recording_t* step = heddle_recording_create(runtime);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    for (uint64_t i = 0; i < 5; ++i) EXPECT(record_step(step, data, i) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_recording_size(step) == 5 && sum == 1);
    for (int round = 0; round < 100; ++round) {
        EXPECT(heddle_replay(step, sequence) == HEDDLE_TASK_SUCCESS);
        for (uint64_t i = 0; i < 5; ++i) expected = expected * 3 + i;
    }
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(sum == expected);
    REFUSED(record_step(step, data, 1), "takes no more tasks");
    EXPECT(heddle_replay(step, sequence) == HEDDLE_TASK_SUCCESS);
    /* Waits for the last replay. */
    EXPECT(heddle_recording_destroy(step) == HEDDLE_TASK_SUCCESS);
    for (uint64_t i = 0; i < 5; ++i) expected = expected * 3 + i;
    EXPECT(sum == expected);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
}

static void fill_with(const heddle_view_t* copy, const void* neutral) {
    for (size_t i = 0; i < copy->rows; ++i) ((int*)copy->elements)[i] = *(const int*)neutral;
}
static void add_elements(const heddle_view_t* into, const heddle_view_t* copy) {
    for (size_t i = 0; i < into->rows; ++i) ((int*)into->elements)[i] += ((int*)copy->elements)[i];
}
static const int zero = 0;
static const heddle_reduction_t sum_up = {fill_with, add_elements, &zero};

/* Adds a large value's elements, over scratch memory, to its first argument. */
enum { kMany = 300 };
static int add_large(heddle_task_t* task) {
    heddle_view_t view, given;
    int* scratch;
    heddle_unpack_view(task, 0, &view);
    heddle_unpack_view(task, 1, &given);
    heddle_unpack(task, 2, &scratch, sizeof scratch);
    if (given.rows != kMany * sizeof(int)) return 1;
    memcpy(scratch, given.elements, given.rows);
    memset(given.elements, 77, given.rows);
    for (size_t i = 0; i < view.rows; ++i) ((int*)view.elements)[i] += scratch[i];
    return 0;
}

static void copies_are_of_one_replay(heddle_runtime_t* runtime) {
    int reduced[kMany] = {0}, commuted[kMany] = {0}, large[kMany];
    for (int i = 0; i < kMany; ++i) large[i] = i;
    heddle_data_t* reduces = heddle_vector_create(runtime, reduced, kMany, sizeof(int));
    heddle_data_t* commutes = heddle_vector_create(runtime, commuted, kMany, sizeof(int));
    heddle_recording_t* step = heddle_recording_create(runtime);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t first[] = {heddle_redux(reduces, &sum_up), heddle_value(large, sizeof large),
                                       heddle_scratch(sizeof large)};
    const heddle_argument_t second[] = {heddle_commute(commutes), heddle_value(large, sizeof large),
                                        heddle_scratch(sizeof large)};
    for (int i = 0; i < 4; ++i) {
        EXPECT(heddle_record(step, add_large, first, 3, NULL) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_record(step, add_large, second, 3, NULL) == HEDDLE_TASK_SUCCESS);
    }
    for (int round = 0; round < 25; ++round) EXPECT(heddle_replay(step, sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_recording_destroy(step) == HEDDLE_TASK_SUCCESS);
    for (int i = 0; i < kMany; ++i) EXPECT(reduced[i] == 100 * i && commuted[i] == 100 * i);
    EXPECT(heddle_data_destroy(reduces) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(commutes) == HEDDLE_TASK_SUCCESS);
}

static int fail_at_three(heddle_task_t* task) {
    int* calls;
    heddle_unpack(task, 0, &calls, sizeof calls);
    return ++*calls == 3 ? heddle_task_fail(task, 9, "the third") : 0;
}

static void a_failure_reaches_the_sequence_of_its_replay(heddle_runtime_t* runtime) {
    int calls = 0;
    heddle_data_t* data = heddle_scalar_create(runtime, &calls, sizeof calls);
    heddle_recording_t* step = heddle_recording_create(runtime);
    const heddle_argument_t argument = heddle_inout(data);
    EXPECT(heddle_record(step, fail_at_three, &argument, 1, NULL) == HEDDLE_TASK_SUCCESS);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    for (int i = 1; i <= 4; ++i) {
        EXPECT(heddle_replay(step, sequence) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_sequence_wait(sequence) == (i == 3 ? HEDDLE_TASK_FAILED : HEDDLE_TASK_SUCCESS));
    }
    EXPECT_ERROR(HEDDLE_TASK_FAILED, "failed with 9: the third");
    EXPECT(heddle_task_error_result() == 9 && calls == 4);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_recording_destroy(step) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
}

struct inside {
    heddle_runtime_t* runtime;
    heddle_recording_t* recording;
    int refused;
};
static int use_own_recording(heddle_task_t* task) {
    struct inside* inside;
    heddle_unpack(task, 0, &inside, sizeof inside);
    heddle_sequence_t* sequence = heddle_sequence_create(inside->runtime);
    if (heddle_replay(inside->recording, sequence) == HEDDLE_TASK_INVALID) ++inside->refused;
    if (heddle_recording_destroy(inside->recording) == HEDDLE_TASK_INVALID) ++inside->refused;
    return heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS ? 0 : 1;
}

static void a_recorded_task_cannot_use_its_recording(heddle_runtime_t* runtime) {
    struct inside inside = {runtime, heddle_recording_create(runtime), 0};
    struct inside* where = &inside;
    const heddle_argument_t argument = heddle_value(&where, sizeof where);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_record(inside.recording, use_own_recording, &argument, 1, NULL);
    EXPECT(heddle_replay(inside.recording, sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(inside.refused == 2);
    EXPECT(heddle_recording_destroy(inside.recording) == HEDDLE_TASK_SUCCESS);
}

static int nothing(heddle_task_t* task) {
    (void)task;
    return 0;
}

static void what_never_could_be_is_refused(heddle_runtime_t* runtime) {
    heddle_recording_t* recording = heddle_recording_create(runtime);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_future_t* future = heddle_async(sequence, nothing, NULL, 0, 0, NULL);
    heddle_data_t* data = heddle_vector_create(runtime, NULL, 4, sizeof(int));
    heddle_argument_t argument = heddle_after(future);
    REFUSED(heddle_record(recording, nothing, &argument, 1, NULL), "a recorded task cannot have");
    REFUSED(heddle_record(recording, NULL, NULL, 0, NULL), "no function");
    REFUSED(heddle_record(recording, nothing, NULL, 2, NULL), "no array");
    REFUSED(heddle_record(NULL, nothing, NULL, 0, NULL), "not a recording");
    argument = heddle_in(NULL);
    REFUSED(heddle_record(recording, nothing, &argument, 1, NULL), "not a datum");
    EXPECT(heddle_recording_size(recording) == 0);
    argument = heddle_inout(data);
    EXPECT(heddle_record(recording, nothing, &argument, 1, NULL) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_replay(recording, NULL), "not a sequence");
    REFUSED(heddle_replay(NULL, sequence), "not a recording");
    NO_HANDLE(heddle_recording_create(NULL), "not a runtime");
    heddle_runtime_t* other = heddle_runtime_create(tested_engine, NULL, 1);
    heddle_sequence_t* others = heddle_sequence_create(other);
    REFUSED(heddle_replay(recording, others), "another runtime");
    EXPECT(heddle_sequence_destroy(others) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_runtime_destroy(other) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_replay(recording, sequence), "released meanwhile");
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_destroy(future) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_runtime_destroy(runtime), "1 sequences, data, futures or recordings are left");
    EXPECT(heddle_recording_destroy(recording) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_recording_destroy(recording), "not a recording");
    EXPECT(heddle_recording_size(recording) == 0);
    EXPECT_ERROR(HEDDLE_TASK_INVALID, "not a recording");
}

static void once(heddle_runtime_t* runtime) {
    heddle_data_t* data = heddle_vector_create(runtime, NULL, kMany, sizeof(int));
    heddle_recording_t* step = heddle_recording_create(runtime);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    int large[kMany] = {0};
    const heddle_argument_t arguments[] = {heddle_redux(data, &sum_up), heddle_value(large, sizeof large),
                                           heddle_scratch(sizeof large)};
    for (int i = 0; i < 3; ++i) heddle_record(step, add_large, arguments, 3, NULL);
    for (int i = 0; i < 2; ++i) EXPECT(heddle_replay(step, sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_recording_destroy(step) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
}

static void all_on(heddle_runtime_t* runtime) {
    replays_are_as_recorded(runtime);
    copies_are_of_one_replay(runtime);
    a_failure_reaches_the_sequence_of_its_replay(runtime);
    a_recorded_task_cannot_use_its_recording(runtime);
    what_never_could_be_is_refused(runtime);
    thousands_of_times(once, runtime);
}

int main(void) {
    on_each_engine(all_on);
    return failures == 0 ? 0 : 1;
}
