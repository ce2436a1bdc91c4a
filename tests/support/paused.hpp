// Paused: a function on a fiber of its own, which a test resumes from whatever thread it likes.
//
// Owned by the test. One thread at a time may resume it. Its stack is a pool's.
#pragma once

#include <functional>
#include <utility>

#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"

namespace heddle::test {

class Paused {
  public:
    using Body = std::function<void(Paused&)>;

    Paused(StackCache& cache, Body body)
        : cache_(cache), stack_(cache.take()), body_(std::move(body)), fiber_(stack_.span(), begin, this) {}
    ~Paused() { cache_.give_back(stack_); }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

    /// By whoever is outside: runs it until it pauses or ends.
    void resume() {
        Fiber here;
        resumer_ = &here;
        Fiber::switch_to(here, fiber_);
    }
    /// By the body: back to whoever resumed it.
    void pause(Handoff handoff = {}) { Fiber::switch_to(fiber_, *resumer_, handoff); }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    static void begin(void* argument) {
        auto& self = *static_cast<Paused*>(argument);
        self.body_(self);
        self.ended_ = true;
        Fiber::exit_to(self.fiber_, *self.resumer_);
    }

    StackCache& cache_;
    Stack& stack_;
    Body body_;
    Fiber fiber_;
    Fiber* resumer_ = nullptr;
    bool ended_ = false;
};

}  // namespace heddle::test
