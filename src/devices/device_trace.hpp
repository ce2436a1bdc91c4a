// DeviceTrace: what a device did, in the process's trace (HEDDLE_TRACE, docs/TRACE.md): a row for its tasks,
// and one for the copies from and to its memory, which may go on at the same time. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "trace/work_log.hpp"

namespace heddle::devices {

class DeviceTrace {
  public:
    /// Null where nothing is traced. `start_us`: on the device's clock, now.
    [[nodiscard]] static std::unique_ptr<DeviceTrace> open(const std::string& device, double start_us);

    /// In microseconds of the device's clock.
    void ran(const std::string& name, double begin_us, double end_us) noexcept;
    void copied(const char* direction, double begin_us, double end_us) noexcept;
    /// The end of the last copy.
    [[nodiscard]] double copied_until_us() const;

    DeviceTrace(trace::WorkLog& log, const std::string& device, double start_us);

  private:
    [[nodiscard]] int64_t ns(double us) const noexcept;

    trace::WorkLog& log_;
    const int64_t zero_ns_;     // of the device's clock
    mutable std::mutex mutex_;  // one notes at a time
    std::shared_ptr<trace::WorkLog::Lane> tasks_, copies_;
    double copied_until_us_ = 0;
};

}  // namespace heddle::devices
