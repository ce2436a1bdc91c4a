#include "offload/exit_gate.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>

namespace heddle {
namespace {

struct Gate {
    std::mutex mutex;
    std::condition_variable nobody;
    int holders = 0;
    std::set<const void*> engines;
};

Gate& gate() {
    static Gate& of_process = *new Gate;  // threads of crews come here after what is destroyed at exit
    return of_process;
}

void wait_at_exit() {
    constexpr auto kLongest = std::chrono::seconds(1);
    Gate& all = gate();
    std::unique_lock lock(all.mutex);
    (void)all.nobody.wait_for(lock, kLongest, [&] { return all.holders == 0; });
}

}  // namespace

void ExitGate::watch(const void* engine) noexcept {
    Gate& all = gate();
    const std::lock_guard guard(all.mutex);
    try {
        if (all.engines.insert(engine).second) (void)std::atexit(wait_at_exit);
    } catch (...) {
        // There is no memory: the end of the process does not wait.
    }
}

void ExitGate::hold_up() noexcept {
    Gate& all = gate();
    const std::lock_guard guard(all.mutex);
    ++all.holders;
}

void ExitGate::let_go() noexcept {
    Gate& all = gate();
    const std::lock_guard guard(all.mutex);
    if (--all.holders == 0) all.nobody.notify_all();
}

}  // namespace heddle
