#include "engines/starpu/starpu_policy.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "engines/starpu/starpu_engine.hpp"
#include "heddle/error.hpp"

namespace heddle::starpu_policy {
namespace {

std::mutex strangers_mutex;
starpu_task *first_stranger = nullptr, *last_stranger = nullptr;
std::atomic<int> strangers{0};

const starpu_sched_policy* placing = nullptr;  // StarPU's own; written once, before StarPU is started
std::atomic<uint64_t> placed_count{0};

int push_task(starpu_task* job) {
    if (StarPuEngine* engine = StarPuEngine::of(*job)) {
        starpu_push_task_end(job);
        engine->became_ready(*job);
        return 0;
    }
    if (placing != nullptr && StarPuDevices::of(*job) != nullptr) {
        const int result = placing->push_task(job);
        placed_count.fetch_add(1);
        StarPu::running().ring_all();
        return result;
    }
    {
        const std::lock_guard guard(strangers_mutex);
        job->next = nullptr;
        (last_stranger == nullptr ? first_stranger : last_stranger->next) = job;
        last_stranger = job;
        starpu_push_task_end(job);
        strangers.fetch_add(1);
    }
    StarPu::running().ring();
    return 0;
}

starpu_task* pop_stranger() {
    const std::lock_guard guard(strangers_mutex);
    starpu_task* const job = first_stranger;
    if (job == nullptr) return nullptr;
    first_stranger = job->next;
    if (first_stranger == nullptr) last_stranger = nullptr;
    strangers.fetch_sub(1);
    return job;
}

/// Of those that StarPU has placed here, one of the engine that the worker serves.
starpu_task* pop_placed(unsigned context, StarPu::Worker& worker) {
    const uint64_t before = placed();
    if (placing == nullptr || worker.looked == before) return nullptr;
    while (starpu_task* const job = placing->pop_task(context)) {
        StarPuDevices& owner = *StarPuDevices::of(*job);
        if (&owner == &worker.serves->devices()) return job;
        owner.put_aside(*job);
    }
    worker.looked = before;
    return nullptr;
}

starpu_task* pop_task(unsigned context) {
    StarPu::Worker* worker = StarPu::here();
    if (worker == nullptr) return nullptr;
    if (worker->has_device) return placing->pop_task(context);
    if (worker->serves == nullptr) return pop_stranger();
    starpu_task* job = worker->serves->next(*worker);
    if (job == nullptr) job = pop_placed(context, *worker);
    worker->in_hand = job != nullptr;
    return job;
}

/// What StarPU's own policy counts are the tasks that it has placed.
void before_task(starpu_task* job, unsigned context) {
    if (StarPuDevices::of(*job) != nullptr) placing->pre_exec_hook(job, context);
}
void after_task(starpu_task* job, unsigned context) {
    if (StarPuDevices::of(*job) != nullptr) placing->post_exec_hook(job, context);
}

const starpu_sched_policy* find(const char* name) {
    for (starpu_sched_policy** one = starpu_sched_get_predefined_policies(); *one != nullptr; ++one)
        if (std::strcmp((*one)->policy_name, name) == 0) return *one;
    return nullptr;
}

}  // namespace

bool any_stranger() noexcept {
    return strangers.load() > 0;
}

uint64_t placed() noexcept {
    return placed_count.load();
}

starpu_sched_policy* of_process(bool with_devices) {
    static starpu_sched_policy ours{};
    if (with_devices) {
        const char* const wanted = std::getenv("STARPU_SCHED");
        placing = find(wanted != nullptr ? wanted : "dmda");
        if (placing == nullptr && wanted != nullptr)
            throw Error(ErrorCode::kInvalidArgument,
                        std::string("STARPU_SCHED names no scheduling policy that StarPU has: ") + wanted +
                            "; dmda is one");
        if (placing == nullptr) return nullptr;
        ours = *placing;
        if (ours.pre_exec_hook != nullptr) ours.pre_exec_hook = before_task;
        if (ours.post_exec_hook != nullptr) ours.post_exec_hook = after_task;
        ours.pop_every_task = nullptr;
    } else {
        ours.init_sched = ours.deinit_sched = [](unsigned) {};
        ours.add_workers = ours.remove_workers = [](unsigned, int*, unsigned) {};
        ours.worker_type = STARPU_WORKER_LIST;
    }
    ours.push_task = push_task;
    ours.pop_task = pop_task;
    ours.policy_name = "heddle";
    ours.policy_description = "tasks of heddle's engines, each on its CPUs";
    return &ours;
}

}  // namespace heddle::starpu_policy
