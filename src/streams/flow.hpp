// Inlet, Flow: how a record goes from part to part.
//
// A part that only decides or computes takes a record and passes on what comes of it; the flow that carries
// it goes on with that, first things first, until all have come to rest: in the queue of a box, in a
// synchrocell, at the end. So a chain of any length needs no stack, and records on one way keep their order.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "cores/short_lock.hpp"
#include "heddle/streams_box.hpp"
#include "streams/pressure.hpp"
#include "streams/record.hpp"

namespace heddle::streams {

class Flow;

/// Where records arrive. Any thread may bring some; those of one flow arrive in their order.
class Inlet {
  public:
    virtual ~Inlet() = default;
    virtual void take(Record&& record, Flow& flow) = 0;
};

/// A part that a flow keeps for itself for a while.
class Kept {
  public:
    virtual ~Kept() = default;
    virtual void let_go() = 0;
};

/// What a flow does when nothing else is under way in it.
class Deferred {
  public:
    virtual ~Deferred() = default;
    virtual void go_on(Flow& flow) noexcept = 0;

  private:
    friend class Flow;
    Deferred* next_ = nullptr;
};

/// For one thread, or one task.
class Flow {
  public:
    /// `uncounted`: it has not begun there, and is counted there only when it has to wait.
    explicit Flow(Pressure* uncounted = nullptr) : uncounted_(uncounted) {}
    ~Flow() { let_go(); }
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;

    /// Until all has come to rest. Throws what a part throws: the flow can be used again, and what was under
    /// way is gone.
    void run(Inlet& first, Record&& record) {
        pass(first, std::move(record));
        run_passed();
    }
    void run_passed() {
        try {
            settle();
        } catch (...) {
            for (Step& step : steps_) step = {};
            goes_on_to_ = nullptr;
            passed_.clear();
            ahead_.clear();
            throw;
        }
        go_on();
    }
    /// Of a record that has come to rest: it goes, and what was put off until then is done.
    void finish(Record& record) {
        end(record);
        go_on();
    }
    /// It may do for others what takes long: it is a task's, and not in the midst of a call.
    void take_deferred() { takes_deferred_ = true; }
    /// In TurnKeeper::over(), of the flow that is named there: not twice at once.
    void defer(Deferred& part) { part.next_ = std::exchange(deferred_, &part); }
    /// In take(): after what was passed before. The record is the flow's then; the one that was taken, passed
    /// first, stays where it is.
    void pass(Inlet& to, Record&& record) {
        Step& next = steps_[1 - now_];
        if (next.filled || goes_on_to_ != nullptr) {
            passed_.push_back({&to, std::move(record), true});
        } else if (&record == &steps_[now_].record && passed_.empty()) {
            goes_on_to_ = &to;
        } else {
            next.to = &to;
            next.record = std::move(record);
            next.filled = true;
        }
    }
    /// Records that wait until what was passed before them has come to rest.
    [[nodiscard]] size_t under_way() const { return ahead_.size(); }
    /// In take(): keeps the turn until all that was passed so far has come to rest.
    void hold(TurnReference turn) {
        passed_.push_back({nullptr, {}, true});
        passed_.back().record.turn = std::move(turn);
    }

    // Boxes that are called in the flow itself (BoxPart).

    /// What they may take for one record, in nanoseconds: less than it takes another worker to begin with it.
    static constexpr uint32_t kBudget = 600;
    /// Nanoseconds of such calls that this record may still take; 0: it goes to the queues of boxes.
    uint32_t budget = 0;
    void keep(Kept& part) { kept_.push_back(&part); }
    /// All that it keeps, or all but one; before the flow may wait for something.
    void let_go(const Kept* but = nullptr) {
        if (kept_.empty()) return;
        std::erase_if(kept_, [&](Kept* part) {
            if (part != but) part->let_go();
            return part != but;
        });
    }
    /// It keeps boxes while it does nothing: who wants one has to ask for it (PushSeat). Changed while it
    /// keeps nothing; read by any thread.
    void set_stays(bool stays) { stays_.store(stays, std::memory_order_relaxed); }
    [[nodiscard]] bool stays() const {
        return (outer_ == nullptr ? *this : *outer_).stays_.load(std::memory_order_relaxed);
    }

    /// Before it waits; or, by any thread, to know when it ends. False: it was counted already.
    bool count() {
        Flow& outermost = outer_ == nullptr ? *this : *outer_;
        if (outermost.uncounted_ == nullptr) return false;
        Counted none = Counted::kNot;
        if (!outermost.counted_.compare_exchange_strong(none, Counted::kSoon, std::memory_order_relaxed)) {
            outermost.settle_count();
            return false;
        }
        outermost.uncounted_->begin();
        outermost.counted_.store(Counted::kYes, std::memory_order_release);
        return true;
    }
    /// By the flow itself: whether it was counted, and has to end.
    [[nodiscard]] bool uncount() {
        if (counted_.load(std::memory_order_relaxed) == Counted::kNot) return false;
        settle_count();
        counted_.store(Counted::kNot, std::memory_order_relaxed);
        return true;
    }

    /// It is of the task that empties this queue and no other does, or goes on in a call of that box.
    void set_empties(const Pressure::Gauge* queue) { empties_ = queue; }
    /// What nobody empties while the flow waits.
    [[nodiscard]] Pressure::Held held() const {
        Pressure::Held all{};
        size_t count = 0;
        for (const Flow* one = this; one != nullptr; one = one->around_) all.at(count++) = one->empties_;
        return all;
    }

    /// For what a box sends while it is called. What that reaches may be called there, but nothing further
    /// inside: no stack has more than two calls of boxes on it.
    Flow& inner() {
        if (!inner_) {
            inner_ = std::make_unique<Flow>();
            inner_->outer_ = outer_ == nullptr ? this : outer_;
            inner_->around_ = this;
        }
        inner_->budget = outer_ == nullptr ? kBudget : 0;
        return *inner_;
    }
    // Room of one call at a time: its arguments, what it has sent, and the latest of that.
    std::vector<snet::BoxValue>& values() { return values_; }
    std::vector<Record>& sent() { return sent_; }
    std::vector<snet::BoxValue>& latest() { return latest_; }

  private:
    struct Step {
        Inlet* to = nullptr;  ///< null: nothing to do
        Record record;
        bool filled = false;
    };
    /// Whoever counts it has said so, and is about to.
    enum class Counted : uint8_t { kNot, kSoon, kYes };
    void settle_count() const {
        for (Patience patience; counted_.load(std::memory_order_acquire) == Counted::kSoon;) patience.wait();
    }
    void settle() {
        while (true) {
            // What was passed first is the record of the step, or in the other one, the rest in passed_.
            if (!passed_.empty()) {
                std::move(passed_.rbegin(), passed_.rend(), std::back_inserter(ahead_));
                passed_.clear();
                // hold() may have been all that was passed.
            }
            if (goes_on_to_ != nullptr) {
                steps_[now_].to = std::exchange(goes_on_to_, nullptr);
            } else {
                now_ = 1 - now_;
                if (!steps_[now_].filled) {
                    if (ahead_.empty()) return;
                    steps_[now_] = std::move(ahead_.back());
                    ahead_.pop_back();
                }
            }
            Step& step = steps_[now_];
            if (step.to != nullptr) step.to->take(std::move(step.record), *this);
            if (goes_on_to_ != nullptr) continue;
            end(step.record);  // what the part has left of it
            step.filled = false;
        }
    }
    void end(Record& record) {
        if (!record.turn) return record.reset();
        TurnReference turn = std::move(record.turn);
        record.reset();
        const bool is_last = passed_.empty() && ahead_.empty() && !steps_[1 - now_].filled;
        const TurnsEndIn here(is_last && takes_deferred_ ? this : nullptr);
        turn = {};
    }
    void go_on() {
        if (deferred_ == nullptr || goes_on_) return;
        goes_on_ = true;
        while (Deferred* const part = deferred_) {
            deferred_ = std::exchange(part->next_, nullptr);
            part->go_on(*this);
        }
        goes_on_ = false;
    }

    std::array<Step, 2> steps_;
    unsigned now_ = 0;  ///< the step that is taken; the other one is the next
    /// Where the record of the step that is taken goes, before the next step.
    Inlet* goes_on_to_ = nullptr;
    std::vector<Step> passed_;  ///< behind that
    std::vector<Step> ahead_;   ///< the next one is the last
    std::vector<Kept*> kept_;
    bool takes_deferred_ = false;
    Deferred* deferred_ = nullptr;
    bool goes_on_ = false;  ///< with what was deferred
    std::unique_ptr<Flow> inner_;
    Flow* outer_ = nullptr;         ///< the outermost one, of an inner one
    const Flow* around_ = nullptr;  ///< the one whose inner one it is
    const Pressure::Gauge* empties_ = nullptr;
    Pressure* const uncounted_;
    std::atomic<Counted> counted_{Counted::kNot};
    std::atomic<bool> stays_{false};
    std::vector<snet::BoxValue> values_, latest_;
    std::vector<Record> sent_;
};

}  // namespace heddle::streams
