// Java's types, whether its headers are there or not: all may be null.
#pragma once

#if __has_include(<jni.h>)
#include <jni.h>
#else
struct JavaVM_;
using JavaVM = JavaVM_;
#endif
