// What the workload programs share: a fixed amount of arithmetic, numbered options, the start gate and the
// one line of JSON at the end.
//
// Work is a number of iterations and never a time, so a program does the same whatever its thread count and
// whoever shares the machine. Single-threaded except compute(), which any thread may call.
#pragma once

#include <stdint.h>

// Iterations of a loop whose every step needs the result of the one before it.
void compute(uint64_t iterations);

// An option that takes a number: --rounds 100. `value` holds the default and receives what was given.
struct Option {
    const char* name;
    uint64_t* value;
};

// Options of every program.
struct Work {
    uint64_t iterations_per_us;  // --iterations-per-us; 0: measured at start, which needs a quiet machine
    uint64_t start_at_ns;        // --start-at, on CLOCK_MONOTONIC; 0: at once
};

// Reads the common options into `work` and the program's own, `count` of them. An unknown option or a text
// that is no number ends the program with 2.
void read_options(int argc, char** argv, struct Work* work, const struct Option* own, int count);

uint64_t now_ns(void);

// The best of several short measurements of compute().
uint64_t calibrate(void);

// Sleeps until the gate opens and answers the time at which the program went on.
uint64_t pass_gate(const struct Work* work);

// {"threads":2,"start_ns":..,"end_ns":..,"wall_s":..}
void report(int threads, uint64_t start_ns);
