#include "tasks/runtime_state.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "base/settings.hpp"
#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/data_state.hpp"
#include "tasks/outer_affinity.hpp"
#include "tasks/recording.hpp"

namespace heddle::detail {
namespace {

/// Of one sequence, before who inserts runs some: what of them a core keeps in its cache.
constexpr uint64_t kFarAhead = 2'048;
constexpr uint64_t kLookEvery = 256;
/// Tasks that end on one lane before they are counted, at most: a shared counter is not for every task.
constexpr uint32_t kCountEvery = 256;

CpuSet cpus_for(const Machine& machine, const CpuSet& wanted) {
    const CpuSet usable = allowance(machine).usable;
    if (wanted.empty()) return usable;
    if (const CpuSet beyond = wanted - usable; !beyond.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    "this process may not use CPUs " + beyond.to_list() + "; it may use " + usable.to_list());
    return wanted;
}

size_t stack_bytes_for(size_t wanted) {
    const std::string text = setting("HEDDLE_STACK_BYTES");
    if (wanted != 0 || text.empty()) return wanted;
    size_t bytes = 0;
    const char* const end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, bytes); read.ec != std::errc() || read.ptr != end)
        throw Error(ErrorCode::kBadInput, "HEDDLE_STACK_BYTES is not a number of bytes: '" + text + "'");
    return bytes;
}

int workers_for(int wanted, const CpuSet& cpus) {
    if (wanted < 0)
        throw Error(ErrorCode::kInvalidArgument, "a runtime cannot have " + std::to_string(wanted) +
                                                     " workers: 0 stands for as many as CPUs");
    return wanted == 0 ? cpus.count() : std::min(wanted, cpus.count());
}

}  // namespace

/// The calling thread uses the engine; a switch waits for it, or it for a switch that has begun. Not for
/// threads inside a task: what they are in has to end before the engine goes.
class RuntimeState::InEngine {
  public:
    InEngine(RuntimeState& runtime, Lane& lane) {
        if (lane.in_engine.load(std::memory_order_relaxed) || runtime.is_in_task()) return;
        while (!enters(runtime, lane)) wait_for_switch(runtime, lane);
        lane_ = &lane;
    }
    ~InEngine() {
        if (lane_ != nullptr) lane_->in_engine.store(false, std::memory_order_release);
    }
    InEngine(const InEngine&) = delete;
    InEngine& operator=(const InEngine&) = delete;

  private:
    static bool enters(RuntimeState& runtime, Lane& lane) {
        lane.in_engine.store(true, std::memory_order_relaxed);
        light_fence();
        return !runtime.switching_.load(std::memory_order_acquire);
    }
    [[gnu::noinline]] static void wait_for_switch(RuntimeState& runtime, Lane& lane) {
        lane.in_engine.store(false, std::memory_order_release);
        std::unique_lock lock(runtime.switch_mutex_);
        runtime.switched_.notify_all();
        runtime.switched_.wait(lock, [&] { return !runtime.switching_.load(); });
    }

    Lane* lane_ = nullptr;
};

RuntimeState::RuntimeState(const RuntimeOptions& options, CpuSet among, bool callers)
    : wanted_cpus(among.empty() ? options.cpus : std::move(among)),
      cpus(cpus_for(machine, options.cpus)),
      workers(workers_for(options.workers, cpus)),
      stack_bytes(stack_bytes_for(options.stack_bytes)),
      callers_work(callers),
      reactor(machine.synthetic() ? CpuSet() : cpus),
      root(std::make_shared<Domain>(nullptr)),
      lanes(std::make_shared<LaneTable>(*this, [](RuntimeState& runtime, Lane& lane) {
          runtime.flush(lane);
          runtime.memory.empty(lane.records);
      })) {
    know_outer_affinity();
    if (dag_file != nullptr) (void)graph.watch(&dag_file->log());
    start_engine(find_engine(options.engine));
}

RuntimeState::~RuntimeState() {
    do {  // their tasks may make others, which nobody else has
        for (const auto& sequence : sequences()) wait_out(*sequence);
    } while (!all_done());
    drop_kept();
    stop_engine();
    lanes->close();
    if (log != nullptr) log->flush();  // the names of tasks may go away with what made this runtime
}

WorkCounts RuntimeState::work() const noexcept {
    WorkCounts work;
    for (uint32_t i = 0; i < lanes->size(); ++i) {
        const Lane& lane = (*lanes)[i];
        work.inserted +=
            lane.inserted.load(std::memory_order_relaxed) + lane.replayed.load(std::memory_order_relaxed);
        work.ended +=
            lane.ended.load(std::memory_order_relaxed) + lane.finished.load(std::memory_order_relaxed);
    }
    return work;
}

void RuntimeState::confine(const CpuSet& among) {
    wanted_cpus = among;
    provider->confine(among);
}

void RuntimeState::forget(const DataState& data) {
    const InEngine inside(*this, lane());
    engine->forget(data);
}

std::shared_ptr<Domain> RuntimeState::domain_here() {
    TaskFrame* parent = current_frame();
    if (parent == nullptr || parent->runtime != this) return root;
    if (parent->children == nullptr) {
        const Task& task = *parent->task;
        task.sequence->domain->leave_ended_parents();
        parent->children = std::make_shared<Domain>(task.sequence->shared_from_this(),
                                                    task.accesses > 0 || task.sequence->domain->below_data());
    }
    return parent->children;
}

void RuntimeState::commit(Lane& lane, Task& task) {
    const InEngine inside(*this, lane);
    count_one(lane.inserted);
    SequenceState& sequence = *task.sequence;
    if (looks_at_line_ && task.accesses > 0 &&
        graph.stand(lane.in_graph, task, *sequence.domain, sequence.stood)) {
        engine->line_grew();
        if (sequence.stood.load(std::memory_order_relaxed) % kLookEvery == 0)
            help_if_far_ahead(lane, sequence);
        return;
    }
    const uint64_t number = sequence.count_in(lane);
    try {
        if (own_graph_ && sequence.domain->is_root() && !graph.watched())
            insert_into_engine(lane, task);
        else if (enter_graph(lane, task))
            could_run(lane, task);
    } catch (...) {
        sequence.count_out(lane);
        may_be_done(&sequence);
        throw;
    }
    if (number % kLookEvery == 0) help_if_far_ahead(lane, sequence);
}

bool RuntimeState::enter_graph(Lane& lane, Task& task) {
    if (task.accesses > 0) return graph.add(lane.records, lane.in_graph, task, *task.sequence->domain);
    graph.add_alone(task);
    return true;
}

Task* RuntimeState::next_in_line(Lane& lane, uint32_t most) noexcept {
    return graph.next_in_line(lane.in_graph, most, [&] {
        uint64_t left = 0;
        // acquire: what tasks wrote that have left is there for those that follow.
        for (uint32_t i = 0; i < lanes->size(); ++i)
            left += (*lanes)[i].in_graph.left.load(std::memory_order_acquire);
        return left;
    });
}

/// Its graph takes commute() and redux() for inout(): one task after the other, which is an order, too.
void RuntimeState::insert_into_engine(Lane& lane, Task& task) {
    task.special &= static_cast<uint8_t>(~kCommutes);
    if ((task.special & kReduces) == 0) return engine->insert(lane, task);
    graph.reduce_alone(task);
    try {
        engine->insert(lane, task);
    } catch (...) {
        graph.end_reducing(task);
        throw;
    }
}

void RuntimeState::could_run(Lane& lane, Task& task) noexcept {
    Task* none = nullptr;
    if ((task.special & kAsksFirst) == 0 || graph.admit(lane.records, task, none)) make_ready(lane, task);
}

void RuntimeState::help_if_far_ahead(Lane& lane, SequenceState& sequence) {
    if (current_frame() != nullptr) return;
    const auto ahead = [&] {
        return sequence.inserted() - sequence.finished.load(std::memory_order_relaxed);
    };
    uint64_t left = ahead();
    if (left < kFarAhead) return;
    // Where nothing is at hand it is not for lack of hands, and who inserts goes on; also where all that runs
    // is of others, while what is of this sequence may wait for what is still to be inserted.
    while (left > kFarAhead / 2) {
        if (!engine->help(lane, left - kFarAhead / 2)) break;
        flush(lane);
        if (ahead() >= left) break;
        left = ahead();
    }
    flush(lane);
}

Task* RuntimeState::run_here(Lane& lane, Task& task) noexcept {
    Lane* same = &lane;
    return run(same, task, true);
}

Task* RuntimeState::run(Lane*& lane, Task& task, bool stays) noexcept {
    // Nobody shall wait for the end of this task who waits for those that ended before it.
    if (lane->finishing != nullptr && lane->finishing != task.sequence) flush(*lane);
    if ((task.special & kReduces) != 0) Graph::begin_reducing(task);
    TaskFrame frame{&task, this, stays};
    frame.below = exchange_frame(&frame);
    if (!failures.any() || !cancelled(task)) {
        try {
            if (task.awaits_futures) [[unlikely]]
                await_futures(task);
            if (kept.any()) [[unlikely]]
                kept.bring_home(task);
            if (log != nullptr && (task.special & kLooksOn) == 0) [[unlikely]]
                run_traced(frame);
            else if ((task.special & kPlaced) == 0)
                task.body(task.closure(), BodyAction::kRun);
            else
                run_in_place(frame);
            if (failures.any() && (task.special & kLooksOn) == 0) Failures::healed(task);
        } catch (...) {
            // Also where its function was not reached: who waits for its future has to know.
            if ((task.special & kToldOfCancel) != 0) task.body(task.closure(), BodyAction::kCancel);
            failures.failed(task, std::current_exception());
        }
    }
    if (!task.trivial || (task.special & (kReduces | kCommutes)) != 0) {
        frame.over = true;
        frame.place = nullptr;
        frame.traced = nullptr;
        // Its closure may have the last share of what it reduces into, or has its turn with.
        before_destruction(task);
        if (!task.trivial) task.body(task.closure(), BodyAction::kDestroy);
    }
    exchange_frame(frame.below);
    // It may have been paused, and then gone on in another thread, which has a lane already.
    lane = lane_if_any(*lanes);
    Task* turns = (task.special & kCommutes) == 0 ? nullptr : end_turns(task);
    SequenceState& sequence = *task.sequence;
    Task *next = nullptr, *continuation = nullptr;
    if ((task.special & kRecorded) == 0) {
        if (!task.in_order || !graph.end_in_order(lane->in_graph, task, continuation))
            next = Graph::finish(task, lane->in_graph);
        memory.free(lane->records, task);
    } else {
        next = RecordingState::finish(task);
    }
    count(*lane, sequence);
    const auto ready = [&](Task& one) {
        if (continuation == nullptr && one.priority == 0 && (one.special & kPlaced) == 0)
            continuation = &one;
        else
            make_ready(*lane, one);
    };
    while (next != nullptr) {
        Task& one = *std::exchange(next, next->next);
        if ((one.special & kAsksFirst) == 0 || graph.admit(lane->records, one, next)) ready(one);
    }
    while (turns != nullptr) ready(*std::exchange(turns, turns->next));
    return continuation;
}

/// Nothing of the task has run: where it cannot be paused, yet, others are.
void RuntimeState::await_futures(Task& task) {
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *task.access(i);
        if (access.mode != AccessMode::kIn || access.data->future == nullptr) continue;
        const FutureState& future = access.data->future->state;
        while (!future.settled()) {
            try {
                future.wait_in_follower();
            } catch (const Error& error) {
                if (error.code() != ErrorCode::kLimit) throw;
                let_others_run();
            } catch (const std::bad_alloc&) {
                let_others_run();
            }
        }
        future.check();
    }
}

void RuntimeState::run_in_place(TaskFrame& frame) {
    Task& task = *frame.task;
    const Placement& placement = *task.notes().placement;
    std::optional<TaskPlace> place;
    if (!machine.synthetic() && (placement.must || !engine->goes_near())) {
        place.emplace(placement);
        frame.place = &*place;
    }
    task.body(task.closure(), BodyAction::kRun);
}

void RuntimeState::run_traced(TaskFrame& frame) {
    Task& task = *frame.task;
    TracedTask traced(*log, factory->name, task.named ? task.notes().name : nullptr);
    frame.traced = &traced;
    if ((task.special & kPlaced) != 0) return run_in_place(frame);
    task.body(task.closure(), BodyAction::kRun);
}

/// It reads what was not written.
bool RuntimeState::cancelled(Task& task) noexcept {
    std::exception_ptr why;
    if (!failures.cancels(task, why)) return false;
    if ((task.special & kToldOfCancel) == 0) return true;
    try {
        std::rethrow_exception(why);
    } catch (...) {
        task.body(task.closure(), BodyAction::kCancel);
    }
    return true;
}

void RuntimeState::before_destruction(Task& task) noexcept {
    for (uint32_t i = 0; (task.special & kCommutes) != 0 && i < task.accesses; ++i)
        if (task.access(i)->mode == AccessMode::kCommute)
            task.access(i)->data->owners.fetch_add(1, std::memory_order_relaxed);
    if ((task.special & kReduces) == 0) return;
    try {
        graph.end_reducing(task);
    } catch (...) {
        failures.failed(task, std::current_exception());
    }
}

Task* RuntimeState::end_turns(Task& task) noexcept {
    Task* const ready = graph.end_turns(task);
    for (uint32_t i = 0; i < task.accesses; ++i)
        if (task.access(i)->mode == AccessMode::kCommute) DataState::drop(task.access(i)->data);
    return ready;
}

void RuntimeState::make_ready(Lane& lane, Task& task) noexcept {
    try {
        engine->ready(lane, task);
    } catch (...) {
        // No memory to keep it: it runs here and now.
        for (Task* now = &task; now != nullptr;) now = run_here(lane, *now);
        flush(lane);
    }
}

void RuntimeState::count(Lane& lane, SequenceState& sequence) noexcept {
    if (lane.finishing != &sequence || lane.finished.load(std::memory_order_relaxed) == kCountEvery) {
        flush(lane);
        lane.finishing = &sequence;
    }
    count_one(lane.finished);
}

void RuntimeState::flush(Lane& lane) noexcept {
    SequenceState* sequence = std::exchange(lane.finishing, nullptr);
    if (sequence == nullptr) return;
    const uint64_t count = lane.finished.load(std::memory_order_relaxed);
    lane.finished.store(0, std::memory_order_relaxed);
    lane.ended.store(lane.ended.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    // Read before the addition, after which the sequence may be gone. Who inserts more waits anew.
    const uint64_t inserted = sequence->inserted();
    const uint64_t before = sequence->finished.fetch_add(count, std::memory_order_seq_cst);
    if (before + count >= inserted) may_be_done(sequence);
}

void RuntimeState::may_be_done(const SequenceState* sequence) noexcept {
    if (waiter_count_.load(std::memory_order_seq_cst) > 0) wake_waiters(sequence);
    engine->notify();
}

void RuntimeState::wait_until(const std::function<bool()>& reached) {
    const TaskFrame* frame = current_frame();
    const auto wait = [&] {
        Lane& own = lane();
        const InEngine inside(*this, own);
        const TracedWait traced(log, factory->name);
        engine->wait_until(own, reached);
    };
    if (frame == nullptr) return sleep_in_kernel(wait);
    begin_wait(*frame);
    const TaskPlace::Away away(frame->place);
    // In a task of another runtime, whose engine may need the CPU meanwhile.
    if (frame->runtime != this) return frame->runtime->engine->sleep_in_task(wait);
    sleep_in_kernel(wait);
}

bool RuntimeState::is_in_task() const noexcept {
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        if (frame->runtime == this) return true;
    return false;
}

bool RuntimeState::idle() {
    flush(lane());
    return !failures.any() && all_done();
}

}  // namespace heddle::detail
