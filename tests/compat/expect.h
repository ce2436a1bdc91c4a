/* What the C tests say when something is not as it should be, and count: the line, the engine where there are
 * several, and what the interface said last in this thread, where it said anything. */
#ifndef HEDDLE_TESTS_COMPAT_EXPECT_H
#define HEDDLE_TESTS_COMPAT_EXPECT_H

#include <stdio.h>
#include <string.h>

#include "heddle/task.h"

/* Of which interface the last error is told; a test of another one defines it before. */
#ifndef HEDDLE_EXPECT_ERROR_MESSAGE
#define HEDDLE_EXPECT_ERROR_MESSAGE heddle_task_error_message()
#endif

static int failures;
static const char* tested_engine = "";

#define EXPECT(condition)                                                                                    \
    ((condition) ? (void)0                                                                                   \
                 : (void)(++failures, fprintf(stderr, "%s:%d: %s %s (last error: %s)\n", __FILE__, __LINE__, \
                                              tested_engine, #condition, HEDDLE_EXPECT_ERROR_MESSAGE)))
/* What was refused last was refused in such words. */
#define EXPECT_SAID(words) EXPECT(strstr(HEDDLE_EXPECT_ERROR_MESSAGE, words) != NULL)

#endif
