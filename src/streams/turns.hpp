// Turn: where order is kept, each record that enters takes a number, and all that comes of it leaves before
// what comes of the next one.
//
// The records that descend from one share its turn; when the last of them is gone, the turn is over. Order
// within order nests: a turn knows the one around it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace heddle::streams {

class Flow;
class Turn;

/// Counts as one of a turn's records. Any thread, one at a time.
class TurnReference {
  public:
    TurnReference() = default;
    /// Of a turn with one reference more.
    explicit TurnReference(Turn* turn) : turn_(turn) {}
    TurnReference(const TurnReference& other);
    TurnReference(TurnReference&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    TurnReference& operator=(TurnReference other) noexcept {
        std::swap(turn_, other.turn_);
        return *this;
    }
    ~TurnReference();

    [[nodiscard]] Turn* get() const { return turn_; }
    explicit operator bool() const { return turn_ != nullptr; }

  private:
    Turn* turn_ = nullptr;
};

/// Where records leave in order.
class TurnKeeper {
  public:
    virtual ~TurnKeeper() = default;
    /// No record of this turn is left. Any thread; `outer` is the turn around it, `here` a flow of this
    /// thread that takes what is deferred and has nothing else to do, or null.
    virtual void over(uint64_t number, TurnReference outer, Flow* here) noexcept = 0;
};

/// While it lives, turns that are over in this thread are told of a flow, or of none. Nobody may wait
/// meanwhile.
class TurnsEndIn {
  public:
    explicit TurnsEndIn(Flow* flow);
    ~TurnsEndIn();
    TurnsEndIn(const TurnsEndIn&) = delete;
    TurnsEndIn& operator=(const TurnsEndIn&) = delete;

  private:
    Flow* const before_;
};

class Turn {
  public:
    /// With one reference.
    Turn(TurnKeeper& keeper, uint64_t number, TurnReference outer)
        : keeper_(keeper), number_(number), outer_(std::move(outer)) {}
    [[nodiscard]] uint64_t number() const { return number_; }
    [[nodiscard]] const TurnReference& outer() const { return outer_; }

  private:
    friend class TurnReference;
    /// Nobody has a reference. The turns that end with it are ended after it, not inside: there may be as
    /// many around each other as nets are nested.
    static void end(Turn& turn) noexcept;

    TurnKeeper& keeper_;
    const uint64_t number_;
    TurnReference outer_;
    Turn* next_ended_ = nullptr;
    std::atomic<uint64_t> references_{1};
};

/// Goes into a new turn, within the one that it is of. Throws std::bad_alloc; then the turn is over.
inline void enter_turn(TurnReference& of_record, TurnKeeper& keeper, uint64_t number) {
    try {
        of_record = TurnReference(new Turn(keeper, number, std::move(of_record)));
    } catch (...) {
        keeper.over(number, {}, nullptr);
        throw;
    }
}

inline TurnReference::TurnReference(const TurnReference& other) : turn_(other.turn_) {
    if (turn_ != nullptr) turn_->references_.fetch_add(1, std::memory_order_relaxed);
}

inline TurnReference::~TurnReference() {
    if (turn_ != nullptr && turn_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        Turn::end(*turn_);
}

}  // namespace heddle::streams
