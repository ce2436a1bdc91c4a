#include "heddle/error.hpp"
#include "heddle/in_task.hpp"
#include "heddle/pause.hpp"
#include "tasks/crew.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"
#include "tasks/waiter.hpp"

namespace heddle {
namespace {

/// Signalled, and not yet blocked on.
class Signalled final : public Waiter {
  public:
    void wake() noexcept override {}
} signalled;

}  // namespace

bool in_task() noexcept {
    return current_frame() != nullptr || Crew::here() != nullptr;
}

void BlockCondition::block() {
    Waiter* found = state_.load(std::memory_order_acquire);
    if (found == nullptr) {
        bool paused = false;
        const auto publish = [&](Waiter& waiter) noexcept {
            paused = true;
            Waiter* expected = nullptr;
            if (state_.compare_exchange_strong(expected, &waiter, std::memory_order_acq_rel)) return true;
            paused = false;
            found = expected;
            return false;
        };
        wait_for_wake(publish);
        if (paused) return;
    }
    if (found != &signalled)
        throw Error(ErrorCode::kInvalidArgument,
                    "a task is blocked on this condition already: each needs a condition of its own");
    state_.store(nullptr, std::memory_order_relaxed);
}

void BlockCondition::block_until_signalled() {
    while (true) {
        try {
            return block();
        } catch (const Error& error) {
            if (error.code() != ErrorCode::kLimit) throw;
        } catch (const std::bad_alloc&) {
            // As well.
        }
        detail::RuntimeState::let_others_run();
    }
}

void BlockCondition::signal() {
    Waiter* found = state_.load(std::memory_order_acquire);
    do {
        if (found == &signalled)
            throw Error(ErrorCode::kInvalidArgument,
                        "this condition was signalled already, and nobody has blocked on it since");
    } while (!state_.compare_exchange_weak(found, found == nullptr ? &signalled : nullptr,
                                           std::memory_order_acq_rel, std::memory_order_acquire));
    if (found != nullptr) found->wake();
}

}  // namespace heddle
