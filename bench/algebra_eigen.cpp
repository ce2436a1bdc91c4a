// algebra.eigen: all eigenvalues of a pencil of 4096 x 4096 elements by tasks on two workers, and LAPACK's
// dsygvd without vectors on two threads of OpenBLAS in turn with it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "algebra/blas_threads.hpp"
#include "algebra/eigenvalues.hpp"
#include "algebra/lapack.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace heddle::algebra;

constexpr int kWorkers = 2;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double mad(std::vector<double> values) {
    const double middle = median(values);
    for (double& value : values) value = std::abs(value - middle);
    return median(values);
}

template <class Work>
double milliseconds(Work work) {
    // Threads of OpenMP look for work a while after each region: they are let fall asleep first.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// With the workspace that LAPACK asks for, so that its reduction is the blocked one.
std::vector<double> by_lapack(DenseMatrix& a, DenseMatrix& b) {
    const BlasThreads threads(kWorkers);
    const int type = 1, n = static_cast<int>(a.rows()), ask = -1;
    std::vector<double> values(a.rows());
    double room = 0;
    int iroom = 0, info = 0;
    lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, values.data(), &room, &ask,
                    &iroom, &ask, &info, 1, 1);
    std::vector<double> work(static_cast<size_t>(room));
    std::vector<int> iwork(static_cast<size_t>(iroom));
    const int size = static_cast<int>(work.size());
    lapack().dsygvd(&type, "N", "L", &n, a.view().data, &n, b.view().data, &n, values.data(), work.data(),
                    &size, iwork.data(), &iroom, &info, 1, 1);
    if (info != 0) throw Error(ErrorCode::kBadInput, fmt::format("LAPACK's dsygvd ends with {}", info));
    return values;
}

double apart(const std::vector<double>& x, const std::vector<double>& y) {
    double most = 0, largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        most = std::max(most, std::abs(x[i] - y[i]));
        largest = std::max(largest, std::abs(y[i]));
    }
    return most / largest;
}

void measure(Runtime& runtime, size_t n, int runs) {
    DenseMatrix a(n, n), b(n, n);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> number(-1, 1);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = j; i < n; ++i) {
            a(i, j) = a(j, i) = number(random);
            b(i, j) = b(j, i) = std::exp(-static_cast<double>(i - j) / 50) + (i == j ? 1 : 0);
        }
    std::vector<double> ours, theirs;
    EigenTimes times;
    for (int run = -1; run < runs; ++run) {  // the first warms up
        Eigenvalues found;
        const double us = milliseconds([&] { found = generalized_eigenvalues(runtime, a.view(), b.view()); });
        DenseMatrix a_copy = a, b_copy = b;
        std::vector<double> expected;
        const double them = milliseconds([&] { expected = by_lapack(a_copy, b_copy); });
        if (!(apart(found.values, expected) < 1e-11))
            throw Error(ErrorCode::kBadInput, "the eigenvalues differ: the figures mean nothing");
        if (run < 0) continue;
        ours.push_back(us);
        theirs.push_back(them);
        times = found.times;
    }
    fmt::print(
        "{{\"name\":\"algebra.eigen\",\"n\":{},\"median\":{:.1f},\"mad\":{:.1f},\"unit\":\"ms\","
        "\"peer_median\":{:.1f},\"factor_s\":{:.3f},\"standard_s\":{:.3f},\"band_s\":{:.3f},"
        "\"chase_s\":{:.3f},\"tridiagonal_s\":{:.3f}}}\n",
        runs, median(ours), mad(ours), median(theirs), times.factor_s, times.standard_s, times.band_s,
        times.chase_s, times.tridiagonal_s);
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
    if (argc > 2 || (argc == 2 && !quick)) {
        fmt::print(stderr, "usage: algebra_eigen [--quick]\n");
        return 2;
    }
    try {
        RuntimeOptions options;
        options.workers = kWorkers;
        Runtime runtime(options);
        measure(runtime, quick ? 1024 : 4096, quick ? 3 : 5);
    } catch (const Error& error) {
        fmt::print(stderr, "algebra_eigen: {}\n", error.what());
        return 1;
    }
    return 0;
}
