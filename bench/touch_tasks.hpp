// What the benchmarks of devices' overhead share: tasks of one kernel that adds 1 to a buffer's first number,
// and what they take above the driver's own calls.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "figures.hpp"
#include "heddle/device.hpp"

namespace heddle::bench {

/// Each task has another one than those just before it.
constexpr int kBuffers = 64;

[[nodiscard]] inline double microseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// On the first device of a kind, of a source with the kernel "touch".
class TouchTasks {
  public:
    TouchTasks(const char* kind, const devices::ProgramSource& source)
        : runtime_({.kinds = {kind}}), program_(std::make_shared<devices::Program>(runtime_, source)) {
        for (int i = 0; i < kBuffers; ++i) buffers_.push_back(std::make_shared<devices::Buffer>(64));
    }

    double us_per_task(int tasks) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < tasks; ++i) runtime_.submit(touch(buffers_[static_cast<size_t>(i % kBuffers)]));
        runtime_.finish();
        return microseconds_since(start) / tasks;
    }

    [[nodiscard]] devices::TaskPointer touch(const std::shared_ptr<devices::Buffer>& buffer) const {
        auto task = std::make_shared<devices::DeviceTask>(program_);
        task->add_kernel("touch").arg(0, devices::inout(buffer)).work(1);
        task->only_on(runtime_.devices()[0]);
        return task;
    }

  protected:
    devices::DeviceRuntime runtime_;
    std::shared_ptr<devices::Program> program_;

  private:
    std::vector<std::shared_ptr<devices::Buffer>> buffers_;
};

/// Rounds in turn. Both have us_per_task(tasks).
template <class Raw>
void print_added(const char* name, bool quick, Raw& raw, TouchTasks& ours) {
    const int tasks = quick ? 1000 : 10'000;
    std::vector<double> added, raw_us, our_us;
    for (int round = -2; round < 11; ++round) {  // the first two warm up
        const double theirs = raw.us_per_task(tasks), own = ours.us_per_task(tasks);
        if (round < 0) continue;
        raw_us.push_back(theirs);
        our_us.push_back(own);
        added.push_back(own - theirs);
    }
    print({.name = name,
           .unit = "us",
           .values = added,
           .more = {{"raw", median(raw_us)}, {"heddle", median(our_us)}}});
}

}  // namespace heddle::bench
