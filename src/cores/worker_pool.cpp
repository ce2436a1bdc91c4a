#include "cores/worker_pool.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kFirstLook = std::chrono::microseconds(100);

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
    if (provider.tells_awaited()) limits.first_look = kFirstLook;
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

template <class Event>
void WorkerPool::happen(Lock& lock, const Event& event) noexcept {
    bool whole = true;
    try {
        event();
    } catch (...) {
        whole = false;
    }
    carry_out(lock);
    if (!whole) lacks_memory();
}

void WorkerPool::lacks_memory() noexcept {
    short_of_memory_ = true;
    wants_news_.store(true, std::memory_order_relaxed);
}

void WorkerPool::tell_server() noexcept {
    Lock lock(mutex_);
    happen(lock, [&] { server_.work_arrived(now()); });
}

void WorkerPool::stop() {
    if (this_worker != nullptr && this_worker->pool_ == this)
        throw Error(ErrorCode::kInvalidArgument,
                    "a worker cannot stop its own pool: it would wait for itself; let another thread do it");
    Lock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    happen(lock, [&] { server_.stop(now()); });
    while (threads_ > 0 || telling_ || !outbox_.empty()) {
        if (!short_of_memory_) {
            quiet_.wait(lock);
            continue;
        }
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        happen(lock, [&] { server_.stop(now()); });
    }
    lock.unlock();
    // Nobody starts another one. What they destroy at their end may need the lock.
    for (const pthread_t thread : finished_) pthread_join(thread, nullptr);
    finished_.clear();
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
    reread_ = true;
    carry_out(lock);
}

void WorkerPool::read_usable() {
    // What is on its way back is not to be used until the provider knows: it may be told that the pool left
    // a CPU after it said that the CPU is usable again.
    const CpuSet on_its_way = outbox_.given_back | outbox_.returned | parting_;
    const CpuSet usable = provider_.usable() - on_its_way;
    const CpuSet owed = provider_.to_return() - on_its_way;
    server_.cpus_changed(usable - owed, owed, now());
    reread_ = false;
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
    happen(lock, [&] { server_.ended(worker.id_, left_work, now()); });
    look_again(lock);
    finished_.push_back(pthread_self());
    --threads_;
    quiet_.notify_all();
}

void WorkerPool::look_again(Lock& lock) {
    lock.unlock();
    heavy_fence();
    const bool more = source_.may_have_work();
    lock.lock();
    if (more) happen(lock, [&] { server_.work_arrived(now()); });
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
            happen(lock, [&] { server_.moved(worker.id_, now()); });
            continue;
        }
        worker.searching_ = state == WorkerState::kSearching;
        lock.unlock();
        const bool ran_out = run_items(worker);
        lock.lock();
        if (!ran_out) continue;
        happen(lock, [&] { server_.out_of_work(worker.id_, now()); });
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
        happen(lock, [&] { server_.tick(provider_.awaited(), now()); });
    }
}

void WorkerPool::found_work(Worker& worker) {
    Lock lock(mutex_);
    happen(lock, [&] { server_.found_work(worker.id_, now()); });
}

void WorkerPool::carry_out(Lock& lock) noexcept {
    short_of_memory_ = false;
    apply_all();
    tell_provider(lock);
    if (failures_.empty()) return;
    const auto failures = std::exchange(failures_, {});
    lock.unlock();
    for (const std::exception_ptr& failure : failures) fail(failure);
    lock.lock();
}

void WorkerPool::apply_all() noexcept {
    try {
        if (reread_) read_usable();
        do {
            for (; applied_ < actions_.size(); ++applied_) apply(actions_[applied_]);
            applied_ = 0;
            actions_ = server_.take_actions();
        } while (!actions_.empty());
        wants_news_.store(server_.wants_news(), std::memory_order_relaxed);
    } catch (...) {
        lacks_memory();
    }
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

void WorkerPool::start_thread(Worker& worker, int cpu) noexcept {
    std::erase_if(finished_, [](pthread_t thread) { return pthread_tryjoin_np(thread, nullptr) == 0; });
    worker.cpu_ = cpu;
    worker.searching_ = true;
    worker.ordered_.store(false, std::memory_order_relaxed);
    int failed = ENOMEM;
    try {
        finished_.reserve(finished_.size() + static_cast<size_t>(threads_) + 1);
        failed = create_thread(worker, cpu);
    } catch (const std::bad_alloc&) {
        // There was none for the set of its CPUs.
    }
    if (failed == 0) {
        ++threads_;
        return;
    }
    note(failed, "cannot create a worker thread for CPU {}; what is waiting is left until more work arrives",
         cpu);
    try {
        server_.start_failed(worker.id_, now());
    } catch (const std::bad_alloc&) {
        // It has been taken in, and the rest is decided with the next event.
    }
}

/// Returns what pthread_create() does.
int WorkerPool::create_thread(Worker& worker, int cpu) {
    Attributes attributes;
    const sigset_t blocked = signals_of_others();
    pthread_attr_setsigmask_np(attributes.get(), &blocked);
    // Bound before it runs: on its creator's CPU it would wait for its creator.
    const auto mask = CpuSet{cpu}.to_native();
    worker.bound_ = options_.bind;
    if (options_.bind) pthread_attr_setaffinity_np(attributes.get(), bytes_of(mask), native(mask));
    const int failed = pthread_create(&worker.thread_, attributes.get(), &WorkerPool::enter, &worker);
    if (failed != EINVAL || !options_.bind) return failed;
    worker.bound_ = false;
    note(failed, "cannot bind a worker to CPU {}", cpu);
    const auto everywhere = machine_.cpus().to_native();
    pthread_attr_setaffinity_np(attributes.get(), bytes_of(everywhere), native(everywhere));
    return pthread_create(&worker.thread_, attributes.get(), &WorkerPool::enter, &worker);
}

void WorkerPool::bind(Worker& worker, int cpu) noexcept {
    worker.cpu_ = cpu;
    if (!options_.bind) return;
    int failed = ENOMEM;
    try {
        const auto mask = CpuSet{cpu}.to_native();
        failed = pthread_setaffinity_np(worker.thread_, bytes_of(mask), native(mask));
    } catch (const std::bad_alloc&) {
        // It stays where it is.
    }
    worker.bound_ = failed == 0;
    if (failed != 0) note(failed, "cannot bind a worker to CPU {}", cpu);
}

/// `what` has a place for the CPU.
void WorkerPool::note(int failed, const char* what, int cpu) noexcept {
    try {
        failures_.push_back(system_error(failed, fmt::format(fmt::runtime(what), cpu)));
    } catch (const std::bad_alloc&) {
        // One failure less is told.
    }
}

void WorkerPool::tell_provider(Lock& lock) noexcept {
    if (telling_) return;
    telling_ = true;
    while (!outbox_.empty() && !short_of_memory_) {
        try {
            parting_ = outbox_.given_back | outbox_.returned;
        } catch (...) {
            lacks_memory();
            break;
        }
        Outbox news = std::exchange(outbox_, {});
        lock.unlock();
        const bool told = tell_provider(news);
        lock.lock();
        if (!told) outbox_.add(std::move(news));
        if (!parting_.empty()) {
            parting_ = {};
            reread_ = true;
            apply_all();
        }
        if (!told) lacks_memory();
    }
    telling_ = false;
    quiet_.notify_all();
}

/// False: not all, for want of memory. The rest is left in it.
bool WorkerPool::tell_provider(Outbox& news) noexcept {
    // Who gives back more than its demand says is given CPUs again.
    const bool falls = news.demand >= 0 && news.demand < told_demand_;
    const auto tell_demand = [&] {
        provider_.set_demand(news.demand);
        told_demand_ = std::exchange(news.demand, -1);
    };
    // What one of these throws keeps none of the others from the provider.
    const auto tell = [&](const auto& what) {
        try {
            what();
        } catch (const std::bad_alloc&) {
            return false;
        } catch (...) {
            fail(std::current_exception());
        }
        return true;
    };
    if (falls && !tell(tell_demand)) return false;
    if (!news.returned.empty() && !tell([&] { provider_.returned(news.returned); })) return false;
    news.returned = {};
    if (!news.given_back.empty() && !tell([&] { provider_.give_back(news.given_back); })) return false;
    news.given_back = {};
    return news.demand < 0 || tell(tell_demand);
}

/// Older news. Takes no memory.
void WorkerPool::Outbox::add(Outbox&& before) noexcept {
    if (demand < 0) demand = before.demand;
    for (const auto cpus : {&Outbox::returned, &Outbox::given_back}) {
        // The larger one has room for the other.
        if ((before.*cpus).last() > (this->*cpus).last()) std::swap(before.*cpus, this->*cpus);
        this->*cpus |= before.*cpus;
    }
}

void WorkerPool::fail(std::exception_ptr failure) const {
    if (options_.on_failure) options_.on_failure(std::move(failure));
}

}  // namespace heddle
