#include "streams/box_part.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "streams/box_call.hpp"
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

/// A box's calls that take less are not traced each: the thread's time goes into them.
constexpr int64_t kLeastTraced = 1000;  // ns

/// Of a count that one thread at a time writes.
void count_up(std::atomic<uint64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

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
    gauge_.bound = plant.options.queue_bound;
    gauge_.path = &path;
}

void BoxPart::take(Record&& record, Flow& flow) {
    if (box_.is_initialiser || input_.fit(record) < 0) {
        plant_.fail(std::move(record), path_,
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
        full = is_full();
        if (!overfull_ && queue_.size() - first_ > plant_.options.queue_bound) {
            overfull_ = true;
            plant_.note_overfull();
        }
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
    const auto still_full = [this] {
        const std::lock_guard guard(lock_);
        return is_full();
    };
    plant_.pressure.wait(gauge_, still_full, flow.held());
}

bool BoxPart::is_full() const {
    const size_t bound = gauge_.bound.load(std::memory_order_relaxed);
    return queue_.size() - first_ >= (most_calls_ == 1 ? bound - bound / 2 : bound);
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
        flow.keep(*this);
        tasks_ = 1;
        keeper_.store(&flow, std::memory_order_relaxed);
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

void BoxPart::start_task() noexcept {
    plant_.pressure.begin();
    try {
        plant_.schedule(task_name_, [this] { drain(); });
    } catch (...) {
        plant_.give_up(std::current_exception());
        end_task();
    }
}

void BoxPart::end_task() noexcept {
    {
        const std::lock_guard guard(lock_);
        coming_ = false;
        --tasks_;
    }
    plant_.pressure.end();
}

bool BoxPart::take_batch(std::vector<Record>& batch) {
    Taken taken;
    {
        const std::lock_guard guard(lock_);
        taken = take_some(batch);
    }
    if (taken.starts) start_task();
    if (taken.is_relieved) plant_.note_relieved();
    // Who waits before a short box goes on when nobody is in it, and then calls it himself.
    const bool is_measured = duration_ns_.load(std::memory_order_relaxed) != 0;
    if (taken.some ? taken.half_empty && (!is_short() || ++untold_ == kUntold) : is_measured) {
        if (is_short()) untold_ = 0;
        plant_.pressure.emptied(gauge_);
    }
    return taken.some;
}

BoxPart::Taken BoxPart::take_some(std::vector<Record>& batch) {
    coming_ = false;
    if (first_ == queue_.size()) {
        --tasks_;
        return {.some = false, .is_relieved = is_relieved(0)};
    }
    if (most_calls_ == 1) {
        std::swap(batch, queue_);
        queued_.store(false, std::memory_order_relaxed);
        return {.is_relieved = is_relieved(batch.size())};
    }
    batch.push_back(std::move(queue_[first_++]));
    if (first_ == queue_.size() || first_ == kMostGone) {
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(first_));
        first_ = 0;
        queued_.store(!queue_.empty(), std::memory_order_relaxed);
    }
    const size_t waiting = queue_.size() - first_;
    Taken taken{.half_empty = waiting <= gauge_.bound.load(std::memory_order_relaxed) / 2,
                .starts = !queue_.empty() && tasks_ < most_calls_,  // another one for what is left
                .is_relieved = is_relieved(waiting)};
    if (taken.starts) claim_task();
    return taken;
}

bool BoxPart::is_relieved(size_t waiting) {
    return waiting <= plant_.options.queue_bound / 2 && std::exchange(overfull_, false);
}

void BoxPart::drain() {
    try {
        empty_queue();
    } catch (...) {  // without memory
        plant_.give_up(std::current_exception());
        return end_task();
    }
    plant_.pressure.end();
}

void BoxPart::empty_queue() {
    std::vector<Record> batch;
    Flow flow;
    flow.take_deferred();
    flow.set_empties(emptied_by_one());
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
}

void BoxPart::start() {
    plant_.pressure.begin();
    const auto call_once = [this] {
        try {
            Flow flow;
            Record none;
            call_and_settle(none, flow);
        } catch (...) {  // without memory
            plant_.give_up(std::current_exception());
        }
        plant_.pressure.end();
    };
    try {
        plant_.schedule(task_name_, call_once);
    } catch (...) {
        plant_.pressure.end();
        throw;
    }
}

void BoxPart::call_and_settle(Record& record, Flow& flow) {
    flow.budget = Flow::kBudget;
    call(record, flow);
    try {
        flow.run_passed();
    } catch (...) {
        plant_.fail({}, path_);  // what was under way
    }
    flow.finish(record);
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
        call.make_latest();  // it inherits from the record
        call.put_back();
        plant_.fail(std::move(record), path_);
        call.pass_made();
    }
}

}  // namespace heddle::streams
