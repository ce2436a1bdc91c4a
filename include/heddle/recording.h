/* Recordings of tasks, for C: heddle/recording.hpp, which tells more.
 *
 *     heddle_recording_t* step = heddle_recording_create(runtime);
 *     heddle_record(step, smooth, arguments, 3, NULL);              // nothing runs
 *     for (int i = 0; i < 1000; ++i) heddle_replay(step, sequence); // all of it, each time
 *     heddle_sequence_wait(sequence);
 *
 * Each replay runs the tasks with the values as they were recorded, whatever earlier ones have made of them;
 * replays of one recording follow each other. One thread records; then any thread replays. Handles, results
 * and errors are as in heddle/task.h. */
#ifndef HEDDLE_RECORDING_H
#define HEDDLE_RECORDING_H

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_recording heddle_recording_t;

HEDDLE_TASK_API heddle_recording_t* heddle_recording_create(heddle_runtime_t* runtime);
/** As heddle_insert(), and the task is kept. INVALID besides for FUTURE and AFTER, since a future has one
 * value, and once there was a replay. */
HEDDLE_TASK_API heddle_task_ret_t heddle_record(heddle_recording_t* recording, heddle_function_t function,
                                                const heddle_argument_t* arguments, size_t count,
                                                const heddle_task_options_t* options);
/** Inserts all of it into a sequence, where errors of its tasks arrive. INVALID for a sequence of another
 * runtime, where data that it names were destroyed, and in one of its own tasks; LIMIT where memory is
 * short. */
HEDDLE_TASK_API heddle_task_ret_t heddle_replay(heddle_recording_t* recording, heddle_sequence_t* sequence);
/** Tasks that were recorded; 0, and an error, for what is no recording. */
HEDDLE_TASK_API size_t heddle_recording_size(const heddle_recording_t* recording);
/** Waits for its replays. INVALID in one of its own tasks. */
HEDDLE_TASK_API heddle_task_ret_t heddle_recording_destroy(heddle_recording_t* recording);

#ifdef __cplusplus
}
#endif

#endif
