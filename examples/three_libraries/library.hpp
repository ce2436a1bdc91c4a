// What each of the three libraries offers: a sum over an image that is smoothed again and again, in parallel
// in the words of its own runtime, and only then back to the caller. That it could be called by several
// threads at once, or by a program that is parallel itself, its author never thought of.
#pragma once

struct Smoothing {
    int rows, columns, rounds;
    double result;
};

/// Smooths an image of its own; each round is a parallel loop over the rows.
using Smooth = void(Smoothing& smoothing);

Smooth smooth_openmp, smooth_tbb, smooth_native;
