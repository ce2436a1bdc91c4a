#include <fmt/format.h>

#include <algorithm>

#include "cores/exchange.hpp"
#include "streams/box_part.hpp"
#include "streams/finding.hpp"
#include "streams/observer_part.hpp"
#include "streams/own_number.hpp"
#include "streams/parts.hpp"
#include "streams/renewable.hpp"
#include "streams/renewing_split.hpp"
#include "streams/renewing_star.hpp"
#include "streams/routing_parts.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::streams {

Plant::Plant(const Program& its_program, NetworkOptions its_options)
    : program(its_program),
      options(std::move(its_options)),
      typing(its_program),
      // Who reads, pushes or pulls is no worker: it may come and go.
      runtime(std::make_unique<detail::RuntimeState>(
          RuntimeOptions{"native", {}, options.workers, options.stack_bytes}, CpuSet(),
          /*callers_work=*/false)),
      log(runtime.state().log),
      letters_(options.dead_letter),
      tasks_(runtime) {
    pressure.most = options.most_waiting;
    pressure.uncounted = [this] { return seat.ask(); };
    pressure.on_most = [this](const Pressure::Gauge& full) {
        (void)note_failure(std::make_exception_ptr(Error(
            ErrorCode::kLimit,
            fmt::format("{}: {} records wait here, all others wait for it, and there may be no more: do "
                        "more go in than ever come out?",
                        full.path == nullptr ? "" : full.path->text(), full.bound.load()))));
    };
    look_up_boxes(program.main());
    show_boxes();
}

void Plant::look_up_boxes(const NetDefinition& net) {
    if (!looked_up_.insert(&net).second) return;
    if (!net.body) net.place.source->fail(net.place, only_declared(net));
    look_up_boxes(*net.body);
}

void Plant::look_up_boxes(const Topology& part) {
    if (part.box != nullptr && !boxes_.contains(part.box))
        boxes_.emplace(part.box,
                       BoxUse{options.boxes(*part.box), options.calls ? options.calls(*part.box) : BoxCalls(),
                              task_names.emplace_back(part.box->name + " (queue)").c_str()});
    if (part.net != nullptr) look_up_boxes(*part.net);
    for (const Topology& inner : part.parts) look_up_boxes(inner);
}

Plant::~Plant() {
    stopped_ = true;
    (void)seat.ask(PushSeat::For::kGood);
    try {
        tasks_.wait();
    } catch (...) {  // what they throw is told by fail()
    }
    shown_.clear();
    if (log != nullptr) log->flush();  // the names of boxes go away
    // Those inside of others came later: their records may still count for the turns around them.
    while (!parts_.empty()) parts_.pop_back();
}

template <class Part, class... Arguments>
Part& Plant::keep(Arguments&&... arguments) {
    auto part = std::make_unique<Part>(std::forward<Arguments>(arguments)...);
    Part& kept = *part;
    const std::lock_guard guard(mutex_);
    parts_.push_back(std::move(part));
    return kept;
}

const Path& Plant::path(const Path* outer, std::string step) {
    const std::lock_guard guard(mutex_);
    return paths_.emplace_back(Path{outer, std::move(step), outer == nullptr ? 0 : outer->depth + 1});
}

std::string Path::text() const {
    constexpr size_t kFirst = 4, kLast = 8;
    std::string text;
    bool elided = false;
    for (const Path* at = this; at != nullptr; at = at->outer) {
        if (at->depth >= kFirst && at->depth + kLast <= depth) {
            if (!std::exchange(elided, true)) text = fmt::format("...{}{}", text.empty() ? "" : "/", text);
            continue;
        }
        text = text.empty() ? at->step : fmt::format("{}/{}", at->step, text);
    }
    return text;
}

void Plant::start(const Found& found) {
    for (BoxPart* box : found.initialisers) box->start();
}

Inlet& Plant::make(const NetDefinition& net, Inlet& exit, const Path& outer, Found& found) {
    const Path& here = path(&outer, net.name);
    const Observe observe = observer_of(net.metadata, here);
    Inlet& behind = observe ? keep<ObserverPart>(*this, exit, observe, false, here) : exit;
    Inlet* made = nullptr;
    if (net.has_signature) {
        Inlet& body = make(*net.body, keep<NetExit>(behind), here, found);
        made = &keep<NetEntry>(*this, inputs_of(typing.of(net)), body, here);
    } else {
        made = &make(*net.body, behind, here, found);
    }
    return observe ? keep<ObserverPart>(*this, *made, observe, true, here) : *made;
}

Observe Plant::observer_of(const Metadata& metadata, const Path& path) const {
    if (!options.observers || !metadata.contains("observer")) return nullptr;
    return options.observers(path.text(), metadata);
}

Inlet& Plant::make_stage(const Topology& star, Inlet& exit, const Path& path, size_t stage) {
    return keep<StarPart>(*this, star, exit, path, stage);
}

Inlet& Plant::make(const Topology& part, Inlet& exit, const Path& outer, Found& found) {
    // Order is kept between an entry and an exit around what is made here.
    OrderedEntry* entry = nullptr;
    Inlet* leaving = &exit;
    BoxUse* const use = part.box == nullptr ? nullptr : &boxes_.at(part.box);
    if (part.ordered || (use != nullptr && use->calls.most > 1 && use->calls.ordered)) {
        OrderedExit& keeper = keep<OrderedExit>(*this, exit, outer);
        entry = &keep<OrderedEntry>(keeper);
        leaving = &keeper;
    }
    Inlet* made = nullptr;
    switch (part.kind) {
        case TopologyKind::kBox: {
            const Path& here = path(&outer, part.box->name);
            const Observe observe = observer_of(part.box->metadata, here);
            if (observe) leaving = &keep<ObserverPart>(*this, *leaving, observe, false, here);
            BoxPart& box = make_box(part, *use, *leaving, here);
            if (part.box->is_initialiser) found.initialisers.push_back(&box);
            made = &box;
            if (observe) made = &keep<ObserverPart>(*this, *made, observe, true, here);
            break;
        }
        case TopologyKind::kNet:
            if (typing.is_recursive(*part.net)) {
                LazyNet& net = keep<LazyNet>(*this, *part.net, *leaving, outer);
                found.cells.push_back(&net);
                made = &net;
            } else {
                made = &make(*part.net, *leaving, outer, found);
            }
            break;
        case TopologyKind::kFilter:
            made = &keep<FilterPart>(*this, part, *leaving, path(&outer, "[filter]"));
            break;
        case TopologyKind::kSync: {
            SyncPart& cell = keep<SyncPart>(*this, part, *leaving, path(&outer, "[|synchrocell|]"));
            found.cells.push_back(&cell);
            made = &cell;
            break;
        }
        case TopologyKind::kSerial:
            made = leaving;
            for (size_t i = part.parts.size(); i-- > 0;) made = &make(part.parts[i], *made, outer, found);
            break;
        case TopologyKind::kChoice: {
            std::vector<ChoicePart::Branch> branches;
            for (const Topology& branch : part.parts)
                branches.push_back({&make(branch, *leaving, outer, found), inputs_of(typing.of(branch))});
            made = &keep<ChoicePart>(*this, std::move(branches), outer);
            break;
        }
        case TopologyKind::kStar:
            if (const Topology* cell = cell_in(part)) {
                ZipperPart& zipper = keep<ZipperPart>(*this, part, *cell, *leaving, path(&outer, "*"));
                found.cells.push_back(&zipper);
                made = &zipper;
            } else if (is_renewable(part)) {
                RenewingStar& star = keep<RenewingStar>(*this, part, *leaving, path(&outer, "*"));
                found.cells.push_back(&star);
                made = &star;
            } else {
                made = &make_stage(part, *leaving, path(&outer, "*"), 0);
            }
            break;
        case TopologyKind::kFeedback: {
            const Path& here = path(&outer, "\\");
            FeedbackPart& feedback = keep<FeedbackPart>(*this, part, *leaving, here);
            made = &make(part.parts[0], feedback, here, found);
            feedback.goes_back_to(*made);
            break;
        }
        case TopologyKind::kSplit: {
            const Path& here = path(&outer, fmt::format("!{}", part.tag.text()));
            if (const Topology* cell = cell_in(part)) {
                JoinPart& join = keep<JoinPart>(*this, part, *cell, *leaving, here);
                found.cells.push_back(&join);
                made = &join;
            } else if (!keeps_nothing(part) && is_renewable(part)) {
                RenewingSplit& split = keep<RenewingSplit>(*this, part, *leaving, here);
                found.cells.push_back(&split);
                made = &split;
            } else {
                made = &keep<SplitPart>(*this, part, *leaving, here, keeps_nothing(part));
            }
            break;
        }
        case TopologyKind::kPlaced:
            made = &make(part.parts[0], *leaving, outer, found);  // this is one node
            break;
    }
    if (entry == nullptr) return *made;
    entry->goes_on_to(*made);
    return *entry;
}

BoxPart& Plant::make_box(const Topology& part, BoxUse& use, Inlet& exit, const Path& path) {
    BoxPart& box = keep<BoxPart>(*this, *part.box, use.function, use.calls.most, exit, path, use.queue_name);
    const std::lock_guard guard(counted_);
    use.parts.push_back(&box);
    return box;
}

bool Plant::is_own_task() {
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        if (frame->runtime == &runtime.state()) return true;
    return false;
}

void Plant::schedule(const char* name, std::function<void()> work) {
    TaskOptions named;
    named.name = name;
    tasks_.insert(named, [work = std::move(work)] { work(); });
}

void Plant::wait_for_room() {
    pressure.begin();
    try {
        (void)pressure.wait(entry_, [this] { return overfull_.load(std::memory_order_seq_cst) > 0; });
    } catch (...) {
        pressure.end();
        throw;
    }
    pressure.end();
}

Plant::Shown::Shown(std::string name, std::function<WorkCounts()> work)
    : number_(Exchange::process().work().add_part(std::move(name), std::move(work))) {}

Plant::Shown::~Shown() {
    Exchange::process().work().erase(number_);
}

WorkCounts Plant::work_of(const BoxUse& use) const {
    WorkCounts sum;
    const std::lock_guard guard(counted_);
    for (const BoxPart* part : use.parts) {
        const WorkCounts one = part->work();
        sum.inserted += one.inserted;
        sum.ended += one.ended;
    }
    return sum;
}

/// Each of the first ones by its name, which is all that a page of a client has room for.
void Plant::show_boxes() {
    constexpr size_t kMostShown = 24;
    std::vector<const BoxUse*> others;
    std::map<std::string, const BoxUse*> all;
    for (const auto& [box, use] : boxes_) all.emplace(box->name, &use);
    for (const auto& [name, use] : all) {
        if (shown_.size() < kMostShown)
            shown_.emplace_back(fmt::format("box {}", name), [this, use = use] { return work_of(*use); });
        else
            others.push_back(use);
    }
    if (others.empty()) return;
    shown_.emplace_back("box (others)", [this, others] {
        WorkCounts sum;
        for (const BoxUse* use : others) {
            const WorkCounts one = work_of(*use);
            sum.inserted += one.inserted;
            sum.ended += one.ended;
        }
        return sum;
    });
}

void Plant::fail(Record&& record, const Path& path, std::string_view why) {
    std::exception_ptr failure;
    try {
        while (record.take_back()) continue;
        const std::string message = fmt::format("{}: {}", path.text(), why);
        if (options.dead_letter) {
            const auto count = [this] { (void)seat.counts(own_number()); };
            if (!letters_.call(pressure, count, std::move(record), message)) note_dropped(1);
            return;
        }
        failure = std::make_exception_ptr(
            Error(ErrorCode::kBadInput, fmt::format("{} (the record {})", message, record.text())));
    } catch (...) {
        failure = std::current_exception();
    }
    // Of several the first is told.
    if (!give_up(std::move(failure))) note_dropped(1);
}

void Plant::fail(Record&& record, const Path& path) {
    try {
        throw;
    } catch (const std::exception& error) {
        fail(std::move(record), path, error.what());
    } catch (...) {
        fail(std::move(record), path, "something was thrown that is no std::exception");
    }
}

bool Plant::give_up(std::exception_ptr why) {
    if (!note_failure(std::move(why))) return false;
    pressure.stop();
    return true;
}

bool Plant::note_failure(std::exception_ptr why) {
    {
        const std::lock_guard guard(mutex_);
        if (stopped_.exchange(true)) return false;
        failure_ = std::move(why);
        failed_.store(true, std::memory_order_release);
    }
    if (options.on_failure) options.on_failure();
    return true;
}

void Plant::rethrow() {
    if (!failed_.load(std::memory_order_acquire)) return;
    std::exception_ptr failure;
    {
        const std::lock_guard guard(mutex_);
        failure = std::exchange(failure_, nullptr);
    }
    if (failure) std::rethrow_exception(failure);
}

size_t Plant::part_count() const {
    const std::lock_guard guard(mutex_);
    return parts_.size();
}

void Plant::note_cell(const Path& path, std::function<std::string()> what_is_left) {
    const std::lock_guard guard(mutex_);
    cells_.emplace_back(&path, std::move(what_is_left));
}

std::vector<std::string> Plant::remarks() const {
    std::vector<std::string> lines;
    const std::lock_guard guard(mutex_);
    for (const auto& [path, what_is_left] : cells_)
        if (const std::string left = what_is_left(); !left.empty())
            lines.push_back(fmt::format("{}: {}, and are lost", path->text(), left));
    if (pressure.growths() > 0)
        lines.push_back(
            fmt::format("queues had to grow {} time(s): the network was full by its construction, "
                        "as where a part waits for its own output",
                        pressure.growths()));
    return lines;
}

std::string no_way(const Record& record, const std::vector<LabelSet>& taken) {
    std::string why = taken.empty() ? "no record is taken" : text_of(taken) + " is wanted";
    // One of them may be all there, and the record be kept by what goes nowhere but where it is named.
    const auto is_there = [&](const LabelSet& set) {
        return std::ranges::all_of(set.labels(), [&](const Label label) { return record.has(label); });
    };
    if (const auto set = std::ranges::find_if(taken, is_there); set != taken.end())
        for (const auto& [label, value] : record.tags())
            if (label.kind() == LabelKind::kBindingTag && !set->has(label))
                why +=
                    fmt::format(", without {}, as a binding tag goes only where it is named", label.text());
    return fmt::format("{} cannot go on here: {}", record.text(), why);
}

}  // namespace heddle::streams
