/* For tests of heddle's own C interfaces: calls that are to be refused, and in which words. */
#ifndef HEDDLE_TESTS_COMPAT_REFUSED_H
#define HEDDLE_TESTS_COMPAT_REFUSED_H

#include "expect.h"

#define EXPECT_ERROR(code, words) EXPECT(heddle_task_error() == (code)), EXPECT_SAID(words)
#define REFUSED(call, words) EXPECT((call) == HEDDLE_TASK_INVALID), EXPECT_ERROR(HEDDLE_TASK_INVALID, words)
#define NO_HANDLE(call, words) EXPECT((call) == NULL), EXPECT_ERROR(HEDDLE_TASK_INVALID, words)

#endif
