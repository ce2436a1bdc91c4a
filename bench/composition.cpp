// composition MODE [--quick]: a parallel program that calls the three libraries of examples/three_libraries,
// 12 calls in all, and prints how many ms they took. Its modes, of which each is a process of its own:
//
//   heddle          each call is a kernel of its library's engine; a task that waits for it is paused
//   uncoordinated   a thread for each CPU calls, and each library takes all CPUs
//   in_turn         one call after the other, each with all CPUs
//   A:B:C           each library has its own CPUs, as 0:1:0,1, and is called with its threads bound there
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../examples/three_libraries/library.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "heddle/offload.hpp"
#include "heddle/task.hpp"

namespace {

struct Library {
    const char* engine;
    Smooth* smooth;
};
constexpr Library kLibraries[] = {{"native", smooth_native}, {"openmp", smooth_openmp}, {"tbb", smooth_tbb}};
constexpr size_t kCount = std::size(kLibraries);
constexpr size_t kCalls = 12;

using Calls = std::vector<Smoothing>;

heddle::Kernel start(heddle::Offload& offload, const Library& library, Smoothing& call) {
    return offload.spawn([smooth = library.smooth, &call] { smooth(call); });
}

/// A task a call; each waits for its kernel.
void by_heddle(Calls& calls) {
    std::vector<std::unique_ptr<heddle::Offload>> offloads;
    for (const Library& library : kLibraries)
        offloads.push_back(std::make_unique<heddle::Offload>(library.engine));
    heddle::Runtime runtime;
    heddle::Sequence sequence(runtime);
    for (size_t i = 0; i < kCalls; ++i)
        sequence.insert([&, i] { start(*offloads[i % kCount], kLibraries[i % kCount], calls[i]).wait(); });
    sequence.wait();
}

void uncoordinated(Calls& calls) {
    std::vector<std::jthread> threads;
    const size_t count = static_cast<size_t>(heddle::allowance(heddle::Machine::detect()).usable.count());
    for (size_t t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            for (size_t i = t; i < kCalls; i += count) kLibraries[i % kCount].smooth(calls[i]);
        });
}

void in_turn(Calls& calls) {
    for (size_t library = 0; library < kCount; ++library)
        for (size_t i = library; i < kCalls; i += kCount) kLibraries[library].smooth(calls[i]);
}

/// The libraries side by side, each on its CPUs.
void partitioned(Calls& calls, const std::string& sets) {
    std::istringstream parts(sets);
    std::vector<std::unique_ptr<heddle::Offload>> offloads;
    for (const Library& library : kLibraries) {
        std::string part;
        if (!std::getline(parts, part, ':'))
            throw heddle::Error(heddle::ErrorCode::kBadInput, "three sets are needed");
        offloads.push_back(std::make_unique<heddle::Offload>(library.engine, heddle::CpuSet::parse(part)));
    }
    for (size_t i = 0; i < kCalls; ++i) (void)start(*offloads[i % kCount], kLibraries[i % kCount], calls[i]);
    for (const auto& offload : offloads) offload->wait();
}

void run(const std::string& mode, Calls& calls) {
    if (mode == "heddle") return by_heddle(calls);
    if (mode == "uncoordinated") return uncoordinated(calls);
    if (mode == "in_turn") return in_turn(calls);
    partitioned(calls, mode);
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc == 3 && std::strcmp(argv[2], "--quick") == 0;
    if (argc < 2 || argc > 3 || (argc == 3 && !quick)) {
        std::fprintf(stderr, "usage: composition heddle|uncoordinated|in_turn|CPUS:CPUS:CPUS [--quick]\n");
        return 2;
    }
    // Images have the same memory whoever calls: malloc's arenas for threads give theirs back after each
    // call, and what the first thread does costs no page faults then, and what others do 2 ms a call.
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    try {
        const Smoothing work = quick ? Smoothing{128, 128, 20, 0} : Smoothing{512, 512, 100, 0};
        Calls first(kCalls, work), calls(kCalls, work);
        run(argv[1], first);  // the runtimes make their threads
        const auto begin = std::chrono::steady_clock::now();
        run(argv[1], calls);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        for (size_t i = 0; i < kCalls; ++i)
            if (!(std::abs(calls[i].result - calls[0].result) <= 1e-9 * std::abs(calls[0].result)) ||
                calls[i].result != first[i].result) {
                std::fprintf(stderr, "composition: a result is wrong\n");
                return 1;
            }
        std::printf("%.6g\n", took.count());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "composition: %s\n", error.what());
        return 1;
    }
}
