/* Waits of tasks for times and descriptors from C, on each engine that is there. */
#define _GNU_SOURCE
#include "heddle/await.h"

#include <time.h>
#include <unistd.h>

#include "each_engine.h"

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int nap(heddle_task_t* task) {
    const int64_t begin = now();
    if (heddle_sleep_for(2000000) != HEDDLE_TASK_SUCCESS) return 1;
    if (now() < begin + 2000000) return heddle_task_fail(task, 2, "woke too early");
    if (heddle_sleep_until(now() + 1000000) != HEDDLE_TASK_SUCCESS) return 3;
    if (heddle_sleep_until(begin) != HEDDLE_TASK_SUCCESS || heddle_sleep_for(-1) != HEDDLE_TASK_SUCCESS)
        return 4;
    return 0;
}

static int read_one(heddle_task_t* task) {
    int fd;
    char got;
    heddle_unpack(task, 0, &fd, sizeof fd);
    if (heddle_wait_readable(fd, now() + 1000000) != HEDDLE_TASK_TIMEOUT) return 1;
    heddle_condition_t* looked;
    heddle_unpack(task, 1, &looked, sizeof looked);
    heddle_condition_signal(looked);
    if (heddle_wait_readable(fd, HEDDLE_NO_DEADLINE) != HEDDLE_TASK_SUCCESS) return 2;
    return read(fd, &got, 1) == 1 && got == 'x' ? 0 : 3;
}

static void all_on(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    for (int i = 0; i < 8; ++i) EXPECT(heddle_insert(sequence, nap, NULL, 0, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    int ends[2];
    EXPECT(pipe(ends) == 0);
    heddle_condition_t* looked = heddle_condition_create();
    const heddle_argument_t arguments[] = {heddle_value(&ends[0], sizeof ends[0]),
                                           heddle_value(&looked, sizeof looked)};
    heddle_future_t* reader = heddle_async(sequence, read_one, arguments, 2, 0, NULL);
    EXPECT(heddle_condition_block(looked) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_wait_writable(ends[1], HEDDLE_NO_DEADLINE) == HEDDLE_TASK_SUCCESS);
    EXPECT(write(ends[1], "x", 1) == 1);
    EXPECT(heddle_future_get(reader, NULL, 0) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_future_destroy(reader) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_condition_destroy(looked) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_wait_readable(ends[0], 0) == HEDDLE_TASK_TIMEOUT);
    close(ends[0]);
    close(ends[1]);
    REFUSED(heddle_wait_readable(ends[0], 0), "not open");
    REFUSED(heddle_wait_writable(-1, HEDDLE_NO_DEADLINE), "not open");
    REFUSED(heddle_sleep_until(HEDDLE_NO_DEADLINE), "never comes");
    REFUSED(heddle_sleep_for(INT64_MAX), "never comes");
}

int main(void) {
    on_each_engine(all_on);
    return failures == 0 ? 0 : 1;
}
