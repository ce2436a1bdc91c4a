#include "engines/tbb/allowed_threads.hpp"

#include <oneapi/tbb/global_control.h>

#include <memory>
#include <mutex>

#include "engines/forked.hpp"

namespace heddle {
namespace {

using Control = tbb::global_control;

/// Of the process.
struct Limit {
    std::mutex mutex;
    size_t workers = 0;  // that all of them need
    std::unique_ptr<Control> control;
    size_t set = 0;      // by the control
    size_t without = 0;  // what oneTBB allows where there is none
    bool over = false;   // the process ends

    void adjust() {
        if (over) return;
        if (control == nullptr) without = Control::active_value(Control::max_allowed_parallelism);
        const size_t most = workers == 0 ? 0 : workers + 1;
        if (most <= without) return control.reset();
        if (control != nullptr && most == set) return;
        // The new one is there before the old one goes: threads that stay are not sent away in between.
        control = std::make_unique<Control>(Control::max_allowed_parallelism, most);
        set = most;
    }
};

/// Destroyed at exit just before what oneTBB has for its limits, which was made earlier.
struct Exit {
    explicit Exit(Limit& of_process) : limit(of_process) {}
    ~Exit() {
        const std::lock_guard guard(limit.mutex);
        limit.over = true;
    }
    Limit& limit;
};

Limit& limit() {
    static Limit& of_process = *new Limit;  // engines may end after what is destroyed at exit
    static const Exit exit(of_process);
    return of_process;
}

}  // namespace

AllowedThreads::AllowedThreads(size_t workers) : workers_(workers) {
    LibraryThreads::begin();  // whoever uses oneTBB passes here
    Limit& all = limit();
    const std::lock_guard guard(all.mutex);
    all.workers += workers_;
    try {
        all.adjust();
    } catch (...) {
        all.workers -= workers_;
        throw;
    }
}

AllowedThreads::~AllowedThreads() {
    Limit& all = limit();
    const std::lock_guard guard(all.mutex);
    all.workers -= workers_;
    try {
        all.adjust();
    } catch (...) {
        // There is no memory for a lower limit: the one that is there allows more than is needed.
    }
}

}  // namespace heddle
