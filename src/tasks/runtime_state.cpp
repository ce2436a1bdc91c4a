#include "tasks/runtime_state.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/settings.hpp"
#include "heddle/error.hpp"
#include "tasks/crew.hpp"
#include "tasks/in_engine.hpp"
#include "tasks/outer_affinity.hpp"
#include "tasks/waiter_place.hpp"

namespace heddle::detail {
namespace {

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
    if (dag_file != nullptr) graph.watch(dag_file->log());
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

bool RuntimeState::stay_on(const CpuSet& its_cpus, const std::function<void()>& stay) {
    if (Crew::here() != nullptr) return false;
    const WaiterPlace place(its_cpus, !machine.synthetic());
    stay();
    return true;
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

Task* RuntimeState::next_in_line(Lane& lane, uint32_t most) noexcept {
    return graph.next_in_line(lane.in_graph, most, [&] {
        uint64_t left = 0;
        // acquire: what tasks wrote that have left is there for those that follow.
        for (uint32_t i = 0; i < lanes->size(); ++i)
            left += (*lanes)[i].in_graph.left.load(std::memory_order_acquire);
        return left;
    });
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
    sleep_in_kernel(wait);
}

bool RuntimeState::idle() {
    flush(lane());
    return !failures.any() && all_done();
}

}  // namespace heddle::detail
