/* Tasks from C, on each engine that is there: data, order, values, errors, waiting, and what is refused. */
#define _GNU_SOURCE
#include "heddle/task.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "refused.h"

static int times_plus(heddle_task_t* task) {
    uint64_t *sum, factor, addend;
    heddle_unpack(task, 0, &sum, sizeof sum);
    heddle_unpack(task, 1, &factor, sizeof factor);
    heddle_unpack(task, 2, &addend, sizeof addend);
    *sum = *sum * factor + addend;
    return 0;
}

static void a_chain_keeps_its_order(heddle_runtime_t* runtime) {
    heddle_data_t* sum = heddle_scalar_create(runtime, NULL, sizeof(uint64_t));
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const uint64_t factor = 3;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
        const heddle_argument_t arguments[] = {heddle_inout(sum), heddle_value(&factor, sizeof factor),
                                               heddle_value(&i, sizeof i)};
        const heddle_task_options_t options = {.priority = (int)(i % 3), .name = "times_plus"};
        EXPECT(heddle_insert(sequence, times_plus, arguments, 3, i % 2 ? &options : NULL) == 0);
        expected = expected * factor + i;
    }
    heddle_view_t view;
    EXPECT(heddle_data_view(sum, &view) == HEDDLE_TASK_SUCCESS);
    EXPECT(view.rows == 1 && view.columns == 1 && view.element_bytes == sizeof(uint64_t));
    EXPECT(*(uint64_t*)view.elements == expected);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(sum) == HEDDLE_TASK_SUCCESS);
}

/* (i, j) becomes row + column as the whole matrix counts them. */
static int number(heddle_task_t* task) {
    heddle_view_t tile;
    size_t row, column;
    heddle_unpack_view(task, 0, &tile);
    heddle_unpack(task, 1, &row, sizeof row);
    heddle_unpack(task, 2, &column, sizeof column);
    for (size_t j = 0; j < tile.columns; ++j)
        for (size_t i = 0; i < tile.rows; ++i)
            ((double*)tile.elements)[i + j * tile.leading] = (double)(row + i + 100 * (column + j));
    return 0;
}

static int add_up(heddle_task_t* task) {
    heddle_view_t tile, scratch;
    double *sum, *columns;
    heddle_unpack_view(task, 0, &tile);
    heddle_unpack(task, 1, &sum, sizeof sum);
    heddle_unpack(task, 2, &columns, sizeof columns);
    heddle_unpack_view(task, 2, &scratch);
    if (scratch.elements != columns || scratch.rows < tile.columns * sizeof(double)) return 1;
    memset(columns, 0, scratch.rows);
    for (size_t j = 0; j < tile.columns; ++j)
        for (size_t i = 0; i < tile.rows; ++i) columns[j] += ((double*)tile.elements)[i + j * tile.leading];
    for (size_t j = 0; j < tile.columns; ++j) *sum += columns[j];
    return heddle_argument_count(task) == 3 ? 0 : 2;
}

enum { kRows = 7, kColumns = 10, kLeading = 9, kTile = 4 };

static void tiles_cover_a_matrix(heddle_runtime_t* runtime, double* memory) {
    heddle_tiles_t* tiles =
        heddle_tiles_create(runtime, memory, kRows, kColumns, kLeading, kTile, sizeof(double));
    double total = 0;
    heddle_data_t* sum = heddle_scalar_create(runtime, &total, sizeof total);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    size_t rows, columns;
    EXPECT(heddle_tiles_count(tiles, &rows, &columns) == HEDDLE_TASK_SUCCESS);
    EXPECT(rows == 2 && columns == 3);
    for (size_t j = 0; j < columns; ++j)
        for (size_t i = 0; i < rows; ++i) {
            const size_t row = i * kTile, column = j * kTile;
            const heddle_argument_t numbers[] = {heddle_out(heddle_tile(tiles, i, j)),
                                                 heddle_value(&row, sizeof row),
                                                 heddle_value(&column, sizeof column)};
            EXPECT(heddle_insert(sequence, number, numbers, 3, NULL) == HEDDLE_TASK_SUCCESS);
            const heddle_argument_t sums[] = {heddle_in(heddle_tile(tiles, i, j)), heddle_inout(sum),
                                              heddle_scratch(kTile * sizeof(double))};
            EXPECT(heddle_insert(sequence, add_up, sums, 3, NULL) == HEDDLE_TASK_SUCCESS);
        }
    EXPECT(heddle_tiles_wait(tiles) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    double expected = 0;
    for (int j = 0; j < kColumns; ++j)
        for (int i = 0; i < kRows; ++i) {
            expected += i + 100 * j;
            EXPECT(memory == NULL || memory[i + j * kLeading] == i + 100 * j);
        }
    EXPECT(total == expected);
    heddle_view_t corner;
    EXPECT(heddle_data_view(heddle_tile(tiles, 1, 2), &corner) == HEDDLE_TASK_SUCCESS);
    EXPECT(corner.rows == 3 && corner.columns == 2);
    EXPECT(((double*)corner.elements)[1 + corner.leading] == 5 + 900);
    NO_HANDLE(heddle_tile(tiles, 2, 0), "does not exist");
    REFUSED(heddle_data_destroy(heddle_tile(tiles, 0, 0)), "destroy that");
    heddle_sequence_destroy(sequence);
    heddle_data_destroy(sum);
    EXPECT(heddle_tiles_destroy(tiles) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_tiles_wait(tiles), "not a matrix of tiles");
}

static int fail(heddle_task_t* task) {
    return heddle_task_fail(task, 42, "no pivot");
}

static int mark(heddle_task_t* task) {
    int* value;
    heddle_unpack(task, 0, &value, sizeof value);
    *value = 1;
    return 0;
}

/* Reads its first argument, marks its second. */
static int follow(heddle_task_t* task) {
    int* value;
    heddle_unpack(task, 1, &value, sizeof value);
    *value = 1;
    return 0;
}

static void a_failure_reaches_its_wait(heddle_runtime_t* runtime) {
    int values[3] = {0, 0, 0};
    heddle_data_t* data[3];
    for (int i = 0; i < 3; ++i) data[i] = heddle_scalar_create(runtime, &values[i], sizeof(int));
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t broken = heddle_inout(data[0]), other = heddle_inout(data[2]);
    const heddle_argument_t dependent[] = {heddle_in(data[0]), heddle_inout(data[1])};
    const heddle_task_options_t options = {.name = "factorise"};
    heddle_insert(sequence, fail, &broken, 1, &options);
    heddle_insert(sequence, follow, dependent, 2, NULL);
    heddle_insert(sequence, mark, &other, 1, NULL);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT_ERROR(HEDDLE_TASK_FAILED, "task factorise failed with 42: no pivot");
    EXPECT(heddle_task_error_result() == 42);
    EXPECT(values[1] == 0 && values[2] == 1);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    heddle_insert(sequence, fail, &broken, 1, NULL);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_FAILED);
    REFUSED(heddle_sequence_wait(sequence), "not a sequence");
    for (int i = 0; i < 3; ++i) EXPECT(heddle_data_destroy(data[i]) == HEDDLE_TASK_SUCCESS);
}

static int unpack_too_little(heddle_task_t* task) {
    char small;
    return heddle_unpack(task, 0, &small, sizeof small) == HEDDLE_TASK_INVALID ? 0 : 1;
}
static int unpack_beyond(heddle_task_t* task) {
    int value;
    return heddle_unpack(task, 1, &value, sizeof value) == HEDDLE_TASK_INVALID ? 0 : 1;
}
static int wait_for_itself(heddle_task_t* task) {
    heddle_sequence_t* own;
    heddle_unpack(task, 0, &own, sizeof own);
    if (heddle_sequence_wait(own) != HEDDLE_TASK_INVALID) return 1;
    if (heddle_sequence_destroy(own) != HEDDLE_TASK_INVALID) return 2;
    return 0;
}

static void what_a_task_asks_wrongly_fails_it(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t value = heddle_value(&sequence, sizeof sequence);
    heddle_insert(sequence, unpack_too_little, &value, 1, NULL);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT_ERROR(HEDDLE_TASK_FAILED, "argument 0 is a value of 8 bytes");
    heddle_insert(sequence, unpack_beyond, &value, 1, NULL);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT_ERROR(HEDDLE_TASK_FAILED, "has 1 arguments");
    heddle_insert(sequence, wait_for_itself, &value, 1, NULL);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    heddle_sequence_destroy(sequence);
}

static void what_is_inserted_wrongly_is_refused(heddle_runtime_t* runtime) {
    heddle_runtime_t* other = heddle_runtime_create(tested_engine, NULL, 1);
    heddle_data_t* foreign = heddle_scalar_create(other, NULL, sizeof(int));
    heddle_data_t* gone = heddle_vector_create(runtime, NULL, 10, sizeof(int));
    EXPECT(heddle_data_destroy(gone) == HEDDLE_TASK_SUCCESS);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_argument_t argument = heddle_inout(gone);
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "not a datum");
    argument = heddle_inout(foreign);
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "another runtime");
    argument = heddle_inout(NULL);
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "not a datum");
    argument = heddle_inout((heddle_data_t*)sequence);
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "not a datum");
    EXPECT(heddle_sequence_create((heddle_runtime_t*)sequence) == NULL);
    EXPECT_SAID("not a runtime");
    argument = heddle_value(NULL, 4);
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "argument 0");
    argument.mode = (heddle_mode_t)77;
    REFUSED(heddle_insert(sequence, mark, &argument, 1, NULL), "mode that does not exist");
    REFUSED(heddle_insert(sequence, NULL, NULL, 0, NULL), "no function");
    REFUSED(heddle_insert(sequence, mark, NULL, 1, NULL), "no array");
    REFUSED(heddle_insert(NULL, mark, NULL, 0, NULL), "not a sequence");
    argument = heddle_value(&argument, (size_t)1 << 40);
    EXPECT(heddle_insert(sequence, mark, &argument, 1, NULL) == HEDDLE_TASK_LIMIT);
    // Together with what the library adds these are few.
    for (size_t few = 0; few < 512; few += 8) {
        argument = heddle_value(&few, SIZE_MAX - few);
        EXPECT(heddle_insert(sequence, mark, &argument, 1, NULL) == HEDDLE_TASK_LIMIT);
    }
    REFUSED(heddle_data_destroy(gone), "not a datum");
    REFUSED(heddle_data_view(NULL, NULL), "no place");
    REFUSED(heddle_runtime_destroy(other), "1 sequences, data, futures or recordings are left");
    EXPECT(heddle_data_destroy(foreign) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_runtime_destroy(other) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_runtime_wait(other), "not a runtime");
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
}

static void data_that_cannot_be_are_refused(heddle_runtime_t* runtime) {
    double few[4];
    NO_HANDLE(heddle_scalar_create(runtime, NULL, 0), "0 bytes");
    NO_HANDLE(heddle_vector_create(runtime, few, 0, sizeof *few), "at least one");
    NO_HANDLE(heddle_matrix_create(runtime, few, 2, 2, 1, sizeof *few), "leading dimension");
    NO_HANDLE(heddle_tiles_create(runtime, few, 2, 2, 1, 1, sizeof *few), "leading dimension");
    NO_HANDLE(heddle_tiles_create(runtime, few, 2, 2, 2, 0, sizeof *few), "not empty");
    EXPECT(heddle_matrix_create(runtime, NULL, SIZE_MAX / 2, 16, 0, 8) == NULL);
    EXPECT(heddle_task_error() == HEDDLE_TASK_LIMIT);
    NO_HANDLE(heddle_scalar_create(NULL, few, 8), "not a runtime");
    NO_HANDLE(heddle_sequence_create((heddle_runtime_t*)-1), "not a runtime");
    NO_HANDLE(heddle_runtime_create("loom", NULL, 0), "loom");
    NO_HANDLE(heddle_runtime_create(tested_engine, NULL, -1), "-1 workers");
    const cpu_set_t none = {{0}};
    NO_HANDLE(heddle_runtime_create(tested_engine, &none, 0), "no CPU");
    REFUSED(heddle_switch_engine(runtime, NULL), "no name");
    REFUSED(heddle_switch_engine(runtime, "loom"), "loom");
}

static int block(heddle_task_t* task) {
    heddle_condition_t* condition;
    int* passed;
    heddle_unpack(task, 0, &condition, sizeof condition);
    heddle_unpack(task, 1, &passed, sizeof passed);
    if (heddle_condition_block(condition) != HEDDLE_TASK_SUCCESS) return 1;
    *passed = 1;
    return 0;
}

/* Signals when it is called for the third time. */
struct signals {
    heddle_condition_t* condition;
    int calls;
};
static bool signal_later(void* data) {
    struct signals* signals = data;
    if (++signals->calls < 3) return false;
    heddle_condition_signal(signals->condition);
    return true;
}

static void a_task_waits_for_a_condition(heddle_runtime_t* runtime) {
    heddle_condition_t* condition = heddle_condition_create();
    struct signals signals = {condition, 0};
    int passed = 0;
    heddle_data_t* data = heddle_scalar_create(runtime, &passed, sizeof passed);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t arguments[] = {heddle_value(&condition, sizeof condition), heddle_inout(data)};
    EXPECT(heddle_register_polling_service(runtime, "signals", signal_later, &signals) == 0);
    heddle_insert(sequence, block, arguments, 2, NULL);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(passed == 1 && signals.calls == 3);
    /* Its last call has returned true, or is about to. */
    (void)heddle_unregister_polling_service(runtime, signal_later, &signals);
    REFUSED(heddle_unregister_polling_service(runtime, signal_later, &signals), "");
    REFUSED(heddle_register_polling_service(runtime, "none", NULL, NULL), "no function");
    heddle_condition_signal(condition);
    REFUSED(heddle_condition_signal(condition), "");
    EXPECT(heddle_condition_block(condition) == HEDDLE_TASK_SUCCESS);
    heddle_sequence_destroy(sequence);
    heddle_data_destroy(data);
    EXPECT(heddle_condition_destroy(condition) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_condition_destroy(condition), "not a condition");
}

/* More data than an engine's fixed tables could hold. */
static void a_task_may_have_many_data(heddle_runtime_t* runtime) {
    enum { kMany = 300 };
    static int values[kMany];
    heddle_data_t* data[kMany];
    heddle_argument_t arguments[kMany];
    for (int i = 0; i < kMany; ++i) {
        values[i] = 0;
        data[i] = heddle_scalar_create(runtime, &values[i], sizeof values[i]);
        arguments[i] = heddle_inout(data[i]);
    }
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    for (int i = 0; i < kMany; ++i) heddle_insert(sequence, mark, arguments + i, (size_t)(kMany - i), NULL);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    for (int i = 0; i < kMany; ++i) {
        EXPECT(values[i] == 1);
        heddle_data_destroy(data[i]);
    }
}

static void fill_with(const heddle_view_t* copy, const void* neutral) {
    for (size_t i = 0; i < copy->rows; ++i) ((int*)copy->elements)[i] = *(const int*)neutral;
}
static void add_elements(const heddle_view_t* into, const heddle_view_t* copy) {
    for (size_t i = 0; i < into->rows; ++i) ((int*)into->elements)[i] += ((int*)copy->elements)[i];
}
static int add_one(heddle_task_t* task) {
    heddle_view_t view;
    heddle_unpack_view(task, 0, &view);
    for (size_t i = 0; i < view.rows; ++i) ++((int*)view.elements)[i];
    return 0;
}

static void tasks_add_in_any_order(heddle_runtime_t* runtime) {
    static const int zero = 0;
    static const heddle_reduction_t sum = {fill_with, add_elements, &zero};
    static const heddle_reduction_t none = {NULL, NULL, NULL};
    int values[3] = {1, 2, 3}, taken[3] = {4, 5, 6};
    heddle_data_t* reduced = heddle_vector_create(runtime, values, 3, sizeof(int));
    heddle_data_t* commuted = heddle_vector_create(runtime, taken, 3, sizeof(int));
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    cpu_set_t one = {{1}}, nothing = {{0}}, beyond = {{0}};
    beyond.__bits[15] = 1;
    const heddle_task_options_t on_one = {.cpus = &one}, on_none = {.cpus = &nothing},
                                out = {.cpus = &beyond};
    const heddle_argument_t add = heddle_redux(reduced, &sum), take = heddle_commute(commuted);
    for (int i = 0; i < 1000; ++i) {
        EXPECT(heddle_insert(sequence, add_one, &add, 1, NULL) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_insert(sequence, add_one, &take, 1, i % 100 == 0 ? &on_one : NULL) ==
               HEDDLE_TASK_SUCCESS);
    }
    heddle_view_t view;
    EXPECT(heddle_data_view(reduced, &view) == HEDDLE_TASK_SUCCESS);
    EXPECT(values[0] == 1001 && values[2] == 1003);
    EXPECT(heddle_data_view(commuted, &view) == HEDDLE_TASK_SUCCESS);
    EXPECT(taken[0] == 1004 && taken[2] == 1006);
    heddle_argument_t wrong = heddle_redux(reduced, &none);
    REFUSED(heddle_insert(sequence, add_one, &wrong, 1, NULL), "says not how");
    const heddle_argument_t twice[] = {heddle_commute(commuted), heddle_in(commuted)};
    REFUSED(heddle_insert(sequence, add_one, twice, 2, NULL), "twice");
    REFUSED(heddle_insert(sequence, add_one, &take, 1, &on_none), "");
    REFUSED(heddle_insert(sequence, add_one, &take, 1, &out), "");
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(reduced) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(commuted) == HEDDLE_TASK_SUCCESS);
}

static void a_task_may_be_near_to_something(heddle_runtime_t* runtime) {
    uint64_t sum = 1;
    heddle_data_t* data = heddle_scalar_create(runtime, &sum, sizeof sum);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const uint64_t two = 2;
    const heddle_argument_t arguments[] = {heddle_inout(data), heddle_value(&two, sizeof two),
                                           heddle_value(&two, sizeof two)};
    cpu_set_t cpus;
    EXPECT(heddle_runtime_cpus(runtime, &cpus) == HEDDLE_TASK_SUCCESS && CPU_COUNT(&cpus) > 0);
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET((size_t)last, &cpus)) --last;
    const heddle_near_t places[] = {heddle_near_cpu(last), heddle_near_numa_node(0), heddle_near_data(data)};
    for (int i = 0; i < 3; ++i) {
        const heddle_task_options_t options = {.name = "near", .near_to = places[i]};
        EXPECT(heddle_insert(sequence, times_plus, arguments, 3, &options) == HEDDLE_TASK_SUCCESS);
    }
    EXPECT(heddle_data_wait(data) == HEDDLE_TASK_SUCCESS);
    EXPECT(sum == 22);
    heddle_task_options_t wrong = {.near_to = heddle_near_cpu(100000)};
    REFUSED(heddle_insert(sequence, times_plus, arguments, 3, &wrong), "near CPU 100000");
    wrong.near_to = heddle_near_numa_node(1000);
    REFUSED(heddle_insert(sequence, times_plus, arguments, 3, &wrong), "near NUMA node 1000");
    wrong.near_to = heddle_near_data(NULL);
    REFUSED(heddle_insert(sequence, times_plus, arguments, 3, &wrong), "not a datum");
    wrong.near_to.kind = (heddle_near_kind_t)9;
    REFUSED(heddle_insert(sequence, times_plus, arguments, 3, &wrong), "kind that does not exist");
    REFUSED(heddle_runtime_cpus(runtime, NULL), "no place");
    REFUSED(heddle_runtime_cpus(NULL, &cpus), "not a runtime");
    REFUSED(heddle_data_wait(NULL), "not a datum");
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(sum == 22);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
}

static int insert_children(heddle_task_t* task) {
    heddle_runtime_t* runtime;
    uint64_t* sum;
    heddle_unpack(task, 0, &runtime, sizeof runtime);
    heddle_unpack(task, 1, &sum, sizeof sum);
    heddle_data_t* child = heddle_scalar_create(runtime, sum, sizeof *sum);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const uint64_t one = 1;
    for (uint64_t i = 0; i < 10; ++i) {
        const heddle_argument_t arguments[] = {heddle_inout(child), heddle_value(&one, sizeof one),
                                               heddle_value(&i, sizeof i)};
        heddle_insert(sequence, times_plus, arguments, 3, NULL);
    }
    if (heddle_sequence_destroy(sequence) != HEDDLE_TASK_SUCCESS)
        return heddle_task_fail(task, 1, heddle_task_error_message());
    if (heddle_data_destroy(child) != HEDDLE_TASK_SUCCESS)
        return heddle_task_fail(task, 2, heddle_task_error_message());
    return 0;
}

static void tasks_insert_tasks(heddle_runtime_t* runtime) {
    uint64_t sum = 0;
    heddle_data_t* data = heddle_scalar_create(runtime, &sum, sizeof sum);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t arguments[] = {heddle_value(&runtime, sizeof runtime), heddle_inout(data)};
    for (int i = 0; i < 100; ++i) heddle_insert(sequence, insert_children, arguments, 2, NULL);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(sum == 4500);
    heddle_data_destroy(data);
}

static void all_on(heddle_runtime_t* runtime) {
    a_chain_keeps_its_order(runtime);
    double memory[kLeading * kColumns];
    tiles_cover_a_matrix(runtime, memory);
    tiles_cover_a_matrix(runtime, NULL);
    a_failure_reaches_its_wait(runtime);
    what_a_task_asks_wrongly_fails_it(runtime);
    what_is_inserted_wrongly_is_refused(runtime);
    data_that_cannot_be_are_refused(runtime);
    a_task_waits_for_a_condition(runtime);
    a_task_may_have_many_data(runtime);
    tasks_insert_tasks(runtime);
    tasks_add_in_any_order(runtime);
    a_task_may_be_near_to_something(runtime);
}

int main(void) {
    EXPECT(heddle_task_error() == HEDDLE_TASK_SUCCESS && *heddle_task_error_message() == '\0');
    heddle_engine_t engines[16];
    const size_t count = heddle_engines(engines, 16);
    EXPECT(count >= 1 && count <= 16 && strcmp(engines[0].name, "native") == 0 && engines[0].available);
    heddle_runtime_t* travels = heddle_runtime_create(NULL, NULL, 2);
    EXPECT(strcmp(heddle_runtime_engine(travels), "native") == 0);
    for (size_t i = 0; i < count; ++i) {
        if (!engines[i].available) {
            printf("skipped: %s: %s\n", engines[i].name, engines[i].reason);
            EXPECT(heddle_runtime_create(engines[i].name, NULL, 0) == NULL);
            EXPECT(heddle_task_error() == HEDDLE_TASK_UNAVAILABLE);
            continue;
        }
        tested_engine = engines[i].name;
        heddle_runtime_t* runtime = heddle_runtime_create(tested_engine, NULL, 0);
        EXPECT(runtime != NULL);
        all_on(runtime);
        EXPECT(heddle_runtime_wait(runtime) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_runtime_destroy(runtime) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_switch_engine(travels, tested_engine) == HEDDLE_TASK_SUCCESS);
        EXPECT(strcmp(heddle_runtime_engine(travels), tested_engine) == 0);
        a_chain_keeps_its_order(travels);
    }
    EXPECT(heddle_runtime_destroy(travels) == HEDDLE_TASK_SUCCESS);
    return failures == 0 ? 0 : 1;
}
