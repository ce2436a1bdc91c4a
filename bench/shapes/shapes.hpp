// The shapes of tasks by which engines are compared, and the program that measures one of them on one engine.
//
// A shape is written once. Each engine is a program of its own (heddle.cpp, tbb.cpp, openmp.cpp), for their
// runtimes would disturb each other in one process. `PROGRAM SHAPE WORKERS [--quick]` prints one number: what
// a task takes, in ns, from before the first insertion until the wait has returned; for "efficiency" which
// part of the workers' time was spent in tasks; for patterns METG(50 %) in us (patterns.hpp). One run before
// it warms up. The thread that inserts is one of the workers.
//
// An Engine has a type Datum, which tasks name; data(n), so many of them; insert(), insert(Datum& written),
// insert(Datum& read, Datum& written), insert(Datum& read, Datum& read, Datum& written), insert(span of up to
// 8 Datum* that are read, Datum& written), tasks that call kernel(); wait(); and region(f), which calls f
// where tasks may be inserted; where it has to be told, forget(data) that will not be used again; and where
// it has graphs that are built once, a Recorder with insert() and replay(), which returns when all have run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <vector>

namespace shapes {

using Nanoseconds = std::chrono::duration<double, std::nano>;

/// What each task computes: so many steps of arithmetic. Written before the tasks, read by them.
inline uint64_t kernel_steps = 0;

[[gnu::noinline]] inline void compute(uint64_t steps) {
    for (uint64_t value = 1; steps > 0; --steps) {
        value = value * 6364136223846793005u + 1;
        asm volatile("" : "+r"(value));
    }
}

/// When a task began and ended, where somebody wants to know; of tasks that run one after the other.
struct Stamps {
    std::vector<int64_t> began, ended;
};
inline Stamps* stamps = nullptr;

inline int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

[[gnu::noinline]] inline void work() {
    if (stamps != nullptr) stamps->began.push_back(now_ns());
    compute(kernel_steps);
    if (stamps != nullptr) stamps->ended.push_back(now_ns());
}

inline void kernel() {
    if (kernel_steps != 0) work();
}

template <class Function>
double time_ns(Function function) {
    const auto start = std::chrono::steady_clock::now();
    function();
    return Nanoseconds(std::chrono::steady_clock::now() - start).count();
}

struct Independent {
    static constexpr int kData = 1;
    int tasks = 1'000'000;

    template <class Engine, class Data>
    void insert(Engine& engine, Data&) const {
        for (int i = 0; i < tasks; ++i) engine.insert();
    }
};

struct Chain {
    static constexpr int kData = 1;
    int tasks = 100'000;

    template <class Engine, class Data>
    void insert(Engine& engine, Data& data) const {
        for (int i = 0; i < tasks; ++i) engine.insert(data[0]);
    }
};

/// The tasks of a right-looking tile Cholesky factorisation of kTiles x kTiles tiles.
struct Cholesky {
    static constexpr size_t kTiles = 40;
    static constexpr int kData = kTiles * kTiles;
    int tasks = kTiles * (kTiles + 1) * (kTiles + 2) / 6;

    template <class Engine, class Data>
    void insert(Engine& engine, Data& data) const {
        const auto tile = [&](size_t row, size_t column) -> auto& {
            return data[row + column * kTiles];
        };
        for (size_t k = 0; k < kTiles; ++k) {
            engine.insert(tile(k, k));
            for (size_t i = k + 1; i < kTiles; ++i) engine.insert(tile(k, k), tile(i, k));
            for (size_t i = k + 1; i < kTiles; ++i) {
                engine.insert(tile(i, k), tile(i, i));
                for (size_t j = k + 1; j < i; ++j) engine.insert(tile(i, k), tile(j, k), tile(i, j));
            }
        }
    }
};

/// One run: ns from before the first insertion until the wait has returned.
template <class Engine, class Shape>
double run_ns(Engine& engine, const Shape& shape) {
    auto data = engine.data(Shape::kData);
    double took = 0;
    engine.region([&] {
        took = time_ns([&] {
            shape.insert(engine, data);
            engine.wait();
        });
    });
    if constexpr (requires { engine.forget(data); }) engine.forget(data);
    return took;
}

/// The median of so many runs, after one more that warms up.
template <class Engine, class Shape>
double ns_per_task(Engine& engine, const Shape& shape, int runs) {
    std::vector<double> times;
    (void)run_ns(engine, shape);
    for (int i = 0; i < runs; ++i) times.push_back(run_ns(engine, shape));
    std::ranges::sort(times);
    return times[times.size() / 2] / shape.tasks;
}

/// The median of so many runs of a shape that a Recorder of the engine's has taken once, a task.
template <class Recorder, class Engine, class Shape>
double replay_ns_per_task(Engine& engine, const Shape& shape, int runs) {
    auto data = engine.data(Shape::kData);
    Recorder recorder(engine);
    shape.insert(recorder, data);
    std::vector<double> times;
    recorder.replay();
    for (int i = 0; i < runs; ++i) times.push_back(time_ns([&] { recorder.replay(); }));
    std::ranges::sort(times);
    return times[times.size() / 2] / shape.tasks;
}

/// Of compute().
inline double step_takes_ns() {
    constexpr uint64_t kProbe = 1'000'000;
    compute(kProbe);
    return time_ns([] { compute(kProbe); }) / kProbe;
}

/// A chain of tasks of 5 us: what an insertion takes on average, and for each task how long after it could
/// have begun it did: after its insertion, and after the end of the one before.
struct Latencies {
    double insertion_ns = 0;
    std::vector<double> waited_ns;
};

template <class Engine>
Latencies latencies(Engine& engine, size_t tasks) {
    kernel_steps = static_cast<uint64_t>(5000 / step_takes_ns());
    auto data = engine.data(1);
    Stamps noted;
    noted.began.reserve(tasks);
    noted.ended.reserve(tasks);
    stamps = &noted;
    std::vector<int64_t> inserted(tasks);
    Latencies found;
    engine.region([&] {
        for (size_t i = 0; i < tasks; ++i) {
            const int64_t begin = now_ns();
            engine.insert(data[0]);
            inserted[i] = now_ns();
            found.insertion_ns += static_cast<double>(inserted[i] - begin) / static_cast<double>(tasks);
        }
        engine.wait();
    });
    stamps = nullptr;
    if constexpr (requires { engine.forget(data); }) engine.forget(data);
    for (size_t i = 0; i < tasks; ++i) {
        const int64_t could = i == 0 ? inserted[i] : std::max(inserted[i], noted.ended[i - 1]);
        found.waited_ns.push_back(static_cast<double>(noted.began[i] - could));
    }
    return found;
}

inline double thread_cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Of the tasks of Cholesky, each of which computes for 50 us. A core is not as fast in each process, or now
/// and a second later: so the tasks are as long as they were alone, right before and after. That is CPU time:
/// workers that spin may take this thread's CPU from it meanwhile.
template <class Engine>
double tiles_ns_per_task(Engine& engine, int repetitions) {
    constexpr double kTaskNs = 50'000;
    constexpr int kAlone = 1000;
    kernel_steps = static_cast<uint64_t>(kTaskNs / step_takes_ns());
    const auto alone_ns = [] {
        const double before = thread_cpu_ns();
        for (int i = 0; i < kAlone; ++i) kernel();
        return (thread_cpu_ns() - before) / kAlone;
    };
    const double before_ns = alone_ns();
    const double each_ns = ns_per_task(engine, Cholesky{}, repetitions);
    return each_ns * kTaskNs / ((before_ns + alone_ns()) / 2);
}

/// Which part of its workers' time an engine spends in tasks of 2 us, none of which waits for another.
template <class Engine>
double efficiency(Engine& engine, int workers, int tasks) {
    constexpr double kTaskNs = 2000;
    kernel_steps = static_cast<uint64_t>(kTaskNs / step_takes_ns());
    const double each_ns = ns_per_task(engine, Independent{tasks}, 1);
    const double alone_ns = time_ns([&] {
        for (int i = 0; i < tasks; ++i) kernel();
    });
    return alone_ns / tasks / (each_ns * workers);
}

}  // namespace shapes
