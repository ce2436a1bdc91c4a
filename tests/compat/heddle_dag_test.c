/* The graph of tasks from C, on each engine that is there: who follows whom, its bound, and what is refused.
 */
#include "heddle/dag.h"

#include <stdlib.h>

#include "each_engine.h"

static int nothing(heddle_task_t* task) {
    (void)task;
    return 0;
}

static heddle_task_ret_t insert_named(heddle_sequence_t* sequence, const char* name,
                                      heddle_argument_t argument) {
    const heddle_task_options_t options = {.name = name};
    return heddle_insert(sequence, nothing, &argument, 1, &options);
}

/* The graph's text, to be freed. */
static char* text_of(heddle_dag_t* dag) {
    size_t length = 0;
    EXPECT(heddle_dag_dot(dag, NULL, 0, &length) == HEDDLE_TASK_SUCCESS && length > 0);
    char* text = malloc(length + 1);
    EXPECT(text != NULL);
    EXPECT(heddle_dag_dot(dag, text, length + 1, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(strlen(text) == length);
    size_t again = 0;
    EXPECT(heddle_dag_dot(dag, text, length, &again) == HEDDLE_TASK_LIMIT && again == length);
    EXPECT(strlen(text) == length);
    return text;
}

static size_t count_of(const char* text, const char* part) {
    size_t count = 0;
    for (const char* at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) ++count;
    return count;
}

static void a_writer_and_two_readers(heddle_runtime_t* runtime) {
    heddle_data_t* data = heddle_scalar_create(runtime, NULL, sizeof(int));
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    heddle_dag_t* dag = heddle_dag_create(runtime, 0);
    EXPECT(dag != NULL);
    EXPECT(heddle_dag_tasks(dag) == 0);
    EXPECT(insert_named(sequence, "writes", heddle_out(data)) == HEDDLE_TASK_SUCCESS);
    EXPECT(insert_named(sequence, "reads", heddle_in(data)) == HEDDLE_TASK_SUCCESS);
    EXPECT(insert_named(sequence, "reads", heddle_in(data)) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_dag_tasks(dag) == 3);
    char* text = text_of(dag);
    EXPECT(strncmp(text, "digraph", 7) == 0);
    EXPECT(count_of(text, "writes") >= 1 && count_of(text, "reads") >= 2);
    EXPECT(count_of(text, " -> ") == 2);
    free(text);
    EXPECT(heddle_dag_destroy(dag) == HEDDLE_TASK_SUCCESS);
    /* What comes now is in no graph, and a new one begins empty. */
    EXPECT(insert_named(sequence, "later", heddle_inout(data)) == HEDDLE_TASK_SUCCESS);
    dag = heddle_dag_create(runtime, 1);
    EXPECT(heddle_dag_tasks(dag) == 0);
    EXPECT(insert_named(sequence, "first", heddle_inout(data)) == HEDDLE_TASK_SUCCESS);
    EXPECT(insert_named(sequence, "beyond", heddle_inout(data)) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_dag_tasks(dag) == 2);
    text = text_of(dag);
    EXPECT(strstr(text, "first") != NULL && strstr(text, "beyond") == NULL && strstr(text, "later") == NULL);
    free(text);
    EXPECT(heddle_dag_destroy(dag) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_data_destroy(data) == HEDDLE_TASK_SUCCESS);
}

static heddle_dag_t* of_the_task;

static int destroys_its_graph(heddle_task_t* task) {
    (void)task;
    REFUSED(heddle_dag_destroy(of_the_task), "is one of");
    return 0;
}

static void what_is_refused(heddle_runtime_t* runtime) {
    heddle_sequence_t* sequence = heddle_sequence_create(runtime);
    of_the_task = heddle_dag_create(runtime, 0);
    heddle_dag_t* beside = heddle_dag_create(runtime, 0);
    EXPECT(beside != NULL && heddle_dag_destroy(beside) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_runtime_destroy(runtime), "are left");
    EXPECT(heddle_insert(sequence, destroys_its_graph, NULL, 0, NULL) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_sequence_wait(sequence) == HEDDLE_TASK_SUCCESS);
    EXPECT(heddle_dag_destroy(of_the_task) == HEDDLE_TASK_SUCCESS);
    REFUSED(heddle_dag_destroy(of_the_task), "graph of tasks");
    EXPECT(heddle_dag_tasks(of_the_task) == 0);
    EXPECT(heddle_sequence_destroy(sequence) == HEDDLE_TASK_SUCCESS);
}

int main(void) {
    on_each_engine(a_writer_and_two_readers);
    on_each_engine(what_is_refused);
    return failures == 0 ? 0 : 1;
}
