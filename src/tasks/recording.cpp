#include "tasks/recording.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "heddle/error.hpp"
#include "heddle/recording.hpp"
#include "tasks/data_state.hpp"

namespace heddle {

Recording::Recording(Runtime& runtime) : state_(std::make_shared<detail::RecordingState>(runtime)) {}

Recording::~Recording() {
    if (!state_->runs_caller()) state_->wait_for_replays();
}

void Recording::replay(Sequence& sequence) {
    state_->replay(sequence.state());
}

size_t Recording::size() const {
    return state_->size();
}

detail::SequenceState& Recording::tasks() {
    return *state_->tasks;
}

namespace detail {
namespace {

bool alone(AccessMode mode) {
    return mode == AccessMode::kOut || mode == AccessMode::kInOut;
}

}  // namespace

RecordingState::RecordingState(Runtime& its_runtime)
    : runtime(its_runtime.state()),
      tasks(std::make_shared<SequenceState>(
          runtime, std::make_shared<Domain>(std::make_shared<SequenceState>(runtime, runtime.root), true))),
      gates_(std::make_shared<SequenceState>(runtime, runtime.root)),
      outside_(tasks->domain->parent()),
      self_(its_runtime, {nullptr, 1, 1, 1, 1}) {}

void RecordingState::wait_for_replays() noexcept {
    runtime.wait_out(*gates_);
    while (!waited()) detail::RuntimeState::let_others_run();
}

RecordingState::~RecordingState() {
    for (const Recorded& one : recorded_) {
        if (one.destroys) one.task->body(one.task->closure(), BodyAction::kDestroy);
        runtime.memory.free(runtime.lane().records, *one.task);
    }
    for (DataState* data : data_) DataState::drop(data);
}

/// False: there is no memory for a task that follows the replays, yet.
bool RecordingState::waited() const {
    try {
        self_.wait();
    } catch (const Error& error) {
        return error.code() != ErrorCode::kLimit;
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

RecordingState::Use& RecordingState::use_of(DataState& data) {
    Use& use = uses_[&data];
    if (!use.seen) {
        data_.push_back(&data);
        data.owners.fetch_add(1, std::memory_order_relaxed);
        use.seen = true;
    }
    return use;
}

/// All that may fail, one access after the other; what is done of it does no harm by itself.
void RecordingState::prepare(Access& access, uint32_t accesses) {
    Use& use = use_of(*access.data);
    if (access.mode > AccessMode::kInOut) runtime.graph.share(*tasks->domain, *access.data);
    if (alone(access.mode)) return;
    const bool reduces = access.mode == AccessMode::kRedux;
    const bool other = access.mode != use.kind ||
                       (reduces && (use.group == kNone || groups_[use.group].reduction != access.reduction));
    if (other && !use.beside.empty()) join(use);
    if (other) use.group = kNone;
    use.kind = access.mode;
    // A task may name it several times.
    if (const size_t most = use.beside.size() + accesses; most > use.beside.capacity())
        use.beside.reserve(std::max(most, 2 * use.beside.capacity()));
    if (reduces && use.group == kNone) {
        groups_.push_back({access.data, access.reduction, 0});
        use.group = static_cast<uint32_t>(groups_.size()) - 1;
    }
}

/// A task that does nothing, behind all that are beside each other.
void RecordingState::join(Use& use) {
    std::vector<uint32_t> before = use.beside;
    TaskMemory::Cache& cache = runtime.lane().records;
    Task& task = runtime.memory.allocate(cache, sizeof(Task) + Task::closure_at(0));
    task.body = [](void*, BodyAction) {};
    task.accesses = 0;
    task.priority = 0;
    task.named = task.keeps_data = false;
    task.special = kLooksOn;  // not traced
    task.sequence = tasks.get();
    try {
        append(task, before);
    } catch (...) {
        runtime.memory.free(cache, task);
        throw;
    }
    use.beside.clear();
    use.writer = static_cast<uint32_t>(recorded_.size()) - 1;
}

void RecordingState::append(Task& task, std::vector<uint32_t>& before) {
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    const auto number = static_cast<uint32_t>(recorded_.size());
    const size_t edges = edges_.size();
    try {
        for (const uint32_t one : before) edges_.push_back({one, number});
        recorded_.push_back({&task, (task.special & kDestroys) != 0});
    } catch (...) {
        edges_.resize(edges);
        throw;
    }
    task.special = static_cast<uint16_t>((task.special & ~kDestroys) | kRecorded);
}

void RecordingState::add(Task& task) {
    if (sealed_)
        throw Error(ErrorCode::kInvalidArgument,
                    "a recording that was replayed takes no more tasks: make another one");
    std::vector<uint32_t> before;
    for (uint32_t i = 0; i < task.accesses; ++i) prepare(*task.access(i), task.accesses);
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Use& use = uses_.find(task.access(i)->data)->second;
        if (alone(task.access(i)->mode) && !use.beside.empty())
            before.insert(before.end(), use.beside.begin(), use.beside.end());
        else if (use.writer != kNone)
            before.push_back(use.writer);
    }
    append(task, before);
    const auto number = static_cast<uint32_t>(recorded_.size()) - 1;
    for (uint32_t i = 0; i < task.accesses; ++i) enter(*task.access(i), number);
    ++size_;
}

void RecordingState::enter(Access& access, uint32_t number) noexcept {
    Use& use = uses_.find(access.data)->second;
    const bool first = use.writer == kNone && use.beside.empty();
    if (access.mode == AccessMode::kOut && first)
        use.gate = AccessMode::kOut;
    else if (access.mode != AccessMode::kIn && use.gate == AccessMode::kIn)
        use.gate = AccessMode::kInOut;
    if (!alone(access.mode)) {
        use.beside.push_back(number);
        if (access.mode != AccessMode::kRedux) return;
        access.group = use.group + 1;
        ++groups_[use.group].members;
        return;
    }
    use.beside.clear();
    use.writer = number;
    use.kind = AccessMode::kIn;
    use.group = kNone;
}

void RecordingState::seal() {
    const std::lock_guard guard(sealing_);
    if (sealed_) return;
    std::vector<uint32_t> before(recorded_.size()), place(recorded_.size());
    for (const Edge& edge : edges_) {
        ++before[edge.to];
        ++place[edge.from];
    }
    std::vector<uintptr_t> links(2 * recorded_.size() + edges_.size());
    std::vector<Task*> first;
    uint32_t end = 0;
    for (size_t i = 0; i < recorded_.size(); ++i) {
        const uint32_t after = std::exchange(place[i], end + 1);
        links[end] = before[i];
        if (before[i] == 0) first.push_back(recorded_[i].task);
        end += after + 2;
    }
    for (const Edge& edge : edges_)
        links[place[edge.from]++] = reinterpret_cast<uintptr_t>(recorded_[edge.to].task);
    links_ = std::move(links);
    first_ = std::move(first);
    uint32_t begin = 0;
    for (size_t i = 0; i < recorded_.size(); ++i) {
        Task& task = *recorded_[i].task;
        task.id = reinterpret_cast<uintptr_t>(&links_[begin]);
        task.waits_for.store(static_cast<int32_t>(before[i]), std::memory_order_relaxed);
        begin = place[i] + 1;
    }
    edges_ = {};
    sealed_ = true;
}

bool RecordingState::runs_caller() const noexcept {
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        if (is_within(*frame->task, *tasks)) return true;
    return false;
}

void RecordingState::replay(SequenceState& into) {
    if (&into.runtime != &runtime)
        throw Error(
            ErrorCode::kInvalidArgument,
            "a recording was to be replayed into a sequence of another runtime: it belongs to the runtime "
            "that it was made with");
    if (runs_caller())
        throw Error(ErrorCode::kInvalidArgument,
                    "a task cannot replay the recording that it is of: replays follow each other, so this "
                    "one would wait for its own end");
    for (const DataState* data : data_)
        if (data->released)
            throw Error(ErrorCode::kInvalidArgument,
                        "a recording cannot be replayed: data that its tasks name were released meanwhile");
    try {
        seal();
        std::vector<const DataView*> data(data_.begin(), data_.end());
        std::vector<AccessMode> modes;
        for (DataState* one : data_) modes.push_back(uses_.find(one)->second.gate);
        data.push_back(self_.view());
        modes.push_back(AccessMode::kOut);
        Insertion insertion(into, {&RecordingState::gate, sizeof(std::shared_ptr<RecordingState>),
                                   static_cast<uint32_t>(data.size()), false});
        new (insertion.closure()) std::shared_ptr(shared_from_this());
        gates_->others.fetch_add(1, std::memory_order_relaxed);
        static const TaskOptions named{.priority = 0, .name = "replay", .cpus = {}, .near = {}};
        insertion.commit(data.data(), modes.data(), &named);
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit, "there is no memory for the replay of a recording");
    }
}

void RecordingState::gate(void* closure, BodyAction action) {
    auto& its = *static_cast<std::shared_ptr<RecordingState>*>(closure);
    if (action == BodyAction::kRun) return its->start();
    if (action != BodyAction::kDestroy) return;
    // The share first: who waits for the last replay destroys the recording itself.
    RuntimeState& runtime = its->runtime;
    const std::shared_ptr gates = its->gates_;
    std::destroy_at(&its);
    runtime.one_ended(gates);
}

/// While one lives, no other replay begins.
class RecordingState::OneReplay {
  public:
    explicit OneReplay(std::atomic<bool>& replaying) : replaying_(replaying) {
        // acquire, with the release below: sees the records as the last replay has left them.
        if (replaying_.exchange(true, std::memory_order_acquire))
            throw Error(ErrorCode::kInvalidArgument,
                        "a recording was to be replayed while it is being replayed: two tasks replay it, and "
                        "tasks that other tasks insert are not ordered across those; let one wait for the "
                        "other, or record twice");
    }
    ~OneReplay() { replaying_.store(false, std::memory_order_release); }
    OneReplay(const OneReplay&) = delete;
    OneReplay& operator=(const OneReplay&) = delete;

  private:
    std::atomic<bool>& replaying_;
};

void RecordingState::start() {
    // Who is refused writes nothing: what the gate names is the running replay's.
    current_frame()->task->special |= kLooksOn;
    const OneReplay one(replaying_);
    current_frame()->task->special &= static_cast<uint16_t>(~kLooksOn);
    for (const Group& group : groups_) runtime.graph.forget_groups(*tasks->domain, *group.data);
    for (size_t i = 0; i < groups_.size(); ++i)
        if (groups_[i].members > 0)
            runtime.graph.start_group(*tasks->domain, *groups_[i].data, groups_[i].reduction,
                                      static_cast<uint32_t>(i) + 1, groups_[i].members);
    tasks->domain->set_parent(current_frame()->task->sequence->shared_from_this());
    tasks->others.fetch_add(recorded_.size(), std::memory_order_relaxed);
    Lane& lane = runtime.lane();
    lane.replayed.store(lane.replayed.load(std::memory_order_relaxed) + recorded_.size(),
                        std::memory_order_relaxed);
    if (runtime.failures.any())
        for (const Recorded& replayed : recorded_) replayed.task->era = runtime.failures.era();
    for (Task* task : first_) runtime.could_run(lane, *task);
    // The tasks run, and this one cannot end before.
    runtime.wait_out(*tasks);
    tasks->domain->set_parent(outside_);
    if (std::exception_ptr error = runtime.failures.take(*tasks)) std::rethrow_exception(std::move(error));
}

}  // namespace detail
}  // namespace heddle
