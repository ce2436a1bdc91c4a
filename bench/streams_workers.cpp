// What a second worker, order and bounds cost a network of streams (heddle/streams.hpp).
//
// streams.second_worker: the throughput of three trivial boxes with 2 workers over that with 1, pairs in
// turn. streams.heavy: the same of four boxes of 20 us, over what two threads with the same work reach over
// one. streams.ordered: two calls at once of a box of 2 us, in order over in any order. streams.memory: the
// peak resident set of a process whose box sends 1e6 records in one call before a slower one.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "figures.hpp"
#include "heddle/streams.hpp"
#include "steps.hpp"

namespace {

using namespace heddle::snet;  // NOLINT: it is all about these
using heddle::bench::Figure;
using heddle::bench::steps_for;
using heddle::bench::work;

using Number = Field<"number", long>;

Net stage(const char* name, long steps, BoxOptions options = {}) {
    return box<In<Number>, Out<Number>>(
        name, [steps](long number) { return number + (steps == 0 ? 1 : work(steps, number) & 1); }, options);
}

/// Records a second.
double rate(const Net& net, int workers, long count) {
    std::atomic<long> left{0};
    NetworkOptions options;
    options.workers = workers;
    options.output = [&](const Record& /*record*/) { left.fetch_add(1, std::memory_order_relaxed); };
    Network network(net, options);
    const double ms = heddle::bench::milliseconds([&] {
        for (long i = 0; i < count; ++i) network.push(record<Number>(i));
        network.settle();
    });
    if (left != count) throw std::runtime_error("a record was lost");
    return static_cast<double>(count) / ms * 1e3;
}

/// Of two threads over one, with nothing between them.
double scaling(long steps, long count) {
    const auto run = [&](int threads) {
        return heddle::bench::milliseconds([&] {
            std::vector<std::jthread> all;
            for (int i = 0; i < threads; ++i)
                all.emplace_back([=] {
                    [[maybe_unused]] volatile long keep = 0;
                    for (long j = i; j < count; j += threads) keep = work(4 * steps, j);
                });
        });
    };
    const double one = run(1);
    return one / run(2);
}

void second_worker(bool quick) {
    const long count = quick ? 50'000 : 300'000;
    Figure figure{.name = "streams.second_worker", .unit = "x", .values = {}};
    const Net net = stage("a", 0) >> stage("b", 0) >> stage("c", 0);
    for (int i = 0; i < (quick ? 3 : 21); ++i) {
        const double one = rate(net, 1, count);
        figure.values.push_back(rate(net, 2, count) / one);
    }
    print(figure);
}

void heavy(bool quick) {
    const long steps = steps_for(20), count = quick ? 500 : 4000;
    Figure figure{.name = "streams.heavy", .unit = "x", .values = {}};
    std::vector<double> threads;
    const Net net = stage("a", steps) >> stage("b", steps) >> stage("c", steps) >> stage("d", steps);
    for (int i = 0; i < (quick ? 3 : 11); ++i) {
        const double one = rate(net, 1, count);
        figure.values.push_back(rate(net, 2, count) / one);
        threads.push_back(scaling(steps, count));
    }
    figure.peer_median = heddle::bench::median(threads);
    print(figure);
}

void ordered(bool quick) {
    const long steps = steps_for(2), count = quick ? 5'000 : 50'000;
    Figure figure{.name = "streams.ordered", .unit = "1/s", .values = {}};
    std::vector<double> free;
    for (int i = 0; i < (quick ? 3 : 11); ++i) {
        figure.values.push_back(rate(stage("a", steps, {2, true}), 2, count));
        free.push_back(rate(stage("a", steps, {2, false}), 2, count));
    }
    figure.peer_median = heddle::bench::median(free);
    print(figure);
}

/// In a process of its own, before this one has threads.
double peak_mib(long count) {
    const pid_t child = ::fork();
    if (child == 0) {
        const Net burst = box<In<Number>, Out<Number>>("burst", [](Emit<Out<Number>>& emit, long many) {
            for (long i = 0; i < many; ++i) emit(i);
        });
        long left = 0;
        NetworkOptions options;
        options.workers = 2;
        options.output = [&](const Record& /*record*/) { ++left; };
        Network network(burst >> stage("slow", 1000), options);
        network.push(record<Number>(count));
        network.settle();
        ::_exit(left == count ? 0 : 1);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || ::wait4(child, &status, 0, &usage) != child || status != 0)
        throw std::runtime_error("the process that was to be measured failed");
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

void memory(bool quick) {
    Figure figure{.name = "streams.memory", .unit = "MiB", .values = {}};
    for (int i = 0; i < 3; ++i) figure.values.push_back(peak_mib(quick ? 50'000 : 1'000'000));
    print(figure);
}

void run(bool quick) {
    memory(quick);
    second_worker(quick);
    heavy(quick);
    ordered(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
