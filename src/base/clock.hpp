// Clock: monotonic time behind an interface, so that state machines are tested with a time of their own.
#pragma once

#include <chrono>

namespace heddle {

using Nanoseconds = std::chrono::nanoseconds;
/// A point on the monotonic clock (CLOCK_MONOTONIC); comparable between processes of one machine.
using Time = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

class Clock {
  public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual Time now() const = 0;
};

class SteadyClock final : public Clock {
  public:
    [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
};

/// Stands still until told. Not thread-safe.
class FakeClock final : public Clock {
  public:
    [[nodiscard]] Time now() const override { return now_; }
    void advance(Nanoseconds by) { now_ += by; }

  private:
    Time now_{};
};

}  // namespace heddle
