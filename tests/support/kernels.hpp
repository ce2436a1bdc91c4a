// Kernels of each engine that do something in parallel: in its runtime's own words, or as tasks.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "heddle/offload.hpp"
#include "heddle/task.hpp"
#include "support/kernels/in_parallel.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {

/// Loaded before any engine is: libomp makes itself known to all that is loaded after it, and has the names
/// of libgomp too.
inline InParallel* load_in_parallel(const std::string& engine) {
    const std::string path = fmt::format("{}/tests/kernels/{}.so", HEDDLE_BUILD_DIR, engine);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : reinterpret_cast<InParallel*>(dlsym(library, "in_parallel"));
}
inline InParallel* const kOpenMpInParallel = load_in_parallel("openmp");

/// As the runtime of that engine does it. To be called in a kernel of it.
inline void in_parallel(const std::string& engine, int items, const std::function<void(int)>& body) {
    InParallel* const run = engine == "openmp" ? kOpenMpInParallel : load_in_parallel(engine);
    if (run != nullptr)
        return run(
            items,
            [](void* argument, int item) { (*static_cast<const std::function<void(int)>*>(argument))(item); },
            const_cast<std::function<void(int)>*>(&body));
    Sequence sequence(kernel_runtime());
    for (int item = 0; item < items; ++item) sequence.insert([&body, item] { body(item); });
    sequence.wait();
}

/// Where the threads were that called note(), and where they could have been.
class Places {
  public:
    void note() {
        const CpuSet may = thread_affinity();
        const std::lock_guard guard(mutex_);
        seen_.insert(sched_getcpu());
        allowed_ |= may;
    }
    [[nodiscard]] CpuSet seen() const {
        const std::lock_guard guard(mutex_);
        return seen_;
    }
    [[nodiscard]] CpuSet allowed() const {
        const std::lock_guard guard(mutex_);
        return allowed_;
    }

  private:
    mutable std::mutex mutex_;
    CpuSet seen_, allowed_;
};

/// Work for as long, so that other threads take part too.
inline void spend(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

}  // namespace heddle::test
