#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "compat/al4san.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::al4san {
namespace {

AL4SAN_sched_t scheduler_of(const std::string& engine) {
    if (engine == "quark") return AL4SAN_RUNTIME_SCHED_QUARK;
    if (engine == "starpu") return AL4SAN_RUNTIME_SCHED_STARPU;
    if (engine == "parsec") return AL4SAN_RUNTIME_SCHED_PARSEC;
    if (engine == "openmp") return AL4SAN_RUNTIME_SCHED_OPENMP;
    if (engine == "native") return AL4SAN_RUNTIME_SCHED_NATIVE;
    return engine == "tbb" ? AL4SAN_RUNTIME_SCHED_TBB : AL4SAN_RUNTIME_SCHED_OTHER;
}

int code_of(heddle_task_ret_t code) {
    switch (code) {
        case HEDDLE_TASK_SUCCESS:
            return AL4SAN_SUCCESS;
        case HEDDLE_TASK_INVALID:
            return AL4SAN_ERR_ILLEGAL_VALUE;
        case HEDDLE_TASK_UNAVAILABLE:
            return AL4SAN_ERR_NOT_SUPPORTED;
        case HEDDLE_TASK_LIMIT:
            return AL4SAN_ERR_OUT_OF_RESOURCES;
        case HEDDLE_TASK_TIMEOUT:
        case HEDDLE_TASK_SYSTEM:
        case HEDDLE_TASK_FAILED:
            break;
    }
    return AL4SAN_ERR_UNEXPECTED;
}

}  // namespace

void refuse(int code, const std::string& message) {
    throw Refusal(code, message);
}

int note_code() noexcept {
    const int code = code_of(c::note_error());
    try {
        throw;
    } catch (const Refusal& refusal) {
        return refusal.al4san_code();
    } catch (...) {
        return code;
    }
}

int status_of(const AL4SAN_sequence_t& sequence) noexcept {
    return __atomic_load_n(&sequence.status, __ATOMIC_ACQUIRE);
}

void set_status(AL4SAN_sequence_t& sequence, int code) noexcept {
    int expected = AL4SAN_SUCCESS;
    __atomic_compare_exchange_n(&sequence.status, &expected, code, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void fail(SequenceObject& sequence, int code, const char* failure) noexcept {
    try {
        const std::lock_guard guard(sequence.mutex);
        if (status_of(sequence) == AL4SAN_SUCCESS && sequence.failure.empty()) sequence.failure = failure;
    } catch (const std::bad_alloc&) {
        // Its status has to do.
    }
    set_status(sequence, code);
}

Context::Context(const char* runtime, int workers) : AL4SAN_context_t{} {
    if (runtime == nullptr) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "the runtime has no name");
    start(runtime, workers);
    nthreads_per_worker = 1;
    mpi_comm_size = pcols = prows = 1;
    group_size = 1;
    warnings_enabled = autotuning_enabled = AL4SAN_TRUE;
    householder = Al4sanFlatHouseholder;
    translation = Al4sanInPlace;
    nb = 128;
    ib = 32;
    schedopt = this;
}

Context::~Context() {
    stop();
    for (SequenceObject* sequence : sequences_) sequence->tasks.reset();
}

std::unique_ptr<Context>& Context::of_process() noexcept {
    // Never destroyed: at exit, tasks may still run in threads of engines.
    static auto* context = new std::unique_ptr<Context>;
    return *context;
}

Context& Context::here() {
    if (of_process() == nullptr)
        refuse(AL4SAN_ERR_NOT_INITIALIZED, "there is no context: call AL4SAN_Init() before");
    return *of_process();
}

void Context::start(const char* name, int workers) {
    auto runtime = std::make_unique<Runtime>(RuntimeOptions{name, {}, std::max(workers, 0)});
    {
        // Here and not by the first that inserts, which may be a task: all sequences order their tasks
        // together.
        const std::lock_guard guard(mutex_);
        std::vector<std::unique_ptr<Sequence>> made;
        for (size_t i = 0; i < sequences_.size(); ++i) made.push_back(std::make_unique<Sequence>(*runtime));
        for (SequenceObject* sequence : sequences_) {
            sequence->tasks = std::move(made.back());
            made.pop_back();
        }
    }
    runtime_ = std::move(runtime);
    scheduler = scheduler_of(runtime_->engine());
    nworkers = world_size = runtime_->state().workers;
}

void Context::stop() {
    if (runtime_ == nullptr) return;
    if (paused_) resume();
    // Tasks may insert into a sequence that the wait has passed.
    do {
        runtime_->wait();
        note_failures();
    } while (!runtime_->state().idle());
    decltype(data_) data;
    {
        const std::lock_guard guard(mutex_);
        for (SequenceObject* sequence : sequences_) sequence->tasks.reset();
        data_.swap(data);
    }
    data.clear();
    runtime_.reset();
}

/// What tasks threw becomes the status of their sequences, of those that are done.
void Context::note_failures() {
    const std::lock_guard guard(mutex_);
    for (SequenceObject* sequence : sequences_)
        if (sequence->tasks != nullptr && sequence->tasks->state().done() &&
            answer([&] { sequence->tasks->wait(); }) != AL4SAN_SUCCESS)
            fail(*sequence, AL4SAN_ERR_UNEXPECTED, heddle_task_error_message());
}

void Context::switch_to(const char* name, int workers) {
    if (name == nullptr) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "the runtime to switch to has no name");
    if (paused_) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "tasks are paused: resume them before the switch");
    const int wanted = workers <= 0 ? runtime_->cpus().count() : std::min(workers, runtime_->cpus().count());
    if (wanted == nworkers) {
        runtime_->switch_engine(name);
        scheduler = scheduler_of(runtime_->engine());
        return;
    }
    const std::string old = runtime_->engine();
    const int old_workers = nworkers;
    stop();
    try {
        start(name, wanted);
    } catch (...) {
        start(old.c_str(), old_workers);
        throw;
    }
}

void Context::pause() {
    {
        const std::lock_guard guard(mutex_);
        paused_ = true;
    }
    try {
        runtime_->wait();
        // A task that had read that nothing is paused may have inserted into a sequence that the wait had
        // passed.
        runtime_->wait();
    } catch (...) {
        resume();
        throw;
    }
}

void Context::resume() {
    std::vector<Call> held;
    {
        const std::lock_guard guard(mutex_);
        paused_ = false;
        held.swap(held_);
    }
    for (const Call& call : held)
        if (const int code = answer([&] { call.insert(); }); code != AL4SAN_SUCCESS)
            fail(*call.sequence, code, heddle_task_error_message());
}

void Context::insert(Call&& call) {
    {
        const std::lock_guard guard(mutex_);
        if (call.sequence->tasks == nullptr) call.sequence->tasks = std::make_unique<Sequence>(*runtime_);
        if (paused_) {
            held_.push_back(std::move(call));
            return;
        }
    }
    call.insert();
}

void Context::check_not_paused() const {
    if (paused_) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "tasks are paused: who waits for them waits for ever");
}

void Context::wait_all() {
    check_not_paused();
    runtime_->wait();
}

void Context::wait(SequenceObject& sequence) {
    check_not_paused();
    if (sequence.tasks != nullptr) {
        const WithoutRank waiting;
        sequence.tasks->wait();
    }
    const std::lock_guard guard(mutex_);
    drop_released(sequence);
}

SequenceObject* Context::make_sequence() {
    auto sequence = std::make_unique<SequenceObject>();
    sequence->status = AL4SAN_SUCCESS;
    sequence->request = nullptr;
    sequence->schedopt = sequence.get();
    sequence->options.sequence = sequence.get();
    sequence->tasks = std::make_unique<Sequence>(*runtime_);
    const std::lock_guard guard(mutex_);
    sequences_.insert(sequence.get());
    return sequence.release();
}

void Context::forget(SequenceObject& sequence) noexcept {
    const std::lock_guard guard(mutex_);
    sequences_.erase(&sequence);
    drop_released(sequence);
    for (auto& [memory, workspace] : workspaces_)
        if (workspace.sequence == &sequence) workspace.sequence = nullptr;
}

void* Context::new_workspace(const SequenceObject& sequence, size_t bytes) {
    auto memory = std::make_unique<std::byte[]>(bytes);
    void* const address = memory.get();
    const std::lock_guard guard(mutex_);
    workspaces_.emplace(address, Workspace{std::move(memory), &sequence});
    return address;
}

void Context::release_workspace(const void* memory) noexcept {
    const std::lock_guard guard(mutex_);
    const auto workspace = workspaces_.find(memory);
    if (workspace == workspaces_.end()) return;
    workspace->second.is_released = true;
    if (workspace->second.sequence == nullptr) workspaces_.erase(workspace);
}

/// With the mutex, when its tasks have ended.
void Context::drop_released(const SequenceObject& sequence) noexcept {
    std::erase_if(workspaces_, [&](const auto& entry) {
        return entry.second.sequence == &sequence && entry.second.is_released;
    });
}

const detail::DataView* Context::datum_at(void* address) {
    const std::lock_guard guard(mutex_);
    auto& datum = data_[address];
    if (datum == nullptr)
        datum = std::make_unique<detail::DataHandle>(*runtime_, detail::DataView{address, 1, 1, 1, 1});
    return datum->view();
}

void Context::add_descriptor(const AL4SAN_desc_t& desc) {
    const std::lock_guard guard(mutex_);
    descriptors_.insert(desc.schedopt);
}

bool Context::is_descriptor(const void* owner) {
    const std::lock_guard guard(mutex_);
    return descriptors_.contains(owner);
}

template <class Use>
void Context::for_each_tile(const AL4SAN_desc_t& desc, Use use) {
    for (int n = 0; n < desc.nt; ++n)
        for (int m = 0; m < desc.mt; ++m) use(AL4SAN_Data_getaddr(&desc, m, n));
}

void Context::wait_for_tiles(const AL4SAN_desc_t& desc) {
    check_not_paused();
    for_each_tile(desc, [&](const void* address) {
        const detail::DataHandle* datum = nullptr;
        {
            const std::lock_guard guard(mutex_);
            if (const auto found = data_.find(address); found != data_.end()) datum = found->second.get();
        }
        if (datum == nullptr) return;
        const WithoutRank waiting;
        datum->wait();
    });
}

void Context::forget_tiles(const AL4SAN_desc_t& desc) {
    wait_for_tiles(desc);
    const WithoutRank waiting;
    std::vector<std::unique_ptr<detail::DataHandle>> gone;  // which wait for who uses them still
    const std::lock_guard guard(mutex_);
    for_each_tile(desc, [&](const void* address) {
        const auto found = data_.find(address);
        if (found == data_.end()) return;
        gone.push_back(std::move(found->second));
        data_.erase(found);
    });
    if (desc.schedopt == &desc) descriptors_.erase(&desc);  // a submatrix has that of the whole
}

const char* Context::label(const char* text) {
    static auto* labels = new std::unordered_set<std::string>;
    const std::lock_guard guard(mutex_);
    return text == nullptr ? nullptr : labels->emplace(text).first->c_str();
}

}  // namespace heddle::al4san
