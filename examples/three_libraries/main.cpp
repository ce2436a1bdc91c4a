// Three libraries on three runtimes, and the four kinds of program that call them (seed 000 figures 1 and 3).
//
//   three_libraries [--quick]
//
// Prints for each case its time without heddle, each runtime with all CPUs as it finds them, and its time
// with each library called as a kernel of its engine (heddle/offload.hpp), synchronously and asynchronously.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/offload.hpp"
#include "heddle/task.hpp"
#include "library.hpp"

namespace {

using heddle::Kernel;
using heddle::Offload;

struct Library {
    const char* engine;
    Smooth* smooth;
};

/// Calls of one run; each has its own image.
using Calls = std::vector<Smoothing>;

double seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Program {
  public:
    Program(std::vector<Library> libraries, Smoothing work) : libraries_(std::move(libraries)), work_(work) {
        libraries_.front().smooth(work_);
        for (const Library& library : libraries_)
            offloads_.push_back(std::make_unique<Offload>(library.engine));
    }

    /// A serial program calls one library, `times`.
    double serial_without(size_t library, int times) {
        return timed(times, [&](Calls& calls) {
            for (Smoothing& call : calls) libraries_[library].smooth(call);
        });
    }
    double serial_with(size_t library, int times) {
        return timed(times, [&](Calls& calls) {
            for (Smoothing& call : calls) start(library, call).wait();
        });
    }

    /// A parallel program, one thread a CPU: each of its calls goes to the next library.
    double parallel_without(const std::vector<size_t>& libraries, int times) {
        return timed(times, [&](Calls& calls) {
            std::vector<std::jthread> threads;
            const size_t count = std::max(2u, std::thread::hardware_concurrency());
            for (size_t t = 0; t < count; ++t)
                threads.emplace_back([&, t] {
                    for (size_t i = t; i < calls.size(); i += count)
                        libraries_[libraries[i % libraries.size()]].smooth(calls[i]);
                });
        });
    }
    /// The same as tasks, each of which waits for its call: it is paused meanwhile.
    double parallel_with(const std::vector<size_t>& libraries, int times) {
        return timed(times, [&](Calls& calls) {
            heddle::Runtime runtime;
            heddle::Sequence sequence(runtime);
            for (size_t i = 0; i < calls.size(); ++i)
                sequence.insert([&, i] { start(libraries[i % libraries.size()], calls[i]).wait(); });
            sequence.wait();
        });
    }
    /// All calls at once; the program goes on, and waits in the end.
    double asynchronous(const std::vector<size_t>& libraries, int times) {
        return timed(times, [&](Calls& calls) {
            std::vector<Kernel> kernels;
            for (size_t i = 0; i < calls.size(); ++i)
                kernels.push_back(start(libraries[i % libraries.size()], calls[i]));
            for (const Kernel& kernel : kernels) kernel.wait();
        });
    }

    [[nodiscard]] bool right() const { return right_; }
    [[nodiscard]] const std::vector<Library>& libraries() const { return libraries_; }

  private:
    Kernel start(size_t library, Smoothing& call) {
        return offloads_[library]->spawn([smooth = libraries_[library].smooth, &call] { smooth(call); });
    }
    double timed(int times, const std::function<void(Calls&)>& run) {
        Calls calls(static_cast<size_t>(times), work_);
        for (Smoothing& call : calls) call.result = 0;
        const double time = seconds([&] { run(calls); });
        for (const Smoothing& call : calls)
            right_ = right_ && std::abs(call.result - work_.result) <= 1e-9 * std::abs(work_.result);
        return time;
    }

    std::vector<Library> libraries_;
    Smoothing work_;
    std::vector<std::unique_ptr<Offload>> offloads_;
    bool right_ = true;
};

void line(const char* what, double without, double with) {
    fmt::print("{:<58} {:>9.1f} ms {:>9.1f} ms {:>6.2f}x\n", what, without * 1e3, with * 1e3, without / with);
}

std::vector<Library> libraries() {
    std::vector<Library> all{{"native", smooth_native}};
#ifdef HEDDLE_EXAMPLE_OPENMP
    all.push_back({"openmp", smooth_openmp});
#endif
#ifdef HEDDLE_EXAMPLE_TBB
    all.push_back({"tbb", smooth_tbb});
#endif
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !quick) {
        fmt::print(stderr, "usage: three_libraries [--quick]\n");
        return 2;
    }
    try {
        Program program(libraries(), quick ? Smoothing{64, 64, 10, 0} : Smoothing{512, 512, 200, 0});
        const int times = quick ? 6 : 24;
        const size_t last = program.libraries().size() - 1;
        std::vector<size_t> all;
        for (size_t i = 0; i <= last; ++i) all.push_back(i);
        fmt::print("libraries:");
        for (const Library& library : program.libraries()) fmt::print(" {}", library.engine);
        fmt::print("\n{:<58} {:>12} {:>12}\n", "", "without", "with heddle");
        line("(1) a parallel program alone", program.serial_without(0, times), program.serial_with(0, times));
        line("(2) a parallel program, a library on the same engine", program.parallel_without({0}, times),
             program.parallel_with({0}, times));
        line("(3) a serial program, a parallel library", program.serial_without(last, times),
             program.serial_with(last, times));
        const double apart = program.parallel_without(all, times);
        line("(4) a parallel program, all libraries, synchronous", apart, program.parallel_with(all, times));
        line("(4) the same, asynchronous", apart, program.asynchronous(all, times));
        if (!program.right()) fmt::print(stderr, "a result is wrong\n");
        return program.right() ? 0 : 1;
    } catch (const heddle::Error& error) {
        fmt::print(stderr, "three_libraries: {}\n", error.what());
        return 1;
    }
}
