// ReadyQueue, with an owner and without, and PriorityQueue as they are, under the explorer: each task comes
// out once, with what was written before it went in.
#include "tasks/ready_queue.hpp"

#include <array>

#include "engines/native/priority_queue.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

struct Job : Task {
    int written = 0;
    int taken = 0;
};

constexpr size_t kJobs = 3;

template <class Queue>
struct Jobs {
    template <class... Arguments>
    explicit Jobs(Arguments... arguments) : queue(arguments...) {}
    Queue queue;
    std::array<Job, kJobs> jobs;

    void push(size_t job) {
        jobs[job].written = 1;
        queue.push(jobs[job]);
    }
    void push_own(size_t job) {
        jobs[job].written = 1;
        queue.push_own(jobs[job]);
    }
    void take(Explorer& explorer, Task* task) {
        if (task == nullptr) return;
        Job& job = static_cast<Job&>(*task);
        if (job.written != 1) explorer.fail("a task that nobody has pushed");
        if (++job.taken != 1) explorer.fail("a task came out twice");
    }
    void steal(Explorer& explorer) {
        Task* stolen[Queue::kMostStolen];
        const size_t count = queue.steal(stolen);
        for (size_t i = 0; i < count; ++i) take(explorer, stolen[i]);
    }
    void expect_all_taken(Explorer& explorer) {
        for (const Job& job : jobs)
            if (job.taken != 1) explorer.fail("a task was lost");
    }
};

void steal_while_the_owner_works(Explorer& explorer) {
    auto all = std::make_shared<Jobs<TaskQueue<ShortLock>>>();
    explorer.thread([all, &explorer] {
        all->push(0);
        all->push(1);
        all->take(explorer, all->queue.pop());
        all->push(2);
        all->take(explorer, all->queue.pop());
    });
    explorer.thread([all, &explorer] { all->steal(explorer); });
    explorer.finally([all, &explorer] {
        while (Task* task = all->queue.pop()) all->take(explorer, task);
        all->expect_all_taken(explorer);
    });
}

/// The owner is favoured by its queue's lock, and not any more once somebody else comes.
void steal_from_an_owner_that_is_favoured(Explorer& explorer) {
    auto all = std::make_shared<Jobs<ReadyQueue>>(2U);
    explorer.thread([all, &explorer] {
        all->push_own(0);
        all->take(explorer, all->queue.pop_own());
        all->push_own(1);
        all->take(explorer, all->queue.pop_own());
    });
    explorer.thread([all, &explorer] {
        all->push(2);
        all->steal(explorer);
    });
    explorer.finally([all, &explorer] {
        while (Task* task = all->queue.pop()) all->take(explorer, task);
        all->expect_all_taken(explorer);
    });
}

void two_take_the_urgent_ones(Explorer& explorer) {
    auto all = std::make_shared<Jobs<PriorityQueue>>();
    explorer.thread([all, &explorer] {
        for (size_t i = 0; i < kJobs; ++i) all->push(i);
        all->take(explorer, all->queue.pop(true));
    });
    explorer.thread([all, &explorer] {
        all->take(explorer, all->queue.pop(true));
        all->take(explorer, all->queue.pop(true));
    });
    explorer.finally([all, &explorer] {
        while (Task* task = all->queue.pop(true)) all->take(explorer, task);
        all->expect_all_taken(explorer);
    });
}

TEST(ExploredReadyQueue, EachTaskComesOutOnce) {
    expect_holds(steal_while_the_owner_works);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(steal_while_the_owner_works, fault);
}
TEST(ExploredReadyQueue, EachTaskOfAFavouredOwnerComesOutOnce) {
    expect_holds(steal_from_an_owner_that_is_favoured);
    for (const Fault fault : {Fault::kRelaxedStores, Fault::kNoFences})
        expect_found(steal_from_an_owner_that_is_favoured, fault);
}
TEST(ExploredPriorityQueue, EachTaskComesOutOnce) {
    expect_holds(two_take_the_urgent_ones);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(two_take_the_urgent_ones, fault);
}

}  // namespace
}  // namespace heddle::test
