// Fibers that go from thread to thread as an engine's do: each pauses by a hand-off that puts it where any
// worker may take it, at once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"
#include "support/sanitized.hpp"

using heddle::Fiber;
using heddle::Stack;
using heddle::StackCache;
using heddle::StackPool;

namespace {

constexpr int kWorkers = 3;
constexpr int kFibers = 20;
constexpr int kPauses = heddle::test::kSanitized ? 500 : 10'000;

class Loom;

struct Worker {
    explicit Worker(Loom& its_loom);
    Loom& loom;
    StackCache cache;
    Fiber fiber;
};

struct Job {
    Job(Loom& its_loom, Stack& its_stack)
        : loom(its_loom), stack(its_stack), fiber(stack.span(), begin, this) {}
    static void begin(void* self) { static_cast<Job*>(self)->run(); }
    void run();
    void pause();

    Loom& loom;
    Stack& stack;
    Fiber fiber;
    Worker* worker = nullptr;  // that runs it; null while it is paused
    long sum = 0;
};

class Loom {
  public:
    void run() {
        {
            StackCache cache(pool);
            for (int i = 0; i < kFibers; ++i) put(*new Job(*this, cache.take()));
        }
        std::vector<std::thread> threads;
        for (int i = 0; i < kWorkers; ++i) threads.emplace_back([this] { work(); });
        for (std::thread& thread : threads) thread.join();
    }

    void put(Job& job) {
        const std::lock_guard lock(mutex);
        ready.push_back(&job);
    }
    Job* take() {
        const std::lock_guard lock(mutex);
        if (ready.empty()) return nullptr;
        // The oldest and the newest in turns, so that a fiber is resumed by another as soon as it was told
        // of.
        const auto at = taken++ % 2 == 0 ? ready.begin() : ready.end() - 1;
        Job* const job = *at;
        ready.erase(at);
        return job;
    }
    void work() {
        Worker worker(*this);
        while (ended.load(std::memory_order_acquire) < kFibers) {
            Job* const job = take();
            if (job == nullptr) {
                std::this_thread::yield();
                continue;
            }
            job->worker = &worker;
            Fiber::switch_to(worker.fiber, job->fiber);
        }
    }

    StackPool pool;
    std::mutex mutex;
    std::vector<Job*> ready;
    unsigned taken = 0;
    std::atomic<int> ended{0};
    std::atomic<long> sum{0};
};

Worker::Worker(Loom& its_loom) : loom(its_loom), cache(its_loom.pool) {}

void Job::pause() {
    Worker& here = *worker;
    worker = nullptr;
    Fiber::switch_to(
        fiber, here.fiber,
        {[](void* self) noexcept { static_cast<Job*>(self)->loom.put(*static_cast<Job*>(self)); }, this});
}

void Job::run() {
    for (int i = 0; i < kPauses; ++i) {
        try {
            if (i % 8 == 0) throw i;
            pause();
        } catch (const int thrown) {
            pause();
            sum += thrown - i;
        }
        sum += 1;
    }
    Fiber::exit_to(fiber, worker->fiber,
                   {[](void* self) noexcept {
                        auto& job = *static_cast<Job*>(self);
                        Loom& home = job.loom;
                        home.sum += job.sum;
                        job.worker->cache.give_back(job.stack);
                        delete &job;
                        home.ended.fetch_add(1, std::memory_order_release);
                    },
                    this});
}

}  // namespace

TEST(FiberStress, GoFromThreadToThread) {
    Loom loom;
    loom.run();
    EXPECT_EQ(loom.ended, kFibers);
    EXPECT_EQ(loom.sum, static_cast<long>(kFibers) * kPauses);
}
