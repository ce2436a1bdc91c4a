#include "streams/renewing_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::streams {

/// Records in it hold a turn each, which ends where they leave, lie down in a cell or are gone.
class RenewingSplit::Replica final : public Inlet, public TurnKeeper {
  public:
    explicit Replica(RenewingSplit& split) : split_(split) {}
    void build(const Path& path) {
        entry_ = &split_.plant_.build(split_.part_.parts[0], *this, path, &cells_);
    }
    /// Under the split's mutex.
    void enter(int value) {
        value_ = value;
        inside_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] int value() const { return value_; }
    [[nodiscard]] bool is_empty() const { return inside_.load(std::memory_order_acquire) == 0; }
    /// Of one that was entered.
    void pass(Record&& record, Flow& flow) {
        record.turn = TurnReference(new Turn(*this, 0, std::move(record.turn)));
        flow.pass(*entry_, std::move(record));
    }
    /// Out of it.
    void take(Record&& record, Flow& flow) override {
        const TurnReference turn = std::move(record.turn);
        record.turn = turn.get()->outer();
        flow.pass(split_.exit_, std::move(record));
        flow.hold(turn);  // it is inside until all that was passed before has come to rest
    }
    void over(uint64_t /*number*/, TurnReference /*outer*/) override {
        // Release and acquire: who finds it empty sees what was done in it.
        if (inside_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        const std::lock_guard guard(split_.left_mutex_);
        if (!std::exchange(listed_, true)) split_.left_.push_back(this);
    }
    /// Under left_mutex_: it was taken out of left_.
    void unlist() { listed_ = false; }
    [[nodiscard]] Renewable::Has has() const {
        using Has = Renewable::Has;
        bool fired = false, fresh = false;
        for (Renewable* cell : cells_) {
            const Has one = cell->has();
            if (one == Has::kRecords) return Has::kRecords;
            (one == Has::kFired ? fired : fresh) |= cell->fires();
        }
        return fired && fresh ? Has::kRecords : fired ? Has::kFired : Has::kNothing;
    }
    void renew(bool fired) {
        for (Renewable* cell : cells_) cell->renew(fired);
    }

  private:
    RenewingSplit& split_;
    Inlet* entry_ = nullptr;
    std::vector<Renewable*> cells_;
    int value_ = 0;
    std::atomic<uint64_t> inside_{0};
    bool listed_ = false;  ///< in left_; under left_mutex_
};

RenewingSplit::RenewingSplit(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : TopologyPart(plant, part, exit, path) {}

RenewingSplit::~RenewingSplit() = default;

void RenewingSplit::take(Record&& record, Flow& flow) {
    if (!record.has(part_.tag)) {
        LabelSet wanted;
        wanted.add(part_.tag);
        plant_.fail(record, path_, no_way(record, {wanted}));
        return;
    }
    Replica* replica = nullptr;
    try {
        const std::lock_guard guard(mutex_);
        replica = &enter_replica_for(record.tag(part_.tag));
    } catch (...) {
        plant_.fail(record, path_);
        return;
    }
    replica->pass(std::move(record), flow);
}

RenewingSplit::Replica& RenewingSplit::enter_replica_for(int value) {
    if (const auto known = replicas_.find(value); known != replicas_.end()) {
        known->second->enter(value);
        return *known->second;
    }
    renew_those_left();
    if (fired_values_.contains(value)) {
        if (fired_ == nullptr) {
            fired_ = &make_replica();
            fired_->renew(true);
        }
        fired_->enter(value);
        return *fired_;
    }
    if (free_.empty()) {
        if (all_.size() >= plant_.options.most_stages) refuse_another_replica(replicas_.size());
        free_.push_back(&make_replica());
    }
    Replica* const replica = free_.back();
    replicas_.emplace(value, replica);
    free_.pop_back();
    replica->enter(value);
    return *replica;
}

RenewingSplit::Replica& RenewingSplit::make_replica() {
    // Where its parts cannot be made it stays, for those that are there already lead to it.
    Replica& made = *all_.emplace_back(std::make_unique<Replica>(*this));
    made.build(plant_.path(&path_, fmt::format("replica {}", all_.size())));
    return made;
}

void RenewingSplit::renew_those_left() {
    std::vector<Replica*> left;
    {
        const std::lock_guard guard(left_mutex_);
        std::swap(left, left_);
        for (Replica* const replica : left) replica->unlist();
    }
    for (Replica* const replica : left) {
        // It may have been entered since, or renewed already.
        const auto known = replicas_.find(replica->value());
        if (known == replicas_.end() || known->second != replica || !replica->is_empty()) continue;
        const Renewable::Has has = replica->has();
        if (has == Renewable::Has::kRecords) continue;
        if (has == Renewable::Has::kFired) {
            fired_values_.add(replica->value());
            replica->renew(false);
        }
        replicas_.erase(known);
        free_.push_back(replica);
    }
}

}  // namespace heddle::streams
