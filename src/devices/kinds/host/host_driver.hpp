// Kind host: a place on the CPU, as a device that schedulers can choose. It computes nothing by itself: a
// task of heddle/task.hpp that was given the place runs its own function on its worker, and says when it has.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/driver.hpp"

namespace heddle::devices {

/// A task's stay in a place. The device's worker begins it and waits for its end, which any thread tells.
class HostTurn {
  public:
    /// What the worker calls when the task's data are where its function looks for them.
    void on_begin(std::function<void()> call) { begins_ = std::move(call); }
    void begin() const {
        if (begins_) begins_();
    }
    void end();
    void wait();

  private:
    std::function<void()> begins_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
};

/// For the next launch on a place, by the worker of its device: in the task's configure callback.
void set_next_turn(std::shared_ptr<HostTurn> turn);

[[nodiscard]] std::vector<std::shared_ptr<DeviceDriver>> host_drivers(unsigned count);

}  // namespace heddle::devices
