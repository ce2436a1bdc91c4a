#include "streams/routing_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace heddle::streams {

FilterPart::FilterPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : TopologyPart(plant, part, exit, path),
      pattern_(part.patterns.empty() ? LabelSet() : LabelSet(part.patterns[0].variant)) {}

void FilterPart::take(Record&& record, Flow& flow) {
    if (part_.patterns.empty()) {
        flow.pass(exit_, std::move(record));
        return;
    }
    if (pattern_.fit(record) < 0) {
        plant_.fail(std::move(record), path_, no_way(record, {pattern_}));
        return;
    }
    const auto chosen = [&](const GuardedAction& action) {
        return !action.guard || evaluate(*action.guard, tags_of(record)) != 0;
    };
    // All of them or none: where one cannot be made, the record is a dead letter as it came.
    std::vector<Record> others;
    Values last;
    const OutputRecord* last_output = nullptr;
    try {
        const auto action = std::find_if(part_.actions.begin(), part_.actions.end(), chosen);
        if (action == part_.actions.end() || action->outputs.empty()) return;
        last_output = &action->outputs.back();
        others.reserve(action->outputs.size() - 1);
        for (const OutputRecord& output : action->outputs) {
            Values values = values_of(output, record);
            if (&output == last_output)
                last = std::move(values);
            else
                others.push_back(made(output, std::move(values), record));
        }
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    for (Record& other : others) flow.pass(exit_, std::move(other));
    if (!pattern_.has_all_of(record)) {
        flow.pass(exit_, made(*last_output, std::move(last), record));
        return;
    }
    // Nothing is inherited: the record itself goes on as the last one.
    record.remove_labels();
    set_all(record, *last_output, std::move(last));
    flow.pass(exit_, std::move(record));
}

FilterPart::Values FilterPart::values_of(const OutputRecord& output, const Record& from) const {
    Values values;
    for (const Assignment& assignment : output) {
        if (assignment.label.kind() == LabelKind::kField) {
            if (!from.has(assignment.from))
                throw Error(
                    ErrorCode::kBadInput,
                    fmt::format("this filter copies the field {}, which its pattern does not name and {} "
                                "has not",
                                assignment.from.text(), from.text()));
            values.emplace_back(from.field(assignment.from));
        } else if (assignment.value)
            values.emplace_back(evaluate(*assignment.value, tags_of(from)));
        else
            values.emplace_back(pattern_.has(assignment.from) ? from.tag(assignment.from) : 0);
    }
    return values;
}

void FilterPart::set_all(Record& record, const OutputRecord& output, Values&& values) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (Field* const field = std::get_if<Field>(&values[i]))
            record.set(output[i].label, std::move(*field));
        else
            record.set(output[i].label, std::get<int>(values[i]));
    }
}

Record FilterPart::made(const OutputRecord& output, Values&& values, const Record& from) const {
    Record record;
    set_all(record, output, std::move(values));
    inherit_unused(record, from, pattern_);
    return record;
}

void ChoicePart::take(Record&& record, Flow& flow) {
    if (const Branch* const best = best_branch(branches_, record); best != nullptr) {
        flow.pass(*best->entry, std::move(record));
        return;
    }
    std::vector<LabelSet> taken;
    for (const Branch& branch : branches_)
        taken.insert(taken.end(), branch.takes.begin(), branch.takes.end());
    plant_.fail(std::move(record), path_, no_way(record, taken));
}

SyncPart::SyncPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : TopologyPart(plant, part, exit, path), patterns_(sets_of(part.patterns)), cell_(part.patterns.size()) {
    plant.note_cell(path, [this]() -> std::string {
        const std::lock_guard guard(mutex_);
        return done_ || cell_.filled() == 0
                   ? ""
                   : fmt::format("{} of {} records came", cell_.filled(), part_.patterns.size());
    });
}

void SyncPart::take(Record&& record, Flow& flow) {
    try {
        const std::lock_guard guard(mutex_);
        if (!done_ && cell_.take(part_.patterns, patterns_, record)) {
            if (!cell_.full()) return;
            record = cell_.merged(patterns_, std::move(record.turn));
            cell_ = Cell(part_.patterns.size());  // the rest of the others
            done_ = true;
        }
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(exit_, std::move(record));
}

Renewable::Has SyncPart::has() {
    const std::lock_guard guard(mutex_);
    return done_ ? Has::kFired : cell_.filled() == 0 ? Has::kNothing : Has::kRecords;
}

void SyncPart::renew(bool fired) {
    const std::lock_guard guard(mutex_);
    cell_ = Cell(part_.patterns.size());
    done_ = fired;
}

StarPart::StarPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path, size_t stage)
    : TopologyPart(plant, part, exit, path), stage_(stage), leaving_(sets_of(part.patterns)) {}

void StarPart::take(Record&& record, Flow& flow) {
    if (plant_.drops(record)) return;
    Inlet* to = &exit_;
    try {
        if (!matches_any(part_.patterns, leaving_, record)) {
            std::call_once(made_, [this] { make_replica(); });
            to = replica_;
        }
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(*to, std::move(record));
}

void StarPart::make_replica() {
    if (stage_ >= plant_.options.most_stages)
        throw Error(ErrorCode::kLimit, fmt::format("this is replica {}, and none may be more: does no record "
                                                   "ever match {}?",
                                                   stage_, leaving_[0].text()));
    const Path& path = plant_.path(path_.outer, fmt::format("*[{}]", stage_));
    Inlet& behind = plant_.make_stage(part_, exit_, path, stage_ + 1);
    replica_ = &plant_.build(part_.parts[0], behind, path);
}

FeedbackPart::FeedbackPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : TopologyPart(plant, part, exit, path), back_(sets_of(part.patterns)) {}

void FeedbackPart::take(Record&& record, Flow& flow) {
    bool goes_back = false;
    try {
        goes_back = matches_any(part_.patterns, back_, record);
        if (goes_back && plant_.drops(record)) return;
        if (goes_back) count_turn(record, flow);
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(goes_back ? *inner_ : exit_, std::move(record));
}

void FeedbackPart::count_turn(Record& record, const Flow& flow) const {
    if (record.turns_back++ >= plant_.options.most_turns)
        throw Error(ErrorCode::kLimit,
                    fmt::format("this record, or what it comes of, has gone back {} times, and none may "
                                "more often: do its values never let it leave?",
                                plant_.options.most_turns));
    if (flow.under_way() >= plant_.options.most_waiting)
        throw Error(ErrorCode::kLimit,
                    fmt::format("{} records are under way at once behind one, and there may be no more: "
                                "do more go back each time than leave?",
                                flow.under_way()));
}

void SplitPart::take(Record&& record, Flow& flow) {
    if (!record.has(part_.tag)) {
        LabelSet wanted;
        wanted.add(part_.tag);
        plant_.fail(std::move(record), path_, no_way(record, {wanted}));
        return;
    }
    Inlet* replica = nullptr;
    try {
        replica = &replica_for(record.tag(part_.tag));
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(*replica, std::move(record));
}

Inlet& SplitPart::replica_for(int value) {
    const std::lock_guard guard(mutex_);
    if (const auto known = replicas_.find(value); known != replicas_.end()) return *known->second;
    if (replicas_.size() < (shares_ ? kMostOwn : plant_.options.most_stages)) {
        Inlet& made = plant_.build(part_.parts[0], exit_, plant_.path(&path_, fmt::format("{}", value)));
        replicas_.emplace(value, &made);
        return made;
    }
    if (!shares_) refuse_another_replica(replicas_.size());
    shared_.resize(kShared);
    const size_t place = static_cast<uint32_t>(value) % kShared;
    if (shared_[place] == nullptr)
        shared_[place] =
            &plant_.build(part_.parts[0], exit_, plant_.path(&path_, fmt::format("shared {}", place)));
    return *shared_[place];
}

void NetEntry::take(Record&& record, Flow& flow) {
    const LabelSet* const best = best_fit(takes_, record);
    if (best == nullptr) {
        plant_.fail(std::move(record), path_, no_way(record, takes_));
        return;
    }
    // With no nets around, none stands for nothing put aside: what comes of the record shares no count then.
    if (best->has_all_of(record)) {
        if (record.aside) record.aside = AsideReference(new PutAside({}, std::move(record.aside)));
        flow.pass(body_, std::move(record));
        return;
    }
    Record inside, rest;
    for (const auto& [label, value] : record.fields()) (best->has(label) ? inside : rest).set(label, value);
    for (const auto& [label, value] : record.tags()) (best->has(label) ? inside : rest).set(label, value);
    inside.turn = std::move(record.turn);
    inside.turns_back = record.turns_back;
    inside.aside = AsideReference(new PutAside(std::move(rest), std::move(record.aside)));
    flow.pass(body_, std::move(inside));
}

void NetExit::take(Record&& record, Flow& flow) {
    (void)record.take_back();
    flow.pass(exit_, std::move(record));
}

void LazyNet::take(Record&& record, Flow& flow) {
    try {
        std::call_once(made_, [&] {
            if (path_.depth >= plant_.options.most_nested)
                throw Error(ErrorCode::kLimit,
                            fmt::format("the net \"{}\" is inside of {} others, and none may be deeper: does "
                                        "it use itself without end?",
                                        net_.name, path_.depth));
            body_ = &plant_.build(net_, exit_, path_, &cells_);
        });
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    flow.pass(*body_, std::move(record));
}

Renewable::Has LazyNet::has() {
    const bool empty = std::all_of(cells_.begin(), cells_.end(),
                                   [](Renewable* cell) { return cell->has() == Has::kNothing; });
    return empty ? Has::kNothing : Has::kRecords;
}

void OrderedEntry::take(Record&& record, Flow& flow) {
    enter_turn(record.turn, keeper_, next_.fetch_add(1, std::memory_order_relaxed));
    flow.pass(*inner_, std::move(record));
}

void OrderedExit::take(Record&& record, Flow& flow) {
    if (!record.turn) {  // of an initialiser, which no record has called
        flow.pass(exit_, std::move(record));
        return;
    }
    TurnReference turn = std::move(record.turn);
    record.turn = turn.get()->outer();
    const uint64_t number = turn.get()->number();
    bool waits = false, full = false;
    {
        const std::lock_guard guard(lock_);
        if (number != now_ || releasing_) {
            waits = true;
            waiting_[number].push_back(std::move(record));
            full = ++count_ >= gauge_.bound.load(std::memory_order_relaxed);
        }
    }
    if (!waits) {
        flow.pass(exit_, std::move(record));
        flow.hold(std::move(turn));  // not over before this has come to rest
        return;
    }
    if (full && !plant_.stopped()) {
        flow.let_go();
        flow.count();
        // Whose turn it is by now, and whose record has been released, is who all others wait for.
        const auto waits_on = [&] {
            const std::lock_guard guard(lock_);
            return count_ >= gauge_.bound.load(std::memory_order_relaxed) &&
                   (number != now_ || waiting_.contains(number));
        };
        plant_.pressure.wait(gauge_, waits_on, flow.held());
    }
    record.turn = std::move(turn);  // ends with this step of the flow
}

/// What waits here has the turn around it; that is over, too, when this returns and nothing does.
void OrderedExit::over(uint64_t number, TurnReference, Flow* here) noexcept {
    if (plant_.stopped()) return drop_waiting();
    try {
        const std::lock_guard guard(lock_);
        if (number == now_ && waiting_.empty() && over_.empty()) {
            ++now_;
            return;
        }
        note_over(number);
        if (releasing_) return;
        while (!waiting_.contains(now_))
            if (!advance()) return;
        releasing_ = true;
    } catch (...) {  // without memory
        return give_up();
    }
    if (here != nullptr) return here->defer(*this);
    plant_.pressure.begin();
    try {
        plant_.schedule("order", [this] {
            {
                Flow flow;
                flow.take_deferred();
                go_on(flow);
            }
            plant_.pressure.end();
        });
    } catch (...) {
        give_up();
        end_release();
        plant_.pressure.end();
    }
}

void OrderedExit::go_on(Flow& flow) noexcept {
    try {
        release_waiting(flow);
    } catch (...) {  // without memory
        give_up();
        end_release();
    }
}

void OrderedExit::give_up() noexcept {
    plant_.give_up(std::current_exception());
    drop_waiting();
}

void OrderedExit::end_release() {
    const std::lock_guard guard(lock_);
    releasing_ = false;
}

void OrderedExit::note_over(uint64_t number) {
    uint64_t end = number + 1;
    auto after = over_.lower_bound(number);
    if (after != over_.end() && after->first == end) {
        end = after->second;
        after = over_.erase(after);
    }
    if (after != over_.begin() && std::prev(after)->second == number)
        std::prev(after)->second = end;
    else
        over_.emplace_hint(after, number, end);
}

bool OrderedExit::advance() {
    const auto first = over_.begin();
    if (first == over_.end() || first->first != now_) return false;
    const uint64_t end = first->second;
    over_.erase(first);
    now_ = waiting_.empty() ? end : std::min(end, waiting_.begin()->first);
    if (now_ < end) over_.emplace(now_, end);
    return true;
}

void OrderedExit::release_waiting(Flow& flow) {
    while (true) {
        std::vector<Record> records;
        {
            const std::lock_guard guard(lock_);
            if (auto first = waiting_.extract(now_)) {
                records = std::move(first.mapped());
                count_ -= records.size();
            } else if (!advance()) {
                releasing_ = false;
                return;
            }
        }
        if (!records.empty()) plant_.pressure.emptied(gauge_);
        for (Record& record : records) {
            if (plant_.drops(record)) continue;
            try {
                flow.run(exit_, std::move(record));
            } catch (...) {
                plant_.fail({}, path_);
            }
        }
    }
}

void OrderedExit::drop_waiting() noexcept {
    // With the turns around them, whose ends are told without the lock.
    std::map<uint64_t, std::vector<Record>> dropped;
    {
        const std::lock_guard guard(lock_);
        std::swap(dropped, waiting_);
        plant_.note_dropped(std::exchange(count_, 0));
    }
    plant_.pressure.emptied(gauge_);
}

}  // namespace heddle::streams
