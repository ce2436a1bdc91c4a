// SnetStop: SIGINT and SIGTERM while records flow. The first one ends the input, and what is under way
// drains; the second one drops that; the third one ends the process at once, as if nobody had looked at it.
//
// One at a time in a process. While it lives the two signals, where they were not ignored before, come to it,
// in whichever thread they arrive; a thread of its own acts on them.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "base/descriptor.hpp"

namespace heddle::tool {

/// The end of the input before its end, told to who reads it. Any thread.
class InputEnd {
  public:
    /// Throws kSystem where there is no descriptor for it.
    InputEnd();
    void tell() const noexcept;
    /// Readable from the first call of tell() on, for ever.
    [[nodiscard]] int descriptor() const { return event_.get(); }

  private:
    const Descriptor event_;
};

class SnetStop {
  public:
    /// Both are called by its thread, after `input` was told. Throws kSystem where there is no descriptor for
    /// it.
    SnetStop(const InputEnd& input, std::function<void(int signal)> on_first,
             std::function<void()> on_second);
    /// The signals are as they were before; its thread has ended.
    ~SnetStop();
    SnetStop(const SnetStop&) = delete;
    SnetStop& operator=(const SnetStop&) = delete;

    /// The first signal; 0: none came. Any thread.
    [[nodiscard]] static int signal() noexcept;

  private:
    void run();

    const std::function<void(int)> on_first_;
    const std::function<void()> on_second_;
    const InputEnd& input_;
    const Descriptor arrived_;
    struct sigaction before_int_ {
    }, before_term_{};
    std::thread thread_;  // last: it uses the others
};

}  // namespace heddle::tool
