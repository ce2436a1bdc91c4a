// WorkerPool: the threads behind a LocalServer: created, bound and ended as it decides, asleep when there is
// nothing to do.
//
// Streams and the native engine put their work behind a WorkSource; the pool runs it on as many CPUs as it
// can use and its CpuProvider lets it. There is no server thread: whoever causes a change decides it, under
// the pool's lock, which is not touched while all workers are busy and find more. No thread polls. A worker
// without work sleeps, a few times with a timeout, then ends; a pool without work has no threads unless it is
// told to keep some. Not for use after fork(2) in the child.
//
// Why no wake-up is lost. A worker that found nothing is asleep in the books first (wants_news_ is true);
// then there is a heavy fence, and then it asks may_have_work(). Whoever brings work makes it visible first;
// then there is a light fence in work_arrived(), and then it reads wants_news_. One of the two sees the other
// (base/asymmetric_fence.hpp).
//
// Without memory a decision may be left half carried out: no call throws for that, and the rest is done with
// the next change, which is work that arrives, too. Work that arrived last may lie until then.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/asymmetric_fence.hpp"
#include "cores/cpu_provider.hpp"
#include "cores/local_server.hpp"

namespace heddle {

class WorkerPool;

/// What a WorkSource sees of the worker that runs it. Only that worker's thread uses it.
class Worker {
  public:
    /// From 0 to the pool's capacity - 1; no other worker at this time has it.
    [[nodiscard]] uint32_t index() const { return id_.value; }
    /// The CPU it holds; bound() where the system has bound it there.
    [[nodiscard]] int cpu() const { return cpu_; }
    [[nodiscard]] bool bound() const { return bound_; }
    /// Says that there is an item to work on, before the work: another worker may then be started. Costs next
    /// to nothing except for the first item after a search.
    void found_work();
    /// The worker was asked to leave its CPU: return from run_one() when convenient.
    [[nodiscard]] bool should_leave() const { return ordered_.load(std::memory_order_relaxed); }
    [[nodiscard]] WorkerPool& pool() const { return *pool_; }
    /// The calling thread's, or null.
    [[nodiscard]] static Worker* current();

  private:
    friend class WorkerPool;
    WorkerPool* pool_ = nullptr;
    WorkerId id_;
    int cpu_ = -1;
    bool bound_ = false;
    bool searching_ = true;
    // Set under the pool's lock, read by the worker between items: it then takes the lock and looks.
    std::atomic<bool> ordered_{false};
    std::condition_variable wake_;
    pthread_t thread_{};
};

/// The work. Several workers call it at once.
class WorkSource {
  public:
    virtual ~WorkSource() = default;
    /// Finds one item wherever it may be (the worker's queue, the input, other workers' queues), says
    /// worker.found_work(), and runs it. False: there was none anywhere. An exception is reported to
    /// WorkerPoolOptions::on_failure, and the worker goes on.
    virtual bool run_one(Worker& worker) = 0;
    /// Would run_one() find something? Must see all that was published before a work_arrived(). Must not
    /// block. A wrong "yes" costs a search; one that stays wrong keeps a worker searching for ever.
    virtual bool may_have_work() noexcept = 0;
    virtual void worker_starts(Worker&) {}
    /// The worker is about to end, perhaps with items in its queue: append them to another's.
    virtual void worker_ends(Worker&) {}
};

struct WorkerPoolOptions {
    WorkerLimits limits;  ///< give_back_unused and first_look are what the provider says
    /// Bind workers to their CPUs. Never done on a machine that is described and not real.
    bool bind = true;
    /// Called, in whichever thread it happens and without a lock, with exceptions out of the source, and with
    /// an Error where a thread could not be created or bound. Must not throw.
    std::function<void(std::exception_ptr)> on_failure;
};

class WorkerPool {
  public:
    /// Starts at once: the first worker looks for work. Provider and source must outlive the pool.
    WorkerPool(Machine machine, CpuProvider& provider, WorkSource& source, WorkerPoolOptions options = {});
    /// stop().
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// To be called after work was made visible, by any thread. Costs a load while no worker needs to be
    /// told.
    void work_arrived() noexcept {
        light_fence();
        if (wants_news_.load(std::memory_order_relaxed)) tell_server();
    }
    /// Ends the workers after their current items and waits for them. What work is left stays in the source.
    /// Not from a worker: throws kInvalidArgument. A second call does nothing.
    void stop();

    /// Workers that are not about to end; those of them that are doing something; demand as last decided.
    [[nodiscard]] int workers() const;
    [[nodiscard]] int busy() const;
    [[nodiscard]] int demand() const;
    /// CPUs that workers hold.
    [[nodiscard]] CpuSet occupied() const;
    /// Bound of Worker::index().
    [[nodiscard]] int capacity() const { return static_cast<int>(workers_.size()); }

  private:
    friend class Worker;
    using Lock = std::unique_lock<std::mutex>;

    /// What the provider has still to be told.
    struct Outbox {
        int demand = -1;
        CpuSet returned, given_back;
        [[nodiscard]] bool empty() const { return demand < 0 && returned.empty() && given_back.empty(); }
        void add(Outbox&& before) noexcept;
    };

    [[gnu::noinline]] void tell_server() noexcept;
    static void* enter(void* worker);
    void run(Worker& worker);
    void work(Worker& worker, Lock& lock);
    void tell_source(Worker& worker, void (WorkSource::*what)(Worker&));
    [[nodiscard]] bool run_items(Worker& worker);
    /// Work may have come after the search and before this thread was known to have found none.
    void look_again(Lock& lock);
    void sleep(Worker& worker, Lock& lock);
    void found_work(Worker& worker);
    void provider_changed();
    void read_usable();

    /// Says an event to the server, and carries out what that decides.
    template <class Event>
    void happen(Lock& lock, const Event& event) noexcept;
    /// Carries out what the server decided, the provider's part without the lock.
    void carry_out(Lock& lock) noexcept;
    void apply_all() noexcept;
    void lacks_memory() noexcept;
    void apply(const WorkerAction& action);
    void start_thread(Worker& worker, int cpu) noexcept;
    [[nodiscard]] int create_thread(Worker& worker, int cpu);
    void bind(Worker& worker, int cpu) noexcept;
    void note(int failed, const char* what, int cpu) noexcept;
    void tell_provider(Lock& lock) noexcept;
    [[nodiscard]] bool tell_provider(Outbox& news) noexcept;
    void fail(std::exception_ptr failure) const;

    const Machine machine_;
    CpuProvider& provider_;
    WorkSource& source_;
    WorkerPoolOptions options_;
    std::vector<std::unique_ptr<Worker>> workers_;  // by id; a place is used by one thread after the other

    mutable std::mutex mutex_;  // for all below
    LocalServer server_;
    std::vector<WorkerAction> actions_;  // decided
    size_t applied_ = 0;                 // of these
    bool reread_ = false;                // what is usable is to be asked for again
    bool short_of_memory_ = false;       // something is left for the next change
    Outbox outbox_;
    CpuSet parting_;        // given back or returned: the provider is being told right now
    int told_demand_ = 0;   // to the provider
    bool telling_ = false;  // a thread is telling the provider; others leave it to that one
    std::vector<std::exception_ptr> failures_;
    std::vector<pthread_t> finished_;  // to be joined; has room for all that run
    int threads_ = 0;
    std::condition_variable quiet_;  // threads_ or telling_ fell
    bool stopped_ = false;

    // server_.wants_news(), written under mutex_, read without it; see the top.
    std::atomic<bool> wants_news_{false};
};

}  // namespace heddle
