// OperationState: an operation of a client that has not ended at once, and who waits for it.
//
// Written under the lock of its server until it is done; then read by whoever was told.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "heddle/memory_types.hpp"
#include "heddle/pause.hpp"
#include "memory/caching_agent.hpp"

namespace heddle::memory {

class Connection;

class OperationState {
  public:
    using Outcome = std::variant<OperationResult, MemoryError, std::exception_ptr>;

    Ticket ticket = 0;
    /// Of one that a future holds.
    std::shared_ptr<Connection> connection;
    /// Called once, without the lock, instead of waking who waits. It may end the life of this object.
    std::function<void(Outcome)> when_done;

    /// True: somebody has to be told, by tell().
    bool end(Outcome outcome) {
        outcome_ = std::move(outcome);
        return waited_for_ || when_done;
    }
    void tell() {
        // What it is to call may own this object.
        if (const auto call = std::exchange(when_done, nullptr))
            call(std::move(*outcome_));
        else
            condition_.signal();
    }
    [[nodiscard]] bool done() const noexcept { return outcome_.has_value(); }
    /// From now on it is told; block() has to follow.
    void announce_wait() noexcept { waited_for_ = true; }
    void block() { condition_.block(); }
    /// Throws what it ended with.
    [[nodiscard]] OperationResult take() {
        if (auto* error = std::get_if<MemoryError>(&*outcome_)) throw MemoryError(*error);
        if (auto* error = std::get_if<std::exception_ptr>(&*outcome_)) std::rethrow_exception(*error);
        return std::get<OperationResult>(std::move(*outcome_));
    }

  private:
    std::optional<Outcome> outcome_;
    bool waited_for_ = false;
    BlockCondition condition_;
};

}  // namespace heddle::memory
