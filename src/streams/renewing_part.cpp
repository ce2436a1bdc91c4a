#include "streams/renewing_part.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "streams/renewable.hpp"

namespace heddle::streams {

/// Records in it hold a turn each, which ends where they leave, lie down in a cell or are gone.
class RenewingPart::Replica final : public Inlet, public TurnKeeper {
  public:
    explicit Replica(RenewingPart& whole) : whole_(whole) {}
    void build(const Path& path) {
        entry_ = &whole_.plant_.build(whole_.part_.parts[0], *this, path, &cells_);
    }
    /// Of one that is free. Under the mutex of the whole, as is enter().
    void begin(int number, const FiredCells& fired) {
        if (!fired.empty()) renew(fired);
        number_ = number;
    }
    void enter() { inside_.fetch_add(1, std::memory_order_relaxed); }
    /// While it is not free.
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool is_empty() const { return inside_.load(std::memory_order_acquire) == 0; }
    /// Of one that was entered.
    void pass(Record&& record, Flow& flow) {
        enter_turn(record.turn, *this, 0);
        flow.pass(*entry_, std::move(record));
    }
    /// Out of it.
    void take(Record&& record, Flow& flow) override {
        const TurnReference turn = std::move(record.turn);
        record.turn = turn.get()->outer();
        whole_.leaves(std::move(record), number_, flow);
        // What came in behind it could overtake it by another replica, unless it is inside until all that was
        // passed has come to rest. Without queues nothing comes in behind it before that.
        if (whole_.has_queues_) flow.hold(turn);
    }
    void over(uint64_t /*number*/, TurnReference /*outer*/, Flow* /*here*/) noexcept override {
        // Release and acquire: who finds it empty sees what was done in it.
        if (inside_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        const std::lock_guard guard(whole_.left_mutex_);
        if (!std::exchange(listed_, true)) whole_.left_.push_back(this);  // there is room for each
    }
    /// Under left_mutex_: it was taken out of left_.
    void unlist() { listed_ = false; }
    /// Nothing where a record lies in it.
    [[nodiscard]] std::optional<FiredCells> state() const {
        FiredCells fired;
        for (Renewable* cell : cells_) {
            const Has has = cell->has();
            if (has == Has::kRecords) return std::nullopt;
            if (cell->fires()) fired.push_back(has == Has::kFired);
        }
        if (std::find(fired.begin(), fired.end(), true) == fired.end()) fired.clear();
        return fired;
    }
    /// Empty: as new.
    void renew(const FiredCells& fired) {
        size_t i = 0;
        for (Renewable* cell : cells_)
            if (cell->fires()) cell->renew(!fired.empty() && fired[i++]);
    }

  private:
    RenewingPart& whole_;
    Inlet* entry_ = nullptr;
    std::vector<Renewable*> cells_;
    int number_ = 0;
    std::atomic<uint64_t> inside_{0};
    bool listed_ = false;  ///< in left_; under left_mutex_
};

RenewingPart::RenewingPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : TopologyPart(plant, part, exit, path), has_queues_(has_queues(part.parts[0])) {}

RenewingPart::~RenewingPart() = default;

Renewable::Has RenewingPart::has() {
    const std::lock_guard guard(mutex_);
    renew_those_left();
    return replicas_.empty() && states_.count() == 0 ? Has::kNothing : Has::kRecords;
}

RenewingPart::Replica* RenewingPart::enter_known(int number) {
    const auto known = replicas_.find(number);
    if (known == replicas_.end()) return nullptr;
    known->second->enter();
    return known->second;
}

RenewingPart::Replica& RenewingPart::enter_another(int number) {
    if (free_.empty()) free_.push_back(&make_replica());
    Replica& replica = *free_.back();
    replicas_.emplace(number, &replica);
    free_.pop_back();
    replica.begin(number, states_.of(number));
    states_.remove(number);
    replica.enter();
    return replica;
}

void RenewingPart::pass(Replica& replica, Record&& record, Flow& flow) {
    replica.pass(std::move(record), flow);
}

RenewingPart::Replica& RenewingPart::make_replica() {
    // Where its parts cannot be made it stays, for those that are there already lead to it.
    const Path& path = path_of_replica(all_.size());
    for (auto* const list : {&looked_at_, &free_})
        if (list->capacity() <= all_.size()) list->reserve(2 * all_.size() + 1);
    {
        const std::lock_guard guard(left_mutex_);
        if (left_.capacity() <= all_.size()) left_.reserve(2 * all_.size() + 1);
    }
    Replica& made = *all_.emplace_back(std::make_unique<Replica>(*this));
    made.build(path);
    return made;
}

void RenewingPart::renew_those_left() {
    renew_looked_at();  // what an earlier call without memory has left
    {
        const std::lock_guard guard(left_mutex_);
        std::swap(looked_at_, left_);
        for (Replica* const replica : looked_at_) replica->unlist();
    }
    renew_looked_at();
}

void RenewingPart::renew_looked_at() {
    while (!looked_at_.empty()) {
        Replica* const replica = looked_at_.back();
        looked_at_.pop_back();
        // It may have been entered since, or be free already.
        const auto known = replicas_.find(replica->number());
        if (known == replicas_.end() || known->second != replica || !replica->is_empty()) continue;
        const std::optional<FiredCells> state = replica->state();
        if (!state) continue;
        if (!state->empty()) {
            if (!states_.add(replica->number(), *state)) continue;
            replica->renew(FiredCells());
        }
        replicas_.erase(known);
        free_.push_back(replica);  // there is room for each
    }
}

}  // namespace heddle::streams
