// Inlet, Flow: how a record goes from part to part.
//
// A part that only decides or computes takes a record and passes on what comes of it; the flow that carries
// it goes on with that, first things first, until all have come to rest: in the queue of a box, in a
// synchrocell, at the end. So a chain of any length needs no stack, and records on one way keep their order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "heddle/streams_box.hpp"
#include "streams/record.hpp"

namespace heddle::streams {

class Flow;

/// Where records arrive. Any thread may bring some; those of one flow arrive in their order.
class Inlet {
  public:
    virtual ~Inlet() = default;
    virtual void take(Record record, Flow& flow) = 0;
    /// Where all records go from here as they are, from now on for ever; null: they do not.
    [[nodiscard]] virtual Inlet* passes_to() { return nullptr; }
};

/// A part that a flow keeps for itself for a while.
class Kept {
  public:
    virtual ~Kept() = default;
    virtual void let_go() = 0;
};

/// For one thread, or one task.
class Flow {
  public:
    Flow() = default;
    ~Flow() { let_go(); }
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;

    /// Until all has come to rest. Throws what a part throws: the flow can be used again, and what was under
    /// way is gone.
    void run(Inlet& first, Record record) {
        pass(first, std::move(record));
        run_passed();
    }
    void run_passed() {
        try {
            settle();
        } catch (...) {
            passed_.clear();
            ahead_.clear();
            throw;
        }
    }
    /// In take(): after what was passed before.
    void pass(Inlet& to, Record record) { passed_.push_back({&to, std::move(record)}); }
    /// Records that wait until what was passed before them has come to rest.
    [[nodiscard]] size_t under_way() const { return ahead_.size(); }
    /// In take(): keeps the turn until all that was passed so far has come to rest.
    void hold(TurnReference turn) {
        passed_.push_back({nullptr, {}});
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
        std::erase_if(kept_, [&](Kept* part) {
            if (part != but) part->let_go();
            return part != but;
        });
    }
    /// For what a box sends while it is called.
    Flow& inner() {
        if (!inner_) inner_ = std::make_unique<Flow>();
        return *inner_;
    }
    /// Of one call at a time.
    std::vector<snet::BoxValue>& values() { return values_; }

  private:
    struct Step {
        Inlet* to;  ///< null: nothing to do
        Record record;
    };
    void settle() {
        while (true) {
            if (passed_.size() != 1) {
                std::move(passed_.rbegin(), passed_.rend(), std::back_inserter(ahead_));
                passed_.clear();
                if (ahead_.empty()) return;
            }
            std::vector<Step>& next = passed_.empty() ? ahead_ : passed_;
            Inlet* const to = next.back().to;
            Record record = std::move(next.back().record);
            next.pop_back();
            if (to != nullptr) to->take(std::move(record), *this);
        }
    }

    std::vector<Step> passed_;
    std::vector<Step> ahead_;  ///< the next one is the last
    std::vector<Kept*> kept_;
    std::unique_ptr<Flow> inner_;
    std::vector<snet::BoxValue> values_;
};

}  // namespace heddle::streams
