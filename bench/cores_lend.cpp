// cores.lend: lending a CPU and reclaiming it, both through heddle::Component with its callbacks called.
// cores.borrow_fails: a borrow while nothing is free. In both a second thread is alive, as it is in every
// program that has a use for them: without one, glibc leaves out the lock prefixes of its mutexes, and
// figures flatter.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "cores/exchange.hpp"
#include "heddle/cores.hpp"

namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Measures batches of `calls` calls and prints one line.
template <class Call>
void measure(const char* name, int batches, int calls, Call call) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> nanoseconds;
    for (int batch = -1; batch < batches; ++batch) {  // the first warms up
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < calls; ++i) call();
        const std::chrono::duration<double, std::nano> took = Clock::now() - start;
        if (batch >= 0) nanoseconds.push_back(took.count() / calls);
    }
    const double middle = median(nanoseconds);
    std::vector<double> deviations;
    for (const double value : nanoseconds)
        deviations.push_back(value < middle ? middle - value : value - middle);
    std::printf("{\"name\":\"%s\",\"n\":%d,\"median\":%.2f,\"mad\":%.2f,\"unit\":\"ns\"}\n", name, batches,
                middle, median(deviations));
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
    if (argc > 2 || (argc == 2 && !quick)) {
        std::fprintf(stderr, "usage: cores_lend [--quick]\n");
        return 2;
    }
    const int calls = quick ? 20'000 : 200'000;

    heddle::Exchange exchange(heddle::Machine::synthetic("core:2 pu:1"));
    heddle::Component lender(exchange, "lender", {0});
    heddle::Component borrower(exchange, "borrower", {1});
    long changes = 0;
    lender.on_enable_cpu([&](int) { ++changes; });
    lender.on_disable_cpu([&](int) { ++changes; });

    std::atomic<bool> done{false};
    std::thread second([&] { done.wait(false); });
    measure("cores.lend", 31, calls, [&] {
        (void)lender.lend_cpu(0);
        (void)lender.reclaim_cpu(0);
    });
    long failures = 0;
    measure("cores.borrow_fails", 31, calls,
            [&] { failures += borrower.borrow() == heddle::Outcome::kNoUpdate ? 1 : 0; });
    done = true;
    done.notify_one();
    second.join();

    if (changes != 2L * 32 * calls || failures != 32L * calls) {
        std::fprintf(stderr, "cores_lend: %ld callbacks and %ld failed borrows: the figures mean nothing\n",
                     changes, failures);
        return 1;
    }
    return 0;
}
