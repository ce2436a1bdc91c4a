// cores.lend: lending a CPU and reclaiming it, both through heddle::Component with its callbacks called.
// cores.borrow_fails: a borrow while nothing is free. In both a second thread is alive, as it is in every
// program that has a use for them: without one, glibc leaves out the lock prefixes of its mutexes, and
// figures flatter.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "cores/exchange.hpp"
#include "figures.hpp"
#include "heddle/cores.hpp"

namespace {

/// Measures batches of `calls` calls and prints one line.
template <class Call>
void measure(const char* name, int batches, int calls, Call call) {
    using Clock = std::chrono::steady_clock;
    heddle::bench::Figure figure{.name = name, .unit = "ns", .values = {}};
    for (int batch = -1; batch < batches; ++batch) {  // the first warms up
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < calls; ++i) call();
        const std::chrono::duration<double, std::nano> took = Clock::now() - start;
        if (batch >= 0) figure.values.push_back(took.count() / calls);
    }
    print(figure);
}

void run(bool quick) {
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

    if (changes != 2L * 32 * calls || failures != 32L * calls)
        throw std::runtime_error(
            fmt::format("{} callbacks and {} failed borrows: the figures mean nothing", changes, failures));
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
