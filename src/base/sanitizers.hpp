// FiberForSanitizers: tells AddressSanitizer and ThreadSanitizer which flow of control runs on which stack.
//
// Each Fiber (fibers/fiber.hpp) has one, made without a stack for the flow of a thread; builds without these
// sanitizers have an empty class and no instruction of it. ThreadSanitizer takes a fiber for a thread and
// ends the program at 8,128 of both together. Its functions are inlined always: ThreadSanitizer keeps a stack
// of calls for each fiber, and a call must end on the one on which it began.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HEDDLE_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define HEDDLE_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEDDLE_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define HEDDLE_THREAD_SANITIZER
#endif
#endif

#if defined(HEDDLE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(HEDDLE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle {

/// Memory that was a stack is usable again whatever the frames that were on it forbade.
inline void forget_frames([[maybe_unused]] void* bottom, [[maybe_unused]] size_t bytes) noexcept {
#if defined(HEDDLE_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(bottom, bytes);
#endif
}

#if defined(HEDDLE_ADDRESS_SANITIZER)

class FiberForSanitizers {
  public:
    FiberForSanitizers() noexcept : FiberForSanitizers(nullptr, nullptr) {}
    FiberForSanitizers(void* bottom, void* top) noexcept
        : bottom_(bottom),
          bytes_(static_cast<size_t>(static_cast<char*>(top) - static_cast<char*>(bottom))) {}

    /// It is about to be left for the last time.
    [[gnu::always_inline]] void ends() noexcept { ends_ = true; }
    [[gnu::always_inline]] void leave_for(FiberForSanitizers& to) noexcept {
        to.came_from_ = this;
        __sanitizer_start_switch_fiber(ends_ ? nullptr : &fake_stack_, to.bottom_, to.bytes_);
    }
    /// It runs now, and whom it came from is still there. A thread's own bounds are learned when it is left.
    [[gnu::always_inline]] void arrive() noexcept {
        __sanitizer_finish_switch_fiber(fake_stack_, &came_from_->bottom_, &came_from_->bytes_);
    }

  private:
    const void* bottom_;
    size_t bytes_;
    void* fake_stack_ = nullptr;
    FiberForSanitizers* came_from_ = nullptr;
    bool ends_ = false;
};

#elif defined(HEDDLE_THREAD_SANITIZER)

class FiberForSanitizers {
  public:
    FiberForSanitizers() noexcept : fiber_(__tsan_get_current_fiber()) {}
    FiberForSanitizers(void*, void*) noexcept : fiber_(__tsan_create_fiber(0)), owned_(true) {}
    FiberForSanitizers(const FiberForSanitizers&) = delete;
    FiberForSanitizers& operator=(const FiberForSanitizers&) = delete;
    ~FiberForSanitizers() {
        if (owned_) __tsan_destroy_fiber(fiber_);
    }

    [[gnu::always_inline]] void ends() noexcept {}
    /// What this flow did happens before what the other does next: it is one thread that does both.
    [[gnu::always_inline]] void leave_for(FiberForSanitizers& to) noexcept {
        __tsan_switch_to_fiber(to.fiber_, 0);
    }
    [[gnu::always_inline]] void arrive() noexcept {}

  private:
    void* fiber_;
    bool owned_ = false;
};

#else

class FiberForSanitizers {
  public:
    FiberForSanitizers() noexcept = default;
    FiberForSanitizers(void*, void*) noexcept {}
    void ends() noexcept {}
    void leave_for(FiberForSanitizers&) noexcept {}
    void arrive() noexcept {}
};

#endif

}  // namespace heddle
