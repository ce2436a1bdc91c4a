#include "cores/worker_pool.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

thread_local Worker* this_worker = nullptr;

Time now() {
    return SteadyClock().now();
}

std::exception_ptr system_error(int number, const std::string& what) {
    return std::make_exception_ptr(
        Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(number))));
}

WorkerLimits with_sharing(WorkerLimits limits, const CpuProvider& provider) {
    limits.give_back_unused = provider.shares();
    return limits;
}

class Attributes {
  public:
    Attributes() { pthread_attr_init(&attributes_); }
    ~Attributes() { pthread_attr_destroy(&attributes_); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    pthread_attr_t* get() { return &attributes_; }

  private:
    pthread_attr_t attributes_;
};

size_t bytes_of(const std::vector<unsigned long>& mask) {
    return mask.size() * sizeof(unsigned long);
}
const cpu_set_t* native(const std::vector<unsigned long>& mask) {
    return reinterpret_cast<const cpu_set_t*>(mask.data());
}

}  // namespace

Worker* Worker::current() {
    return this_worker;
}

void Worker::found_work() {
    if (std::exchange(searching_, false)) pool_->found_work(*this);
}

WorkerPool::WorkerPool(Machine machine, CpuProvider& provider, WorkSource& source, WorkerPoolOptions options)
    : machine_(std::move(machine)),
      provider_(provider),
      source_(source),
      options_(std::move(options)),
      server_(machine_, with_sharing(options_.limits, provider)) {
    options_.bind = options_.bind && !machine_.synthetic();
    for (int i = 0; i < server_.capacity(); ++i) {
        workers_.push_back(std::make_unique<Worker>());
        workers_.back()->pool_ = this;
        workers_.back()->id_ = WorkerId{static_cast<uint32_t>(i)};
    }
    provider_.start([this] { provider_changed(); });
    provider_changed();
}

WorkerPool::~WorkerPool() {
    stop();
}

void WorkerPool::work_arrived() {
    light_fence();
    if (!wants_news_.load(std::memory_order_relaxed)) return;
    Lock lock(mutex_);
    server_.work_arrived(now());
    carry_out(lock);
}

void WorkerPool::stop() {
    if (this_worker != nullptr && this_worker->pool_ == this)
        throw Error(ErrorCode::kInvalidArgument,
                    "a worker cannot stop its own pool: it would wait for itself; let another thread do it");
    Lock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    server_.stop(now());
    carry_out(lock);
    quiet_.wait(lock, [this] { return threads_ == 0 && !telling_ && outbox_.empty(); });
    join_finished();
    lock.unlock();
    provider_.stop();
}

int WorkerPool::workers() const {
    const std::lock_guard guard(mutex_);
    return server_.workers();
}
int WorkerPool::busy() const {
    const std::lock_guard guard(mutex_);
    return server_.busy();
}
int WorkerPool::demand() const {
    const std::lock_guard guard(mutex_);
    return server_.demand();
}
CpuSet WorkerPool::occupied() const {
    const std::lock_guard guard(mutex_);
    return server_.occupied();
}

void WorkerPool::provider_changed() {
    Lock lock(mutex_);
    read_usable();
    carry_out(lock);
}

void WorkerPool::read_usable() {
    // What is on its way back is not to be used until the provider knows: it may be told that the pool left
    // a CPU after it said that the CPU is usable again.
    server_.cpus_changed(provider_.usable() - outbox_.given_back - outbox_.returned - parting_, now());
}

void* WorkerPool::enter(void* worker) {
    auto& self = *static_cast<Worker*>(worker);
    self.pool_->run(self);
    return nullptr;
}

void WorkerPool::run(Worker& worker) {
    this_worker = &worker;
    tell_source(worker, &WorkSource::worker_starts);
    Lock lock(mutex_);
    work(worker, lock);
    lock.unlock();
    tell_source(worker, &WorkSource::worker_ends);
    const bool left_work = source_.may_have_work();
    lock.lock();
    // From here on the place may be another thread's.
    server_.ended(worker.id_, left_work, now());
    carry_out(lock);
    look_again(lock);
    finished_.push_back(pthread_self());  // last: who joins it may hold the lock
    --threads_;
    quiet_.notify_all();
}

void WorkerPool::look_again(Lock& lock) {
    lock.unlock();
    heavy_fence();
    const bool more = source_.may_have_work();
    lock.lock();
    if (!more) return;
    server_.work_arrived(now());
    carry_out(lock);
}

void WorkerPool::tell_source(Worker& worker, void (WorkSource::*what)(Worker&)) {
    try {
        (source_.*what)(worker);
    } catch (...) {
        fail(std::current_exception());
    }
}

void WorkerPool::work(Worker& worker, Lock& lock) {
    while (true) {
        worker.ordered_.store(false, std::memory_order_relaxed);
        const WorkerState state = server_.state(worker.id_);
        if (state == WorkerState::kLeaving) return;
        if (state == WorkerState::kIdle) {
            sleep(worker, lock);
            continue;
        }
        if (const int cpu = server_.cpu_of(worker.id_); worker.cpu_ != cpu) {
            bind(worker, cpu);
            server_.moved(worker.id_, now());
            carry_out(lock);
            continue;
        }
        worker.searching_ = state == WorkerState::kSearching;
        lock.unlock();
        const bool ran_out = run_items(worker);
        lock.lock();
        if (!ran_out) continue;
        server_.out_of_work(worker.id_, now());
        carry_out(lock);
        look_again(lock);
    }
}

bool WorkerPool::run_items(Worker& worker) {
    while (!worker.ordered_.load(std::memory_order_acquire)) {
        bool found = true;
        try {
            found = source_.run_one(worker);
        } catch (...) {
            fail(std::current_exception());
        }
        if (!found) return true;
        worker.found_work();
    }
    return false;
}

void WorkerPool::sleep(Worker& worker, Lock& lock) {
    const auto deadline = server_.deadline(worker.id_);
    if (!deadline) {
        worker.wake_.wait(lock);
    } else if (worker.wake_.wait_until(lock, *deadline) == std::cv_status::timeout) {
        server_.tick(now());
        carry_out(lock);
    }
}

void WorkerPool::found_work(Worker& worker) {
    Lock lock(mutex_);
    server_.found_work(worker.id_, now());
    carry_out(lock);
}

void WorkerPool::carry_out(Lock& lock) {
    for (auto actions = server_.take_actions(); !actions.empty(); actions = server_.take_actions())
        for (const WorkerAction& action : actions) apply(action);
    wants_news_.store(server_.wants_news(), std::memory_order_relaxed);
    tell_provider(lock);
    if (failures_.empty()) return;
    const auto failures = std::exchange(failures_, {});
    lock.unlock();
    for (const std::exception_ptr& failure : failures) fail(failure);
    lock.lock();
}

void WorkerPool::apply(const WorkerAction& action) {
    Worker& worker = *workers_[action.worker.value];
    switch (action.kind) {
        case WorkerAction::Kind::kStart:
            start_thread(worker, action.cpu);
            break;
        case WorkerAction::Kind::kWake:
            // Bound from here, so that it does not wake up on a CPU that is not its own any more.
            if (worker.cpu_ != action.cpu) bind(worker, action.cpu);
            worker.wake_.notify_one();
            break;
        case WorkerAction::Kind::kEnd:
        case WorkerAction::Kind::kMove:
            worker.ordered_.store(true, std::memory_order_release);
            if (action.kind == WorkerAction::Kind::kEnd) worker.wake_.notify_one();
            break;
        case WorkerAction::Kind::kReturn:
            outbox_.returned.insert(action.cpu);
            break;
        case WorkerAction::Kind::kGiveBack:
            outbox_.given_back.insert(action.cpu);
            break;
        case WorkerAction::Kind::kDemand:
            outbox_.demand = action.count;
            break;
    }
}

void WorkerPool::start_thread(Worker& worker, int cpu) {
    join_finished();
    worker.cpu_ = cpu;
    worker.searching_ = true;
    worker.ordered_.store(false, std::memory_order_relaxed);
    Attributes attributes;
    const sigset_t blocked = signals_of_others();
    pthread_attr_setsigmask_np(attributes.get(), &blocked);
    // Bound before it runs: on its creator's CPU it would wait for its creator.
    const auto mask = CpuSet{cpu}.to_native();
    worker.bound_ = options_.bind;
    if (options_.bind) pthread_attr_setaffinity_np(attributes.get(), bytes_of(mask), native(mask));
    int failed = pthread_create(&worker.thread_, attributes.get(), &WorkerPool::enter, &worker);
    if (failed == EINVAL && options_.bind) {
        worker.bound_ = false;
        failures_.push_back(system_error(failed, fmt::format("cannot bind a worker to CPU {}", cpu)));
        const CpuSet all = machine_.cpus();
        const auto everywhere = all.to_native();
        pthread_attr_setaffinity_np(attributes.get(), bytes_of(everywhere), native(everywhere));
        failed = pthread_create(&worker.thread_, attributes.get(), &WorkerPool::enter, &worker);
    }
    if (failed == 0) {
        ++threads_;
        return;
    }
    failures_.push_back(system_error(
        failed, "cannot create a worker thread; what is waiting is left until more work arrives"));
    server_.start_failed(worker.id_, now());
}

void WorkerPool::bind(Worker& worker, int cpu) {
    worker.cpu_ = cpu;
    if (!options_.bind) return;
    const auto mask = CpuSet{cpu}.to_native();
    const int failed = pthread_setaffinity_np(worker.thread_, bytes_of(mask), native(mask));
    worker.bound_ = failed == 0;
    if (failed != 0)
        failures_.push_back(system_error(failed, fmt::format("cannot bind a worker to CPU {}", cpu)));
}

void WorkerPool::tell_provider(Lock& lock) {
    if (telling_) return;
    telling_ = true;
    while (!outbox_.empty()) {
        const Outbox news = std::exchange(outbox_, {});
        parting_ = news.given_back | news.returned;
        // Who gives back more than its demand says is given CPUs again.
        const bool falls = news.demand >= 0 && news.demand < told_demand_;
        if (news.demand >= 0) told_demand_ = news.demand;
        lock.unlock();
        try {
            if (falls) provider_.set_demand(news.demand);
            if (!news.returned.empty()) provider_.returned(news.returned);
            if (!news.given_back.empty()) provider_.give_back(news.given_back);
            if (!falls && news.demand >= 0) provider_.set_demand(news.demand);
        } catch (...) {
            fail(std::current_exception());
        }
        lock.lock();
        if (parting_.empty()) continue;
        parting_ = {};
        read_usable();
        for (auto actions = server_.take_actions(); !actions.empty(); actions = server_.take_actions())
            for (const WorkerAction& action : actions) apply(action);
        wants_news_.store(server_.wants_news(), std::memory_order_relaxed);
    }
    telling_ = false;
    quiet_.notify_all();
}

void WorkerPool::join_finished() {
    // They wait for nothing any more.
    for (const pthread_t thread : finished_) pthread_join(thread, nullptr);
    finished_.clear();
}

void WorkerPool::fail(std::exception_ptr failure) const {
    if (options_.on_failure) options_.on_failure(std::move(failure));
}

}  // namespace heddle
