/* Futures from C, on each engine that is there: results, order, errors, cancellation, and what is refused. */
#include <stdint.h>

#include "each_engine.h"

static int square(heddle_task_t* task) {
    int64_t number = 0;
    heddle_unpack(task, 0, &number, sizeof number);
    number *= number;
    return heddle_give(task, &number, sizeof number) == HEDDLE_TASK_SUCCESS ? 0 : 1;
}

/* Adds up all results that it is given. */
static int add(heddle_task_t* task) {
    int64_t sum = 0, number;
    for (size_t i = 0; i < heddle_argument_count(task); ++i) {
        heddle_view_t view;
        heddle_unpack(task, i, &number, sizeof number);
        heddle_unpack_view(task, i, &view);
        if (view.rows != sizeof number || memcmp(view.elements, &number, sizeof number) != 0) return 1;
        sum += number;
    }
    heddle_give(task, &sum, sizeof sum);
    return 0;
}

static heddle_future_t* square_of(heddle_sequence_t* sequence, int64_t number) {
    const heddle_argument_t argument = heddle_value(&number, sizeof number);
    const heddle_task_options_t options = {.priority = 1, .name = "square"};
    return heddle_async(sequence, square, &argument, 1, sizeof number, &options);
}

static void results_feed_other_tasks(heddle_runtime_t* runtime) {
    enum { kFew = 10 };
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_future_t* squares[kFew];
    heddle_argument_t arguments[kFew];
    for (int i = 0; i < kFew; ++i) {
        squares[i] = square_of(sequence, i);
        arguments[i] = heddle_result_of(squares[i]);
    }
    heddle_future_t* sum = heddle_async(sequence, add, arguments, kFew, sizeof(int64_t), NULL);
    int64_t result = 0;
    for (int i = 1; i < kFew; ++i) EXPECT(heddle_future_destroy(squares[i]) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_get(sum, &result, sizeof result) == HEDDLE_TASK_SUCCESS && result == 285);
    EXPECT(heddle_future_get(sum, &result, sizeof result) == HEDDLE_TASK_SUCCESS && result == 285);
    bool ready = false;
    EXPECT(heddle_future_ready(squares[0], &ready) == HEDDLE_TASK_SUCCESS && ready);
    EXPECT(heddle_future_destroy(squares[0]) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    /* A result outlives the sequence that its task was of. */
    EXPECT(heddle_future_get(sum, &result, sizeof result) == HEDDLE_TASK_SUCCESS && result == 285);
    EXPECT(heddle_future_destroy(sum) == HEDDLE_TASK_SUCCESS);
}

static int wait_for_condition(heddle_task_t* task) {
    heddle_condition_t* condition;
    int* passed;
    heddle_unpack(task, 0, &condition, sizeof condition);
    heddle_unpack(task, 1, &passed, sizeof passed);
    if (heddle_condition_block(condition) != HEDDLE_TASK_SUCCESS) return 1;
    *passed = 1;
    return 0;
}

static int look(heddle_task_t* task) {
    const int* passed;
    heddle_unpack(task, 0, &passed, sizeof passed);
    return heddle_argument_count(task) == 2 && *passed == 1 ? 0 : 1;
}

static void a_task_follows_a_future_without_a_result(heddle_runtime_t* runtime) {
    int passed = 0;
    int* where = &passed;
    heddle_condition_t* condition = heddle_condition_create();
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_argument_t waits[] = {heddle_value(&condition, sizeof condition),
                                       heddle_value(&where, sizeof where)};
    heddle_future_t* end = heddle_async(sequence, wait_for_condition, waits, 2, 0, NULL);
    const heddle_argument_t looks[] = {heddle_value(&where, sizeof where), heddle_after(end)};
    EXPECT(heddle_insert(sequence, look, looks, 2, NULL) == HEDDLE_TASK_SUCCESS);
    bool ready = true;
    EXPECT(heddle_future_ready(end, &ready) == HEDDLE_TASK_SUCCESS && !ready);
    EXPECT(heddle_condition_signal(condition) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_wait(end) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_get(end, NULL, 0) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    heddle_future_destroy(end);
    heddle_condition_destroy(condition);
}

/* Children whose results their parent waits for. */
static int fibonacci(heddle_task_t* task) {
    heddle_runtime_t* runtime;
    int64_t n;
    heddle_unpack(task, 0, &runtime, sizeof runtime);
    heddle_unpack(task, 1, &n, sizeof n);
    int64_t results[2] = {n, 0};
    if (n > 1) {
        heddle_sequence_t* sequence = heddle_sequence_create(runtime);
        heddle_future_t* children[2];
        for (int i = 0; i < 2; ++i) {
            const int64_t less = n - 1 - i;
            const heddle_argument_t arguments[] = {heddle_value(&runtime, sizeof runtime),
                                                   heddle_value(&less, sizeof less)};
            children[i] = heddle_async(sequence, fibonacci, arguments, 2, sizeof n, NULL);
        }
        for (int i = 0; i < 2; ++i) {
            if (heddle_future_get(children[i], &results[i], sizeof n) != HEDDLE_TASK_SUCCESS) return 1;
            heddle_future_destroy(children[i]);
        }
        if (heddle_sequence_destroy(sequence) != HEDDLE_TASK_SUCCESS) return 2;
    }
    const int64_t sum = results[0] + results[1];
    return heddle_give(task, &sum, sizeof sum) == HEDDLE_TASK_SUCCESS ? 0 : 3;
}

static void tasks_wait_for_results(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const int64_t n = 7;
    const heddle_argument_t arguments[] = {heddle_value(&runtime, sizeof runtime),
                                           heddle_value(&n, sizeof n)};
    heddle_future_t* future = heddle_async(sequence, fibonacci, arguments, 2, sizeof n, NULL);
    int64_t result = 0;
    EXPECT(heddle_future_get(future, &result, sizeof result) == HEDDLE_TASK_SUCCESS && result == 13);
    heddle_future_destroy(future);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
}

static int fail(heddle_task_t* task) {
    const int64_t given = 3;
    heddle_give(task, &given, sizeof given);
    return heddle_task_fail(task, 42, "no pivot");
}
static int give_nothing(heddle_task_t* task) {
    (void)task;
    return 0;
}
static int give_too_much(heddle_task_t* task) {
    const int64_t much[2] = {1, 2};
    return heddle_give(task, much, sizeof much) == HEDDLE_TASK_INVALID ? 0 : 1;
}

static void errors_reach_who_waits(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_task_options_t named = {.name = "factorise"};
    heddle_future_t* broken = heddle_async(sequence, fail, NULL, 0, sizeof(int64_t), &named);
    heddle_argument_t argument = heddle_result_of(broken);
    heddle_future_t* cancelled = heddle_async(sequence, add, &argument, 1, sizeof(int64_t), NULL);
    int64_t result = 7;
    EXPECT(heddle_future_get(cancelled, &result, sizeof result) == HEDDLE_TASK_FAILED);
    EXPECT_ERROR(HEDDLE_TASK_FAILED, "task factorise failed with 42: no pivot");
    EXPECT(heddle_future_get(broken, &result, sizeof result) == HEDDLE_TASK_FAILED);
    EXPECT(heddle_task_error_result() == 42 && result == 7);
    EXPECT(heddle_future_wait(broken) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    /* The failure was told, so what is inserted now runs, and finds it when it looks. */
    heddle_future_t* late = heddle_async(sequence, add, &argument, 1, sizeof(int64_t), NULL);
    EXPECT(heddle_future_get(late, &result, sizeof result) == HEDDLE_TASK_FAILED);
    EXPECT_SAID("no pivot");
    (void)heddle_sequence_wait(sequence);
    heddle_future_t* nothing = heddle_async(sequence, give_nothing, NULL, 0, 8, NULL);
    EXPECT(heddle_future_get(nothing, &result, 8) == HEDDLE_TASK_FAILED);
    EXPECT_SAID("has given nothing");
    heddle_future_t* much = heddle_async(sequence, give_too_much, NULL, 0, 8, NULL);
    EXPECT(heddle_future_get(much, &result, 8) == HEDDLE_TASK_FAILED);
    EXPECT_SAID("is to give 8 bytes, and gives 16");
    (void)heddle_sequence_wait(sequence);
    EXPECT(heddle_insert(sequence, square, NULL, 0, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    heddle_future_t* all[] = {broken, cancelled, late, nothing, much};
    for (int i = 0; i < 5; ++i) EXPECT(heddle_future_destroy(all[i]) == HEDDLE_TASK_SUCCESS);
}

struct own {
    heddle_condition_t* known;
    heddle_future_t* future;
};
static int wait_for_itself(heddle_task_t* task) {
    const struct own* own;
    heddle_unpack(task, 0, &own, sizeof own);
    if (heddle_condition_block(own->known) != HEDDLE_TASK_SUCCESS) return 1;
    return heddle_future_wait(own->future) == HEDDLE_TASK_INVALID ? 0 : 2;
}
static int give_without_a_future(heddle_task_t* task) {
    return heddle_give(task, &task, sizeof task) == HEDDLE_TASK_INVALID ? 0 : 1;
}
static int unpack_what_it_follows(heddle_task_t* task) {
    int64_t number;
    return heddle_unpack(task, 0, &number, sizeof number) == HEDDLE_TASK_INVALID ? 0 : 1;
}

static void what_never_could_be_is_refused(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_future_t* future = square_of(sequence, 3);
    int64_t result;
    bool ready;
    REFUSED(heddle_future_get(future, &result, 4), "has 8 bytes");
    REFUSED(heddle_future_get(future, NULL, 8), "no place");
    REFUSED(heddle_future_ready(future, NULL), "no place");
    heddle_argument_t argument = heddle_after(NULL);
    REFUSED(heddle_insert(sequence, add, &argument, 1, NULL), "not a future");
    NO_HANDLE(heddle_async(sequence, add, &argument, 1, 8, NULL), "not a future");
    NO_HANDLE(heddle_async(NULL, add, NULL, 0, 8, NULL), "not a sequence");
    NO_HANDLE(heddle_async(sequence, NULL, NULL, 0, 8, NULL), "no function");
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* which end who asks for so much */
    EXPECT(heddle_async(sequence, add, NULL, 0, SIZE_MAX / 2, NULL) == NULL);
    EXPECT(heddle_task_error() == HEDDLE_TASK_LIMIT);
#endif
    heddle_future_t* end = heddle_async(sequence, give_nothing, NULL, 0, 0, NULL);
    argument = heddle_result_of(end);
    REFUSED(heddle_insert(sequence, add, &argument, 1, NULL), "gives no bytes");
    heddle_runtime_t* other = heddle_runtime_create(tested_engine, NULL, 1);
    heddle_sequence_t* others = heddle_sequence_create(other);
    argument = heddle_after(future);
    REFUSED(heddle_insert(others, give_nothing, &argument, 1, NULL), "another runtime");
    EXPECT(heddle_sequence_destroy(others) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_runtime_destroy(other) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_insert(sequence, give_without_a_future, NULL, 0, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT_SAID("has no future");
    EXPECT(heddle_insert(sequence, unpack_what_it_follows, &argument, 1, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_FAILED);
    EXPECT_SAID("heddle_result_of()");
    REFUSED(heddle_runtime_destroy(runtime), "3 sequences, data, futures or recordings are left");
    EXPECT(heddle_future_destroy(end) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_destroy(future) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_future_destroy(future), "not a future");
    REFUSED(heddle_future_get(future, &result, 8), "not a future");
    REFUSED(heddle_future_wait(future), "not a future");
    REFUSED(heddle_future_ready(NULL, &ready), "not a future");
    REFUSED(heddle_insert(sequence, give_nothing, &argument, 1, NULL), "not a future");
    REFUSED(heddle_give(NULL, &result, 8), "no task");

    struct own own = {heddle_condition_create(), NULL};
    const struct own* where = &own;
    argument = heddle_value(&where, sizeof where);
    own.future = heddle_async(sequence, wait_for_itself, &argument, 1, 0, NULL);
    heddle_condition_signal(own.known);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    heddle_future_destroy(own.future);
    heddle_condition_destroy(own.known);
}

struct pair {
    heddle_condition_t* known[2];
    heddle_future_t* futures[2];
    int refused[2];
};
static int wait_for_the_other(heddle_task_t* task) {
    struct pair* pair;
    int self;
    heddle_unpack(task, 0, &pair, sizeof pair);
    heddle_unpack(task, 1, &self, sizeof self);
    if (heddle_condition_block(pair->known[self]) != HEDDLE_TASK_SUCCESS) return 1;
    if (heddle_future_wait(pair->futures[1 - self]) == HEDDLE_TASK_SUCCESS) return 0;
    EXPECT_ERROR(HEDDLE_TASK_INVALID, "neither would ever be done");
    pair->refused[self] = 1;
    return 0;
}

static void of_two_that_wait_for_each_other_one_is_refused(heddle_runtime_t* runtime) {
    struct pair pair = {{NULL, NULL}, {NULL, NULL}, {0, 0}};
    struct pair* where = &pair;
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    const heddle_task_options_t options = {.name = "waits"};
    for (int i = 0; i < 2; ++i) {
        pair.known[i] = heddle_condition_create();
        const heddle_argument_t arguments[] = {heddle_value(&where, sizeof where),
                                               heddle_value(&i, sizeof i)};
        pair.futures[i] = heddle_async(sequence, wait_for_the_other, arguments, 2, 0, &options);
    }
    for (int i = 0; i < 2; ++i) heddle_condition_signal(pair.known[i]);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(pair.refused[0] + pair.refused[1] == 1);
    for (int i = 0; i < 2; ++i) {
        EXPECT(heddle_future_destroy(pair.futures[i]) == HEDDLE_TASK_SUCCESS);
        EXPECT(heddle_condition_destroy(pair.known[i]) == HEDDLE_TASK_SUCCESS);
    }
}

/* Futures that are waited for, read, dropped at once, and cancelled. */
static void once(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_future_t* broken = heddle_async(sequence, fail, NULL, 0, sizeof(int64_t), NULL);
    heddle_argument_t arguments[] = {heddle_result_of(broken), heddle_result_of(square_of(sequence, 4))};
    heddle_future_t* square_4 = (heddle_future_t*)arguments[1].pointer;
    heddle_future_t* sum = heddle_async(sequence, add, arguments + 1, 1, sizeof(int64_t), NULL);
    heddle_future_t* never = heddle_async(sequence, add, arguments, 2, sizeof(int64_t), NULL);
    EXPECT(heddle_future_destroy(square_4) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_destroy(square_of(sequence, 5)) == HEDDLE_TASK_SUCCESS);
    int64_t result = 0;
    EXPECT(heddle_future_get(sum, &result, sizeof result) == HEDDLE_TASK_SUCCESS && result == 16);
    EXPECT(heddle_future_destroy(never) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_FAILED);
    EXPECT(heddle_future_destroy(sum) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_destroy(broken) == HEDDLE_TASK_SUCCESS);
}

static void all_on(heddle_runtime_t* runtime) {
    results_feed_other_tasks(runtime);
    a_task_follows_a_future_without_a_result(runtime);
    tasks_wait_for_results(runtime);
    errors_reach_who_waits(runtime);
    what_never_could_be_is_refused(runtime);
    of_two_that_wait_for_each_other_one_is_refused(runtime);
    thousands_of_times(once, runtime);
}

int main(void) {
    on_each_engine(all_on);
    return failures == 0 ? 0 : 1;
}
