// tasks.pause: what a task pays to pause and to go on. Two tasks of one worker take turns: each computes a
// little, signals the other's condition and blocks on its own. One's results are exact and the other's are
// not, so that the flags of their floating-point units differ, as those of tasks do (docs/FIBERS.md).
// tasks.pause_64: the same with 64 tasks in a ring. tasks.pause_100000: 100,000 tasks that are all paused at
// once, each on a stack of its own that no cache holds any more; from their first insertion to their end.
// Beside it what the kernel takes for the first page of so many stacks.
#include <sys/mman.h>

#include <chrono>
#include <new>
#include <vector>

#include "figures.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"

namespace {

using heddle::BlockCondition;
using heddle::Runtime;
using heddle::Sequence;
using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// One after the other, round and round: nanoseconds a pause, with what comes between two of them.
double ring(Runtime& runtime, size_t tasks, int pauses) {
    std::vector<BlockCondition> turns(tasks);
    std::vector<double> results(tasks, 1);
    const int rounds = pauses / static_cast<int>(tasks);
    Clock::time_point start;
    double took = 0;
    Sequence sequence(runtime);
    for (size_t i = 0; i < tasks; ++i)
        sequence.insert([&, i] {
            const double factor = i % 2 == 0 ? 1 : 1.0000001;
            for (int round = 0; round <= rounds; ++round) {
                turns[i].block();
                if (i == 0 && round == 0) start = Clock::now();  // all others are paused by now
                results[i] = results[i] * factor;
                if (i == 0 && round == rounds) took = nanoseconds_since(start);
                turns[(i + 1) % tasks].signal();
            }
            if (i + 1 == tasks) turns[0].block();  // the last signal went there
        });
    sequence.insert({.priority = -1}, [&] { turns[0].signal(); });
    sequence.wait();
    return took / (static_cast<double>(tasks) * rounds);
}

double all_at_once(Runtime& runtime, size_t tasks) {
    std::vector<BlockCondition> conditions(tasks);
    const Clock::time_point start = Clock::now();
    Sequence sequence(runtime);
    for (BlockCondition& condition : conditions) sequence.insert([&] { condition.block(); });
    sequence.insert({.priority = -1}, [&] {
        for (BlockCondition& condition : conditions) condition.signal();
    });
    sequence.wait();
    return nanoseconds_since(start) / static_cast<double>(tasks);
}

double first_pages(size_t stacks) {
    constexpr size_t kStack = size_t{64} << 10;
    const Clock::time_point start = Clock::now();
    void* const memory = ::mmap(nullptr, stacks * kStack, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, stacks * kStack, MADV_NOHUGEPAGE);
    for (size_t i = 1; i <= stacks; ++i) *(static_cast<volatile char*>(memory) + i * kStack - 1) = 1;
    ::munmap(memory, stacks * kStack);
    return nanoseconds_since(start) / static_cast<double>(stacks);
}

template <class Run>
void measure(const char* name, int batches, const Run& run) {
    (void)run();  // warms up
    heddle::bench::Figure figure{.name = name, .unit = "ns", .values = {}};
    for (int i = 0; i < batches; ++i) figure.values.push_back(run());
    print(figure);
}

void measure_many(Runtime& runtime, int batches) {
    constexpr size_t kTasks = 100'000;
    (void)all_at_once(runtime, kTasks);
    heddle::bench::Figure figure{.name = "tasks.pause_100000", .unit = "ns", .values = {}};
    std::vector<double> pages;
    for (int i = 0; i < batches; ++i) {
        figure.values.push_back(all_at_once(runtime, kTasks));
        pages.push_back(first_pages(kTasks));
    }
    figure.peer_median = heddle::bench::median(pages);
    print(figure);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, [](bool quick) {
        Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
        const int pauses = quick ? 20'000 : 400'000;
        measure("tasks.pause", 31, [&] { return ring(runtime, 2, pauses); });
        measure("tasks.pause_64", 31, [&] { return ring(runtime, 64, pauses); });
        measure_many(runtime, quick ? 3 : 11);
    });
}
