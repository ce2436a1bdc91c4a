#include "streams/box_part.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "tasks/frame.hpp"
#include "tasks/task_log.hpp"

namespace heddle::streams {
namespace {

/// The first calls are all measured, then each sixteenth.
constexpr uint32_t kFirst = 32, kEach = 16;
/// So often a short box's queue may have been emptied before those who wait for it hear of it.
constexpr uint32_t kUntold = 8;
/// Records that were taken out of a queue of several tasks stay so many, as empty ones, in its front.
constexpr size_t kMostGone = 64;

/// Of what a short box sends in one call: with more it goes on before the call ends.
constexpr size_t kMostSent = 16;

/// A box's calls that take less are not traced each: the thread's time goes into them.
constexpr int64_t kLeastTraced = 1000;  // ns

/// Of a count that one thread at a time writes.
void count_up(std::atomic<uint64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

uint64_t now_ns() {
    return static_cast<uint64_t>(SteadyClock().now().time_since_epoch().count());
}

}  // namespace

class BoxPart::Call final : public BoxCall {
  public:
    /// Fields that the box uses up are its own during the call, so that it may have what no other record has.
    Call(BoxPart& part, Record& record, Flow& flow)
        : part_(part),
          record_(record),
          flow_(flow),
          arguments_(flow.values()),
          sent_(flow.sent()),
          latest_values_(flow.latest()) {
        arguments_.clear();
        sent_.clear();
        for (const Entry& entry : part.box_.input) {
            if (entry.label.kind() != LabelKind::kField)
                arguments_.emplace_back(record.tag(entry.label));
            else if (entry.passes)
                arguments_.emplace_back(record.field(entry.label));
            else
                arguments_.emplace_back(record.take_field(entry.label));
        }
    }
    /// What the box has used up is gone with its call, not with the next one of the flow.
    ~Call() override { arguments_.clear(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    [[nodiscard]] const BoxDefinition& box() const override { return part_.box_; }
    [[nodiscard]] std::span<BoxValue> arguments() override { return arguments_; }

    void emit_moved(size_t variant, std::span<BoxValue> values) override {
        if (part_.plant_.drops(record_)) return;
        const Variant& declared = check(variant, values);
        // A short call is over soon, and then the flow goes on with it, without another call on this stack.
        if (sent_.size() < kMostSent && part_.is_short()) {
            make_latest();
            latest_ = &declared;
            latest_values_.assign(std::move_iterator(values.begin()), std::move_iterator(values.end()));
            return;
        }
        // With so many it is not short, whatever others take for them.
        if (++at_once_ == kMostSent) measured_ = false;
        const uint64_t begin_ns = measured_ ? now_ns() : 0;
        make_latest();
        sent_.push_back(made(declared, values));
        std::vector<Record> sent;
        sent.swap(sent_);
        flow_.let_go(&part_);
        for (Record& record : sent) flow_.inner().run(part_.exit_, std::move(record));
        flow_.inner().let_go();
        if (measured_) away_ns_ += now_ns() - begin_ns;
    }

    void emit_last(size_t variant, std::span<BoxValue> values) override {
        if (part_.plant_.drops(record_)) return;
        const Variant& declared = check(variant, values);
        pass_made();
        become(declared, values);
    }

    /// When the box has returned.
    void pass_sent() {
        const Variant* const latest = std::exchange(latest_, nullptr);
        pass_made();
        if (latest != nullptr) become(*latest, latest_values_);
    }
    /// When it has thrown, and the record is needed as it came.
    void pass_made() {
        make_latest();
        for (Record& record : sent_) flow_.pass(part_.exit_, std::move(record));
        sent_.clear();
    }

    /// Nanoseconds that the function takes, without what others take for what it sends.
    [[nodiscard]] uint64_t measure(const BoxFunction& function) {
        measured_ = true;
        const uint64_t begin_ns = now_ns();
        function(*this);
        return now_ns() - begin_ns - away_ns_;
    }

    /// The record as it came, but for what the box has taken out of it.
    void put_back() {
        for (size_t i = 0; i < arguments_.size(); ++i)
            if (Field* const field = std::get_if<Field>(&arguments_[i]); field != nullptr && *field)
                record_.set(part_.box_.input[i].label, std::move(*field));
    }

  private:
    /// Moves the values out.
    [[nodiscard]] Record made(const Variant& declared, std::span<BoxValue> values) const {
        Record record;
        for (size_t i = 0; i < values.size(); ++i) {
            if (Field* const field = std::get_if<Field>(&values[i]))
                record.set(declared[i].label, std::move(*field));
            else
                record.set(declared[i].label, std::get<int>(values[i]));
        }
        inherit_unused(record, record_, part_.used_);
        return record;
    }
    void make_latest() {
        if (const Variant* const latest = std::exchange(latest_, nullptr))
            sent_.push_back(made(*latest, latest_values_));
    }
    /// The record itself, which the box is done with, goes on as this one.
    void become(const Variant& declared, std::span<BoxValue> values) {
        for (const Label tag : part_.used_tags_) record_.remove(tag);
        record_.remove_binding_tags();
        for (size_t i = 0; i < values.size(); ++i) {
            if (Field* const field = std::get_if<Field>(&values[i]))
                record_.set(declared[i].label, std::move(*field));
            else
                record_.set(declared[i].label, std::get<int>(values[i]));
        }
        flow_.pass(part_.exit_, std::move(record_));
    }
    const Variant& check(size_t variant, std::span<const BoxValue> values) const {
        const BoxDefinition& box = part_.box_;
        if (variant == 0 || variant > box.outputs.size())
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the box \"{}\" sends variant {}: it has declared {}", box.name, variant,
                                    box.outputs.size()));
        const Variant& declared = box.outputs[variant - 1];
        if (values.size() != declared.size())
            throw Error(ErrorCode::kBadInput,
                        fmt::format("the box \"{}\" sends {} values as variant {}, which has {}", box.name,
                                    values.size(), variant, declared.size()));
        for (size_t i = 0; i < values.size(); ++i)
            if ((declared[i].label.kind() == LabelKind::kField) != std::holds_alternative<Field>(values[i]))
                throw Error(ErrorCode::kBadInput,
                            fmt::format("{} is sent as a {}", declared[i].label.text(),
                                        std::holds_alternative<Field>(values[i]) ? "field" : "tag"));
        return declared;
    }

    BoxPart& part_;
    Record& record_;
    Flow& flow_;
    std::vector<BoxValue>& arguments_;
    std::vector<Record>& sent_;        ///< held back until the call is over
    const Variant* latest_ = nullptr;  ///< what it sent after that, or null
    std::vector<BoxValue>& latest_values_;
    size_t at_once_ = 0;  ///< records that went on before the call was over
    bool measured_ = false;
    uint64_t away_ns_ = 0;
};

BoxPart::BoxPart(Plant& plant, const BoxDefinition& box, const BoxFunction& function, int most_calls,
                 Inlet& exit, const Path& path, const char* task_name)
    : plant_(plant),
      box_(box),
      function_(function),
      most_calls_(most_calls),
      exit_(exit),
      path_(path),
      task_name_(task_name),
      input_(box.input) {
    LabelSet passed;
    for (const Entry& entry : box.input)
        if (entry.passes) passed.add(entry.label);
    used_ = input_.without(passed);
    for (const Label label : used_.labels())
        if (label.kind() != LabelKind::kField) used_tags_.push_back(label);
    gauge_.bound = plant.options.queue_bound;
    gauge_.path = &path;
}

void BoxPart::take(Record&& record, Flow& flow) {
    if (box_.is_initialiser || input_.fit(record) < 0) {
        plant_.fail(record, path_,
                    no_way(record, box_.is_initialiser ? std::vector<LabelSet>{} : std::vector{input_}));
        return;
    }
    if (keep_for(flow)) {
        count_up(called_at_once_);
        call(record, flow);
        return;
    }
    bool full = false, is_kept = false, starts = false;
    {
        const std::lock_guard guard(lock_);
        queue_.push_back(std::move(record));
        count_up(queued_count_);
        queued_.store(true, std::memory_order_relaxed);
        const size_t count = queue_.size() - first_;
        full = count >= gauge_.bound.load(std::memory_order_relaxed);
        // One more at a time, as for the workers of a pool: where the last one has found something to do.
        starts = tasks_ < most_calls_ && !coming_;
        if (starts) claim_task();
        const Flow* const keeper = keeper_.load(std::memory_order_relaxed);
        is_kept = keeper != nullptr && keeper->stays();
    }
    if (starts) start_task();
    if (is_kept) (void)plant_.seat.ask(PushSeat::For::kBox);
    if (!full || plant_.stopped()) return;
    flow.let_go();
    flow.count();
    plant_.pressure.wait(gauge_, [this] {
        const std::lock_guard guard(lock_);
        return queue_.size() - first_ >= gauge_.bound.load(std::memory_order_relaxed);
    });
}

bool BoxPart::is_short() const {
    const uint32_t price = duration_ns_.load(std::memory_order_relaxed);
    return price != 0 && price <= Flow::kBudget;
}

bool BoxPart::keep_for(Flow& flow) {
    const uint32_t price = duration_ns_.load(std::memory_order_relaxed);
    const bool affords = price != 0 && price < flow.budget;
    if (keeper_.load(std::memory_order_relaxed) == &flow) {
        // What others have brought comes first: it may be of an earlier turn.
        if (!affords || queued_.load(std::memory_order_relaxed)) {
            flow.let_go();
            return false;
        }
    } else {
        if (!affords || most_calls_ != 1) return false;
        const std::lock_guard guard(lock_);
        if (tasks_ != 0 || !queue_.empty()) return false;
        tasks_ = 1;
        keeper_.store(&flow, std::memory_order_relaxed);
        flow.keep(*this);
    }
    flow.budget -= price;
    return true;
}

void BoxPart::let_go() {
    {
        const std::lock_guard guard(lock_);
        keeper_.store(nullptr, std::memory_order_relaxed);
        if (queue_.empty()) {
            tasks_ = 0;
            return;
        }
    }
    start_task();
}

void BoxPart::claim_task() {
    ++tasks_;
    coming_ = true;
}

void BoxPart::start_task() {
    plant_.pressure.begin();
    plant_.schedule(task_name_, [this] { drain(); });
}

bool BoxPart::take_batch(std::vector<Record>& batch) {
    bool half_empty = true, starts = false;
    const bool some = take_batch(batch, half_empty, starts);
    if (starts) start_task();
    // Who waits before a short box goes on when nobody is in it, and then calls it himself.
    const bool is_measured = duration_ns_.load(std::memory_order_relaxed) != 0;
    if (some ? half_empty && (!is_short() || ++untold_ == kUntold) : is_measured) {
        if (is_short()) untold_ = 0;
        plant_.pressure.emptied(gauge_);
    }
    return some;
}

bool BoxPart::take_batch(std::vector<Record>& batch, bool& half_empty, bool& starts) {
    const std::lock_guard guard(lock_);
    coming_ = false;
    if (first_ == queue_.size()) {
        --tasks_;
        return false;
    }
    if (most_calls_ == 1) {
        std::swap(batch, queue_);
        queued_.store(false, std::memory_order_relaxed);
        return true;
    }
    batch.push_back(std::move(queue_[first_++]));
    if (first_ == queue_.size() || first_ == kMostGone) {
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(first_));
        first_ = 0;
        queued_.store(!queue_.empty(), std::memory_order_relaxed);
    }
    half_empty = queue_.size() - first_ <= gauge_.bound.load(std::memory_order_relaxed) / 2;
    // Another one for what is left.
    starts = !queue_.empty() && tasks_ < most_calls_;
    if (starts) claim_task();
    return true;
}

void BoxPart::drain() {
    std::vector<Record> batch;
    Flow flow;
    while (take_batch(batch)) {
        for (Record& record : batch) {
            Record one = std::move(record);
            call_and_settle(one, flow);
            most_calls_ == 1 ? count_up(called_) : (void)called_.fetch_add(1, std::memory_order_relaxed);
            // What it keeps is not to wait for long calls.
            if (duration_ns_.load(std::memory_order_relaxed) > Flow::kBudget) flow.let_go();
        }
        batch.clear();
        flow.let_go();
    }
    plant_.pressure.end();
}

void BoxPart::start() {
    plant_.pressure.begin();
    plant_.schedule(task_name_, [this] {
        Flow flow;
        Record none;
        call_and_settle(none, flow);
        flow.let_go();
        plant_.pressure.end();
    });
}

void BoxPart::call_and_settle(Record& record, Flow& flow) {
    flow.budget = Flow::kBudget;
    call(record, flow);
    try {
        flow.run_passed();
    } catch (...) {
        plant_.fail({}, path_);  // what was under way
    }
}

void BoxPart::note_duration(uint64_t taken_ns) {
    const uint64_t sample = std::max<uint64_t>(taken_ns, 1);
    const uint64_t average = duration_ns_.load(std::memory_order_relaxed);
    // A call that was interrupted says little: none counts for more than eight others.
    const uint64_t counted = average == 0 ? sample : std::min(sample, 8 * average);
    const uint64_t next = average == 0 ? sample : (3 * average + counted + 3) / 4;
    duration_ns_.store(static_cast<uint32_t>(std::min<uint64_t>(next, UINT32_MAX)),
                       std::memory_order_relaxed);
}

void BoxPart::call_function(Call& call) {
    if (most_calls_ != 1 || (++count_ > kFirst && count_ % kEach != 0)) {
        function_(call);
        return;
    }
    note_duration(call.measure(function_));
}

void BoxPart::call_traced(Call& call) {
    // A task that was paused meanwhile may go on in another thread: its own pieces tell of that.
    const auto piece = [] {
        const TaskFrame* const frame = current_frame();
        return std::pair(frame != nullptr,
                         frame == nullptr || frame->traced == nullptr ? 0 : frame->traced->began_ns());
    };
    const auto [in_task, began] = piece();
    const auto begin_ns = static_cast<int64_t>(now_ns());
    call_function(call);
    const auto end_ns = static_cast<int64_t>(now_ns());
    if (end_ns - begin_ns < kLeastTraced || piece() != std::pair(in_task, began)) return;
    plant_.log->note(in_task ? "native" : "pushing",
                     {box_.name.c_str(), begin_ns, end_ns, 0, ::sched_getcpu(), trace::SpanKind::kWork});
}

WorkCounts BoxPart::work() const {
    const uint64_t at_once = called_at_once_.load(std::memory_order_relaxed);
    // First the calls: no more can have been called for than have come.
    const uint64_t called = called_.load(std::memory_order_relaxed);
    return {at_once + queued_count_.load(std::memory_order_relaxed), at_once + called};
}

void BoxPart::call(Record& record, Flow& flow) {
    if (plant_.drops(record)) return;
    Call call(*this, record, flow);
    try {
        plant_.log == nullptr ? call_function(call) : call_traced(call);
        call.pass_sent();
    } catch (...) {
        call.put_back();
        plant_.fail(record, path_);
        call.pass_made();
    }
}

}  // namespace heddle::streams
