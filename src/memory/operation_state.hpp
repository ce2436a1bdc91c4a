// OperationState: an operation of a client that has not ended at once, and who waits for it.
//
// Written under the lock of its server until it is done; then read by whoever was told.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "heddle/memory_types.hpp"
#include "heddle/pause.hpp"
#include "memory/caching_agent.hpp"
#include "memory/transfer.hpp"

namespace heddle::memory {

class Connection;

/// What a get has given; nullptr: it was not a get.
[[nodiscard]] inline const LocalRange* local_of(const OperationResult& result) {
    if (const auto* local = std::get_if<ConstLocalRange>(&result)) return local;
    return std::get_if<MutableLocalRange>(&result);
}

/// Throws what an operation ended with, where that is no result.
[[nodiscard]] inline OperationResult result_of(Completion::Outcome&& outcome) {
    if (auto* error = std::get_if<MemoryError>(&outcome)) throw MemoryError(*error);
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
    return std::get<OperationResult>(std::move(outcome));
}

class OperationState {
  public:
    using Outcome = Completion::Outcome;

    Ticket ticket = 0;
    /// Of one that a future holds.
    std::shared_ptr<Connection> connection;
    /// Called once, without the lock, instead of waking who waits. It may end the life of this object.
    std::function<void(Outcome)> when_done;

    /// True: somebody has to be told, by tell().
    bool end(Outcome outcome) {
        const bool told = waited_for_ || when_done;
        outcome_ = std::move(outcome);
        // Who sees it takes the outcome without the lock, and may end the life of this object.
        done_.store(true, std::memory_order_release);
        return told;
    }
    void tell() {
        // What it is to call may own this object.
        if (const auto call = std::exchange(when_done, nullptr))
            call(std::move(*outcome_));
        else
            condition_.signal();
    }
    /// Any thread, also without the lock.
    [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// As done(), or there is something to take. Whoever waits is told then.
    [[nodiscard]] bool ready() const noexcept { return done() || offers_.load(std::memory_order_relaxed); }
    /// As a new one. Nobody else knows it.
    void renew() noexcept {
        outcome_.reset();
        done_.store(false, std::memory_order_relaxed);
        waited_for_ = false;
    }
    /// From now on it is told; block() has to follow, which returns when it was. `moves`: whoever waits would
    /// move its bytes itself.
    void announce_wait(bool moves = false) noexcept {
        waited_for_ = true;
        moves_ = moves;
    }
    /// True: whoever waits moves these bytes, once told.
    [[nodiscard]] bool give(const Transfer& transfer) noexcept {
        if (!waited_for_ || !moves_ || given_) return false;
        given_ = transfer;
        waited_for_ = false;
        offers_.store(true, std::memory_order_relaxed);
        return true;
    }
    /// What there is to move, by whoever has waited.
    [[nodiscard]] std::optional<Transfer> take_given() noexcept {
        offers_.store(false, std::memory_order_relaxed);
        return std::exchange(given_, {});
    }
    void block() { condition_.block_until_signalled(); }
    /// Throws what it ended with.
    [[nodiscard]] OperationResult take() { return result_of(std::move(*outcome_)); }

  private:
    std::optional<Outcome> outcome_;
    std::atomic<bool> done_{false};
    bool waited_for_ = false;
    bool moves_ = false;
    std::optional<Transfer> given_;
    std::atomic<bool> offers_{false};  // written with given_; read as a hint
    BlockCondition condition_;
};

}  // namespace heddle::memory
