#include "devices/device_trace.hpp"

#include <algorithm>
#include <set>

#include "base/clock.hpp"
#include "heddle/machine.hpp"

namespace heddle::devices {
namespace {

constexpr double kNsPerUs = 1e3;

/// Names live until they are written; programs and tasks may be gone by then.
const char* kept(const std::string& name) {
    static auto& mutex = *new std::mutex;
    static auto& names = *new std::set<std::string>;
    const std::lock_guard guard(mutex);
    return names.insert(name).first->c_str();
}

}  // namespace

std::unique_ptr<DeviceTrace> DeviceTrace::open(const std::string& device, double start_us) {
    trace::WorkLog* const log = trace::WorkLog::of_process(Machine::detect());
    return log == nullptr ? nullptr : std::make_unique<DeviceTrace>(*log, device, start_us);
}

DeviceTrace::DeviceTrace(trace::WorkLog& log, const std::string& device, double start_us)
    : log_(log),
      zero_ns_(SteadyClock().now().time_since_epoch().count() - static_cast<int64_t>(start_us * kNsPerUs)),
      tasks_(log.open_lane(device)),
      copies_(log.open_lane(device + " copies")) {}

int64_t DeviceTrace::ns(double us) const noexcept {
    return zero_ns_ + static_cast<int64_t>(us * kNsPerUs);
}

void DeviceTrace::ran(const std::string& name, double begin_us, double end_us) noexcept {
    try {
        const char* const text = kept(name);
        const std::lock_guard guard(mutex_);
        log_.note(tasks_, {text, ns(begin_us), ns(end_us), 0, -1, trace::SpanKind::kWork});
    } catch (...) {
        // No memory for its name: it is missing.
    }
}

double DeviceTrace::copied_until_us() const {
    const std::lock_guard guard(mutex_);
    return copied_until_us_;
}

void DeviceTrace::copied(const char* direction, double begin_us, double end_us) noexcept {
    const std::lock_guard guard(mutex_);
    // Two threads may copy at once; spans of a row follow each other.
    begin_us = std::max(begin_us, copied_until_us_);
    copied_until_us_ = std::max(end_us, begin_us);
    log_.note(copies_, {direction, ns(begin_us), ns(copied_until_us_), 0, -1, trace::SpanKind::kWork});
}

}  // namespace heddle::devices
