/* Uses the C interface of tasks on each engine that is installed. */
#include <heddle/task.h>
#include <string.h>

static int add(heddle_task_t* task) {
    int *sum, addend;
    heddle_unpack(task, 0, &sum, sizeof sum);
    heddle_unpack(task, 1, &addend, sizeof addend);
    *sum += addend;
    return 0;
}

static int sum_on(const char* engine) {
    int sum = 0;
    heddle_runtime_t* runtime = heddle_runtime_create(engine, NULL, 0);
    heddle_data_t* data = heddle_scalar_create(runtime, &sum, sizeof sum);
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    for (int i = 1; i <= 100; ++i) {
        const heddle_argument_t arguments[] = {heddle_inout(data), heddle_value(&i, sizeof i)};
        if (heddle_insert(sequence, add, arguments, 2, NULL) != HEDDLE_TASK_SUCCESS) return -1;
    }
    if (heddle_sequence_destroy(sequence) != HEDDLE_TASK_SUCCESS) return -2;
    if (heddle_data_destroy(data) != HEDDLE_TASK_SUCCESS) return -3;
    return heddle_runtime_destroy(runtime) == HEDDLE_TASK_SUCCESS ? sum : -4;
}

int main(void) {
    heddle_engine_t engines[16];
    const size_t count = heddle_engines(engines, 16);
    if (count == 0 || strcmp(engines[0].name, "native") != 0 || !engines[0].available) return 1;
    for (size_t i = 0; i < count && i < 16; ++i)
        if (engines[i].available && sum_on(engines[i].name) != 5050) return 2;
    return 0;
}
