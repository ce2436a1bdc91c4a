// DLB's hand-over of a CPU between two processes, to set beside heddle's: from before DLB_LendCpu of its
// owner to the callback that enables it in the other process, which polls (DLB_BorrowCpu) on a core of its
// own, or waits in DLB's asynchronous mode. Asleep it is another end point than ours: nobody has computed on
// that CPU then.
#pragma once

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/spin_pause.hpp"
#include "heddle/error.hpp"
#include "processes.hpp"

namespace heddle::bench {

/// Of dlb.h, DLB 3.
struct Dlb {
    explicit Dlb(const std::string& library) : handle(::dlopen(library.c_str(), RTLD_NOW)) {
        if (handle == nullptr) throw Error(ErrorCode::kUnavailable, ::dlerror());
        load(init, "DLB_Init");
        load(finalize, "DLB_Finalize");
        load(set_callback, "DLB_CallbackSet");
        load(lend_cpu, "DLB_LendCpu");
        load(reclaim_cpu, "DLB_ReclaimCpu");
        load(acquire_cpu, "DLB_AcquireCpu");
        load(borrow_cpu, "DLB_BorrowCpu");
        load(return_all, "DLB_Return");
        load(check_cpu, "DLB_CheckCpuAvailability");
    }
    static constexpr int kSuccess = 0, kEnableCpu = 6;
    void* handle;
    int (*init)(int, const cpu_set_t*, const char*) = nullptr;
    int (*finalize)() = nullptr;
    int (*set_callback)(int, void (*)(), void*) = nullptr;
    int (*lend_cpu)(int) = nullptr;
    int (*reclaim_cpu)(int) = nullptr;
    int (*acquire_cpu)(int) = nullptr;
    int (*borrow_cpu)(int) = nullptr;
    int (*return_all)() = nullptr;
    int (*check_cpu)(int) = nullptr;

  private:
    template <class Function>
    void load(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(::dlsym(handle, name));
        if (function == nullptr) throw Error(ErrorCode::kUnavailable, std::string("libdlb has no ") + name);
    }
};

struct DlbPair {
    static constexpr int kMostSamples = 20'000;
    std::atomic<int> ready{0}, count{0};
    std::atomic<int64_t> released_at{0};
    double microseconds[kMostSamples]{};
};

class DlbSide {
  public:
    DlbSide(const std::string& library, DlbPair& shared, bool asynchronous, int own, const std::string& key)
        : dlb_(library), shared_(shared), own_(own) {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(static_cast<size_t>(own), &mask);
        bind_to(own);
        const std::string options =
            std::string(asynchronous ? "--lewi --mode=async" : "--lewi --mode=polling") +
            " --quiet --shm-key=" + key;
        if (dlb_.init(0, &mask, options.c_str()) != Dlb::kSuccess)
            throw Error(ErrorCode::kUnavailable, "DLB_Init failed");
        shared_.ready.fetch_add(1);
        while (shared_.ready.load() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ~DlbSide() { (void)dlb_.finalize(); }
    DlbSide(const DlbSide&) = delete;
    DlbSide& operator=(const DlbSide&) = delete;

    /// Lends its CPU, and takes it back when the other one has it.
    void lend(int samples) {
        for (int sample = 0; sample < samples; ++sample) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            shared_.released_at.store(now_ns());
            (void)dlb_.lend_cpu(own_);
            wait_until([&] { return shared_.count.load() > sample; });
            (void)dlb_.reclaim_cpu(own_);
            wait_until([&] { return dlb_.check_cpu(own_) == Dlb::kSuccess; });
        }
    }
    void poll(int cpu, int samples) {
        enabled_by(cpu);
        while (shared_.count.load() < samples) {
            if (dlb_.borrow_cpu(cpu) != Dlb::kSuccess) continue;
            wait_until([&] { return dlb_.return_all() == Dlb::kSuccess; });
        }
    }
    /// Requests it again as soon as it has gone back to its owner.
    void wait_for(int cpu, int samples) {
        enabled_by(cpu);
        for (int sample = 0; sample < samples; ++sample) {
            (void)dlb_.acquire_cpu(cpu);
            wait_until([&] {
                std::this_thread::sleep_for(std::chrono::microseconds(100));
                return shared_.count.load() > sample;
            });
        }
    }

  private:
    static int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
    template <class Condition>
    static void wait_until(const Condition& holds) {
        for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5); !holds();
             spin_pause())
            if (std::chrono::steady_clock::now() > end)
                throw Error(ErrorCode::kUnavailable, "the CPU did not change hands within 5 s");
    }
    void enabled_by(int cpu) {
        wanted_ = cpu;
        (void)dlb_.set_callback(Dlb::kEnableCpu, reinterpret_cast<void (*)()>(&DlbSide::is_enabled), this);
    }
    static void is_enabled(int cpu, void* self) {
        const auto& side = *static_cast<DlbSide*>(self);
        const int at = side.shared_.count.load();
        if (cpu != side.wanted_ || at >= DlbPair::kMostSamples) return;
        side.shared_.microseconds[at] = static_cast<double>(now_ns() - side.shared_.released_at.load()) / 1e3;
        side.shared_.count.store(at + 1);
    }

    const Dlb dlb_;
    DlbPair& shared_;
    const int own_;
    int wanted_ = -1;
};

/// Microseconds of so many hand-overs from a process on the CPU `lender` to one on `taker`, by this
/// libdlb.so. Throws kUnavailable where DLB fails.
inline std::vector<double> dlb_handovers(const std::string& library, bool asynchronous, int lender, int taker,
                                         int samples) {
    DlbPair& shared = shared_with_children<DlbPair>();
    const std::string key = "heddle-" + std::to_string(::getpid()) + (asynchronous ? "-a" : "-p");
    in_two_processes([&](int side) {
        DlbSide own(library, shared, asynchronous, side == 0 ? lender : taker, key);
        if (side == 0)
            own.lend(samples);
        else if (asynchronous)
            own.wait_for(lender, samples);
        else
            own.poll(lender, samples);
    });
    return {shared.microseconds, shared.microseconds + shared.count.load()};
}

}  // namespace heddle::bench
