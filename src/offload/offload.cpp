#include "heddle/offload.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "offload/kernel_places.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace detail {

class OffloadState {
  public:
    OffloadState(std::string_view name, const CpuSet& wanted)
        : engine(find_engine(name)), cpus_(usable(wanted)) {
        if (engine.kernels == nullptr)
            places_ = std::make_unique<TaskKernels>(engine, cpus_);
        else
            places_ = std::make_unique<CrewKernels>(engine, cpus_);
    }
    /// Kernels may spawn others, and do so before they end.
    ~OffloadState() { drain(InnerWait::Kind::kMust); }
    OffloadState(const OffloadState&) = delete;
    OffloadState& operator=(const OffloadState&) = delete;

    Kernel spawn(std::function<void()> function, const CpuSet& on, Offload::Ended ended) {
        auto kernel = std::make_shared<KernelState>();
        kernel->function = std::move(function);
        kernel->ended = std::move(ended);
        kernel->forget = [this](KernelState& one) {
            const std::lock_guard guard(mutex_);
            left_.erase(left_.find(&one));
        };
        if (!kernel->function) throw Error(ErrorCode::kInvalidArgument, "a kernel needs a function to run");
        {
            const std::lock_guard guard(mutex_);
            left_.insert(kernel);
        }
        try {
            places_->spawn(kernel, on);
        } catch (...) {
            const std::lock_guard guard(mutex_);
            left_.erase(left_.find(kernel.get()));
            throw;
        }
        return Kernel(kernel);
    }

    void set_cpus(const CpuSet& wanted) {
        if (wanted.empty())
            throw Error(ErrorCode::kInvalidArgument, "kernels cannot run on an empty set of CPUs");
        const std::lock_guard changing(set_mutex_);
        const CpuSet now = usable(wanted);
        {
            const std::lock_guard guard(mutex_);
            cpus_ = now;
        }
        places_->set_cpus(now);
    }

    void wait(InnerWait::Kind kind = InnerWait::Kind::kMay) {
        std::set<std::shared_ptr<KernelState>, ByAddress> some;
        {
            const std::lock_guard guard(mutex_);
            some = left_;
        }
        for (const auto& kernel : some) kernel->wait_until_ended(kind);
    }

    void drain(InnerWait::Kind kind = InnerWait::Kind::kMay) {
        while (!idle()) wait(kind);
    }
    [[nodiscard]] bool idle() const {
        const std::lock_guard guard(mutex_);
        return left_.empty();
    }
    [[nodiscard]] KernelPlaces& places() const { return *places_; }
    [[nodiscard]] CpuSet cpus() const {
        const std::lock_guard guard(mutex_);
        return cpus_;
    }
    [[nodiscard]] bool is_here() const {
        const std::lock_guard guard(mutex_);
        for (const auto& kernel : left_)
            if (kernel->is_here()) return true;
        return false;
    }

    const EngineFactory& engine;

  private:
    struct ByAddress {
        using is_transparent = void;
        bool operator()(const auto& a, const auto& b) const {
            return std::less<>()(std::to_address(a), std::to_address(b));
        }
    };

    static CpuSet usable(const CpuSet& wanted) {
        const CpuSet all = allowance(Machine::detect()).usable;
        if (const CpuSet beyond = wanted - all; !beyond.empty())
            throw Error(ErrorCode::kInvalidArgument, "this process may not use CPUs " + beyond.to_list() +
                                                         "; it may use " + all.to_list());
        return wanted.empty() ? all : wanted;
    }

    std::mutex set_mutex_;      // one change after the other
    mutable std::mutex mutex_;  // for those below
    CpuSet cpus_;
    std::set<std::shared_ptr<KernelState>, ByAddress> left_;
    std::unique_ptr<KernelPlaces> places_;  // last: its threads use the above
};

}  // namespace detail

namespace {

void refuse_in_kernel(const detail::OffloadState& offload) {
    if (offload.is_here())
        throw Error(ErrorCode::kInvalidArgument,
                    "a kernel cannot wait for all kernels of its engine, of which it is one");
}

}  // namespace

bool Kernel::done() const {
    return state_->done();
}

void Kernel::wait() const {
    state_->wait_until_ended();
    if (state_->error) std::rethrow_exception(state_->error);
}

Offload::Offload(std::string_view engine, const CpuSet& cpus)
    : state_(std::make_unique<detail::OffloadState>(engine, cpus)) {}

Offload::~Offload() = default;

Kernel Offload::spawn(std::function<void()> function, Ended ended) {
    return state_->spawn(std::move(function), {}, std::move(ended));
}

Kernel Offload::spawn(std::function<void()> function, const CpuSet& cpus, Ended ended) {
    if (cpus.empty()) throw Error(ErrorCode::kInvalidArgument, "a kernel cannot run on an empty set of CPUs");
    const CpuSet all = state_->cpus();
    if (const CpuSet beyond = cpus - all; !beyond.empty())
        throw Error(ErrorCode::kInvalidArgument, "kernels of this engine were not given CPUs " +
                                                     beyond.to_list() + "; they have " + all.to_list());
    return state_->spawn(std::move(function), cpus, std::move(ended));
}

void Offload::set_cpus(const CpuSet& cpus) {
    state_->set_cpus(cpus);
}

void Offload::wait() {
    refuse_in_kernel(*state_);
    state_->wait();
}

void Offload::drain() {
    refuse_in_kernel(*state_);
    state_->drain();
}

bool Offload::idle() const {
    return state_->idle();
}

void Offload::register_polling_service(const std::string& name, PollingService service, void* data) {
    state_->places().add_service(name, service, data);
}

void Offload::unregister_polling_service(PollingService service, void* data) {
    state_->places().remove_service(service, data);
}

std::string Offload::engine() const {
    return state_->engine.name;
}

CpuSet Offload::cpus() const {
    return state_->cpus();
}

CpuSet kernel_cpus() {
    if (Crew* const crew = Crew::here(); crew != nullptr) {
        crew->resize();
        return crew->cpus();
    }
    const TaskFrame* const frame = current_frame();
    if (frame == nullptr || frame->runtime->of_kernels == nullptr) return {};
    return frame->runtime->provider->usable();
}

Runtime& kernel_runtime() {
    const TaskFrame* const frame = current_frame();
    if (frame == nullptr || frame->runtime->of_kernels == nullptr)
        throw Error(ErrorCode::kInvalidArgument,
                    "only kernels that are tasks have a runtime: those of native, and of engines without "
                    "kernels of their own");
    return *frame->runtime->of_kernels;
}

}  // namespace heddle
