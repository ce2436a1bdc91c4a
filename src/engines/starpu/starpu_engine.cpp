#include "engines/starpu/starpu_engine.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/producer_rest.hpp"

namespace heddle {
namespace {

/// Tasks of one engine, before a worker looks whether others have some.
constexpr int kTurn = 64;

// Who has left a task that paused, in its sched_data or in what StarPuDevices has for it.
char left_by_driver, left_by_task;

starpu_codelet* codelet() {
    static starpu_codelet ours = [] {
        starpu_codelet made;
        starpu_codelet_init(&made);
        made.cpu_funcs[0] = [](void**, void*) {
            starpu_task& job = *starpu_task_get_current();
            StarPuEngine::of(job)->run(job);
        };
        made.nbuffers = STARPU_VARIABLE_NBUFFERS;
        made.name = "heddle";
        return made;
    }();
    return &ours;
}

starpu_data_access_mode mode_of(const DataUse& use) {
    return !use.writes ? STARPU_R : use.reads ? STARPU_RW : STARPU_W;
}

}  // namespace

StarPuEngine* StarPuEngine::of(const starpu_task& job) noexcept {
    return job.cl == codelet() ? static_cast<StarPuEngine*>(job.callback_arg) : nullptr;
}

StarPuEngine::StarPuEngine(const EngineOptions& options)
    : host_(options.host),
      options_(options),
      starpu_(StarPu::of_process(options.devices)),
      seats_(options),
      flows_(options.host, options.stack_bytes, [this] { starpu_.ring(); }),
      devices_(starpu_, *this) {
    starpu_.join(*this);
}

StarPuEngine::~StarPuEngine() {
    seats_.stop();
    starpu_.leave(*this);
    for (const auto& [data, handle] : handles_) starpu_data_unregister(handle);
}

void StarPuEngine::ready(Lane&, Task& task) {
    submit(task, {});
}

void StarPuEngine::insert(Lane&, Task& task) {
    if (task.accesses == 0) return submit(task, {});
    const std::lock_guard guard(mutex_);
    find_uses(task, uses_);
    accesses_.clear();
    for (const DataUse& use : uses_) accesses_.push_back({handle_of(*use.data), mode_of(use)});
    submit(task, accesses_);
}

starpu_data_handle_t StarPuEngine::handle_of(const DataState& data) {
    starpu_data_handle_t& handle = handles_[&data];
    if (handle == nullptr) starpu_void_data_register(&handle);
    return handle;
}

void StarPuEngine::submit(Task& task, const std::vector<StarPuAccess>& accesses) {
    starpu_task* const job = starpu_task_create();
    job->cl = codelet();
    job->cl_arg = &task;
    job->callback_arg = this;
    if (task.named) job->name = task.notes().name;
    set_accesses(*job, accesses, [](const StarPuAccess& access) { return access; });
    if (const int error = starpu_task_submit(job); error != 0) {
        starpu_task_destroy(job);
        throw Error(ErrorCode::kUnavailable,
                    std::string("StarPU does not take a task: ") + std::strerror(-error));
    }
}

void StarPuEngine::forget(const DataState& data) noexcept {
    const std::lock_guard guard(mutex_);
    const auto it = handles_.find(&data);
    if (it == handles_.end()) return;
    // Its last task has ended for us, and may not have for StarPU.
    starpu_data_unregister_submit(it->second);
    handles_.erase(it);
}

/// What the end of a task makes possible goes on where that was: others would have to fetch it from there.
void StarPuEngine::became_ready(starpu_task& job) noexcept {
    StarPu::Worker* const worker = StarPu::here();
    if (worker != nullptr && worker->serves == this && worker->ends_task && worker->kept == nullptr &&
        StarPuReady::task_of(job).priority == 0) {
        worker->kept = &job;
        return;
    }
    ready_.push(job);
    if (has_room()) starpu_.ring();
}

starpu_task* StarPuEngine::next(StarPu::Worker& worker) noexcept {
    worker.ends_task = false;
    if (ready_.any_urgent()) share_kept(worker);
    if (worker.kept != nullptr) return std::exchange(worker.kept, nullptr);
    starpu_task* const job = ready_.pop();
    return job != nullptr ? job : devices_.next();
}

void StarPuEngine::share_kept(StarPu::Worker& worker) noexcept {
    if (worker.kept == nullptr) return;
    ready_.push(*std::exchange(worker.kept, nullptr));
    if (has_room()) starpu_.ring();
}

void StarPuEngine::serve(StarPu::Worker& worker) {
    Lane& lane = host_.lane();
    Seats::Seat*& seat = seat_of_[static_cast<size_t>(worker.index)];
    if (seat == nullptr) seat = &seats_.enter();
    /// Also where there is no memory.
    struct Visit {
        StarPuEngine& engine;
        StarPu::Worker& worker;
        ~Visit() {
            engine.share_kept(worker);
            worker.serves = nullptr;
            // StarPU may have placed a task on a worker for which there was no room.
            if (engine.busy_.fetch_sub(1) >= engine.options_.workers && engine.devices_.any_submitted())
                engine.starpu_.ring_all();
        }
    };
    worker.serves = this;
    const bool room = busy_.fetch_add(1) < options_.workers;
    const Visit visit{*this, worker};
    if (room && seats_.begin(*seat, [this] { return starpu_.others_have_work(*this); })) {
        for (int i = 1; !seat->should_leave(); ++i) {
            if (i % kTurn == 0 && starpu_.others_have_work(*this)) break;
            if (flows_.any_woken()) {
                share_kept(worker);
                host_.flush(lane);  // what goes on may run for long
                after(lane, flows_.resume(lane));
            } else if (worker.kept != nullptr || ready_.any() || devices_.any()) {
                run_next(worker);
            } else {
                break;
            }
        }
        host_.flush(lane);
        (void)seats_.end(*seat);
    }
}

void StarPuEngine::run_next(StarPu::Worker& worker) {
    worker.paused = nullptr;
    // A driver runs what it took when it is called again.
    do starpu_driver_run_once(&worker.driver);
    while (worker.in_hand);
    worker.ends_task = false;
    // Only now has StarPU left it.
    if (worker.paused != nullptr) leave(*worker.paused, &left_by_driver);
}

/// A task that paused ends for StarPU when it has ended and its driver has left it: whichever comes last says
/// so. Sooner StarPU 1.3.10 would free it while its driver still has it.
void StarPuEngine::leave(starpu_task& job, void* by) noexcept {
    void*& left_by = StarPuDevices::of(job) != nullptr ? StarPuDevices::left_by(job) : job.sched_data;
    void* const before = std::atomic_ref(left_by).exchange(by, std::memory_order_acq_rel);
    if (before != nullptr && before != by) starpu_task_end_dep_release(&job);
}

void StarPuEngine::leave_by_task(starpu_task& job) noexcept {
    leave(job, &left_by_task);
}

void StarPuEngine::rest(const StarPu::Worker& worker) noexcept {
    if (Seats::Seat* seat = seat_of_[static_cast<size_t>(worker.index)]) seats_.part(*seat);
}

void StarPuEngine::rest_all() noexcept {
    for (Seats::Seat* seat : seat_of_)
        if (seat != nullptr) seats_.part(*seat);
}

void StarPuEngine::run(starpu_task& job) noexcept {
    StarPu::Worker& worker = *StarPu::here();
    worker.in_hand = worker.ends_task = false;
    go_on(host_.lane(), &StarPuReady::task_of(job), &job);
    worker.ends_task = true;
}

/// Runs the task, and children that can run after it.
void StarPuEngine::go_on(Lane& lane, Task* task, starpu_task* job) noexcept {
    while (task != nullptr) {
        TaskFlows::Outcome outcome;
        try {
            outcome = flows_.run(lane, *task, job);
        } catch (...) {
            // No memory for a stack: on the thread's own, where it cannot pause.
            outcome.continuation = host_.run_here(lane, *task);
            outcome.ended = true;
        }
        if (!outcome.ended) return;
        ended_.fetch_add(1, std::memory_order_relaxed);
        job = nullptr;
        task = outcome.continuation;
        if (task != nullptr && ready_.any_urgent() && put_off(*task)) return;
    }
}

/// Of a task that was resumed.
void StarPuEngine::after(Lane& lane, const TaskFlows::Outcome& outcome) noexcept {
    if (!outcome.ended) return;
    ended_.fetch_add(1, std::memory_order_relaxed);
    if (outcome.token != nullptr) leave_by_task(*static_cast<starpu_task*>(outcome.token));
    go_on(lane, outcome.continuation, nullptr);
}

/// False: there is no memory to keep it, and it runs before its turn.
bool StarPuEngine::put_off(Task& task) noexcept {
    try {
        submit(task, {});
        return true;
    } catch (...) {
        return false;
    }
}

void StarPuEngine::suspend(Announcement publish) {
    flows_.suspend(publish, [](void* job) {
        if (job == nullptr) return;
        starpu_task_end_dep_add(static_cast<starpu_task*>(job), 1);
        StarPu::here()->paused = static_cast<starpu_task*>(job);
    });
}

void StarPuEngine::wait_until(Lane& lane, const std::function<bool()>& reached) {
    host_.flush(lane);
    news_.wait(reached);
}

bool StarPuEngine::help(Lane&, uint64_t wanted) noexcept {
    // A thread that is not a worker of StarPU's cannot run a task; it gives those that are time.
    return rest_while(news_, wanted, [this] { return ended_.load(std::memory_order_relaxed); });
}

namespace {

const EngineFactory kFactory{"starpu", StarPu::problem,
                             [] {
                                 int major, minor, release;
                                 starpu_get_version(&major, &minor, &release);
                                 return "StarPU " + std::to_string(major) + "." + std::to_string(minor) +
                                        "." + std::to_string(release) + ", at most " +
                                        std::to_string(StarPu::kMostWorkers) + " workers";
                             },
                             [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                                 return std::make_unique<StarPuEngine>(options);
                             }};

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
