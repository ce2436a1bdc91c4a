// HEDDLE_API marks what libheddle.so exports; everything else is hidden.
#pragma once

#define HEDDLE_API __attribute__((visibility("default")))
