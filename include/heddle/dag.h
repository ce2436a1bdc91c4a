/* The order of tasks as a graph to look at, for C: heddle/dag.hpp, which tells more.
 *
 *     heddle_dag_t* dag = heddle_dag_create(runtime, 0);
 *     ... insert, wait ...
 *     size_t length;
 *     heddle_dag_dot(dag, NULL, 0, &length);
 *     char* text = malloc(length + 1);
 *     heddle_dag_dot(dag, text, length + 1, NULL);      // for dot -Tsvg
 *
 * While there is one, tasks are ordered by heddle's own graph on every engine. Any thread asks; handles,
 * results and errors are as in heddle/task.h. */
#ifndef HEDDLE_DAG_H
#define HEDDLE_DAG_H

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_dag heddle_dag_t;

/** Waits for all tasks of the runtime; no other thread may insert meanwhile. It keeps `most_tasks`, or with 0
 * 2,000. A runtime may have several. NULL, and an error, in a task. */
HEDDLE_TASK_API heddle_dag_t* heddle_dag_create(heddle_runtime_t* runtime, size_t most_tasks);
/** Tasks inserted since, also those that it had no room for; 0, and an error, for what is no graph. */
HEDDLE_TASK_API size_t heddle_dag_tasks(const heddle_dag_t* dag);
/** Writes it in Graphviz' language, ended by 0, to `size` bytes. `length`, where it is not NULL, becomes the
 * length without that 0, which does not depend on `size`. LIMIT, and nothing is written, where `text` is not
 * NULL and has no room for all of it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_dag_dot(const heddle_dag_t* dag, char* text, size_t size,
                                                 size_t* length);
/** Waits for all tasks of the runtime. INVALID in a task. */
HEDDLE_TASK_API heddle_task_ret_t heddle_dag_destroy(heddle_dag_t* dag);

#ifdef __cplusplus
}
#endif

#endif
