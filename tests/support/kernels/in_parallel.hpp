// What the kernels of a test do in the words of their runtime: one small library for each, loaded by the
// test.
#pragma once

extern "C" {
/// Calls body(argument, 0) to body(argument, items - 1), in parallel as the runtime does by default, and
/// waits.
using InParallel = void(int items, void (*body)(void* argument, int item), void* argument);
}
