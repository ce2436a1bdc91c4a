#include "engines/starpu/starpu_devices.hpp"

#include <array>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "engines/starpu/starpu_accesses.hpp"
#include "engines/starpu/starpu_engine.hpp"
#include "engines/starpu/starpu_policy.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

class Handle final : public KnownMemory {
  public:
    Handle(void* address, size_t bytes) {
        starpu_variable_data_register(&handle, STARPU_MAIN_RAM, reinterpret_cast<uintptr_t>(address), bytes);
    }
    // Its last task may not have ended for StarPU.
    ~Handle() override { starpu_data_unregister_submit(handle); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    starpu_data_handle_t handle = nullptr;
};

starpu_data_handle_t handle_of(const TwoWayWork::Use& use) {
    return static_cast<const Handle&>(*use.memory).handle;
}

starpu_data_access_mode mode_of(AccessMode how) {
    return how == AccessMode::kIn ? STARPU_R : how == AccessMode::kOut ? STARPU_W : STARPU_RW;
}

/// A codelet and what StarPU learns of it, which it keeps until the end of the process.
struct Model {
    std::string name;
    starpu_perfmodel costs{};
    starpu_codelet codelet{};
};

std::exception_ptr refused(const std::string& what, int error) {
    return std::make_exception_ptr(
        Error(ErrorCode::kUnavailable, "StarPU does not " + what + ": " + std::strerror(-error)));
}

}  // namespace

struct StarPuDevices::Job {
    StarPuDevices& owner;
    TwoWayWork& work;
    starpu_task* task = nullptr;
    void* left_by = nullptr;  ///< where StarPU's policies have their own in the task's sched_data
    /// Of what is brought home.
    struct Fetch {
        Job* job;
        starpu_data_handle_t handle;
    };
    std::vector<Fetch> fetches{};
    std::atomic<int> left{1};
};

std::span<const EngineDevice> StarPuDevices::devices() const noexcept {
    return starpu_.devices();
}

std::shared_ptr<KnownMemory> StarPuDevices::know(void* address, size_t bytes) {
    return std::make_shared<Handle>(address, bytes);
}

starpu_codelet& StarPuDevices::codelet_for(const std::string& name) {
    static std::mutex mutex;
    static std::map<std::string, Model>& models = *new std::map<std::string, Model>;
    const std::lock_guard guard(mutex);
    const auto [place, is_new] = models.try_emplace(name);
    Model& model = place->second;
    if (is_new) {
        model.name = name;
        model.costs.type = STARPU_HISTORY_BASED;
        model.costs.symbol = model.name.c_str();
        model.costs.footprint = footprint;
        starpu_codelet_init(&model.codelet);
        model.codelet.cpu_funcs[0] = run_on_cpu;
        model.codelet.opencl_funcs[0] = run_on_device;
        model.codelet.can_execute = may_run;
        model.codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
        model.codelet.model = &model.costs;
        model.codelet.name = model.name.c_str();
    }
    return model.codelet;
}

StarPuDevices* StarPuDevices::of(const starpu_task& job) noexcept {
    const bool ours = job.cl != nullptr && job.cl->cpu_funcs[0] == run_on_cpu;
    return ours ? &static_cast<Job*>(job.cl_arg)->owner : nullptr;
}

void*& StarPuDevices::left_by(const starpu_task& job) noexcept {
    return static_cast<Job*>(job.cl_arg)->left_by;
}

int StarPuDevices::may_run(unsigned worker, starpu_task* task, unsigned) {
    const TwoWayWork& work = static_cast<Job*>(task->cl_arg)->work;
    const int id = static_cast<int>(worker);
    if (starpu_worker_get_type(id) != STARPU_OPENCL_WORKER) return work.on_cpu ? 1 : 0;
    return (work.on_devices >> starpu_worker_get_devid(id)) & 1;
}

uint32_t StarPuDevices::footprint(starpu_task* task) {
    return starpu_task_data_footprint(task) ^ static_cast<Job*>(task->cl_arg)->work.shape;
}

bool StarPuDevices::submit(TwoWayWork& work) noexcept {
    std::unique_ptr<Job> job;
    try {
        job.reset(new Job{*this, work});
        job->fetches.reserve(work.uses.size());
        starpu_codelet& codelet = codelet_for(work.name);
        job->task = starpu_task_create();
        job->task->cl = &codelet;
        job->task->cl_arg = job.get();
        job->task->callback_func = [](void* argument) { ended(argument); };
        job->task->callback_arg = job.get();
        set_accesses(*job->task, work.uses, [](const TwoWayWork::Use& use) {
            return StarPuAccess{handle_of(use), mode_of(use.how)};
        });
    } catch (...) {
        work.failure = std::current_exception();
        return false;
    }
    work.token = job->task;
    submitted_.fetch_add(1);
    starpu_.drive_devices();
    if (const int error = starpu_task_submit(job->task); error != 0) {
        starpu_task_destroy(job->task);
        work.failure = refused("take a task for its devices", error);
        starpu_.leave_devices();
        submitted_.fetch_sub(1);
        return false;
    }
    (void)job.release();
    return true;
}

void StarPuDevices::run_on_cpu(void**, void* argument) {
    Job& job = *static_cast<Job*>(argument);
    StarPu::Worker& worker = *StarPu::here();
    worker.in_hand = false;
    worker.paused = job.task;
    starpu_task_end_dep_add(job.task, 1);
    job.work.chose_cpu = true;
    job.owner.engine_.resume(*job.work.waiter);
}

void StarPuDevices::done(TwoWayWork& work) noexcept {
    StarPuEngine::leave_by_task(*static_cast<starpu_task*>(work.token));
}

void StarPuDevices::run_on_device(void** buffers, void* argument) {
    TwoWayWork& work = static_cast<Job*>(argument)->work;
    try {
        std::vector<void*> memories(work.uses.size());
        for (size_t i = 0; i < memories.size(); ++i)
            memories[i] = reinterpret_cast<void*>(STARPU_VARIABLE_GET_DEV_HANDLE(buffers[i]));
        work.run_on(static_cast<unsigned>(starpu_worker_get_devid(starpu_worker_get_id())), memories);
    } catch (...) {
        work.failure = std::current_exception();
    }
}

/// Its callback: StarPU has ended it, and holds none of its data.
void StarPuDevices::ended(void* argument) noexcept {
    Job& job = *static_cast<Job*>(argument);
    if (!job.work.chose_cpu && job.work.failure == nullptr)
        for (const TwoWayWork::Use& use : job.work.uses)
            if (use.how != AccessMode::kIn) job.fetches.push_back({&job, handle_of(use)});
    job.left.store(static_cast<int>(job.fetches.size()) + 1);
    for (Job::Fetch& fetch : job.fetches)
        if (const int error = starpu_data_acquire_on_node_cb(
                fetch.handle, STARPU_MAIN_RAM, STARPU_R, [](void* one) { fetched(one); }, &fetch);
            error != 0) {
            job.work.failure = refused("bring data home", error);
            job.owner.finish(job);
        }
    job.owner.finish(job);
}

void StarPuDevices::fetched(void* argument) noexcept {
    Job::Fetch& fetch = *static_cast<Job::Fetch*>(argument);
    starpu_data_release_on_node(fetch.handle, STARPU_MAIN_RAM);
    fetch.job->owner.finish(*fetch.job);
}

/// Of the last of those that it waits for.
void StarPuDevices::finish(Job& job) noexcept {
    if (job.left.fetch_sub(1) > 1) return;
    Waiter& waiter = *job.work.waiter;
    delete &job;
    starpu_.leave_devices();
    submitted_.fetch_sub(1);
    waiter.wake();
}

void StarPuDevices::put_aside(starpu_task& job) noexcept {
    {
        const std::lock_guard guard(mutex_);
        job.next = nullptr;
        (first_aside_ == nullptr ? first_aside_ : last_aside_->next) = &job;
        last_aside_ = &job;
        any_aside_.store(true);
    }
    starpu_.ring();
}

starpu_task* StarPuDevices::next() noexcept {
    if (!any_aside_.load()) return nullptr;
    const std::lock_guard guard(mutex_);
    starpu_task* const job = first_aside_;
    if (job == nullptr) return nullptr;
    first_aside_ = job->next;
    any_aside_.store(first_aside_ != nullptr);
    job->next = nullptr;
    return job;
}

bool StarPuDevices::any() const noexcept {
    return any_aside_.load() || (submitted_.load() > 0 && StarPu::here()->looked != starpu_policy::placed());
}

}  // namespace heddle
