#include "tasks/polling.hpp"

#include <algorithm>
#include <utility>

#include "heddle/error.hpp"
#include "heddle/task.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// Whose service the calling thread is in.
thread_local const PollingServices* here = nullptr;

}  // namespace

bool PollingServices::in_service() noexcept {
    return here != nullptr;
}

void PollingServices::add(const std::string& name, PollingService service, void* data) {
    const std::lock_guard guard(mutex_);
    if (service == nullptr)
        throw Error(ErrorCode::kInvalidArgument, "the polling service " + name + " is null");
    Entry entry{name, service, data, false};
    if (const auto found = std::ranges::find(entries_, entry); found != entries_.end()) {
        // The call that is under way may be its last.
        if (!polling_ || !(under_way_ == entry) || found->again)
            throw Error(ErrorCode::kInvalidArgument,
                        "the polling service " + name + " is registered with these data already");
        found->again = true;
        return;
    }
    entries_.push_back(std::move(entry));
    count_.store(entries_.size(), std::memory_order_release);
}

void PollingServices::remove(PollingService service, void* data) {
    std::unique_lock lock(mutex_);
    const Entry entry{{}, service, data, false};
    if (here == this && under_way_ == entry)
        throw Error(ErrorCode::kInvalidArgument,
                    "a polling service cannot unregister itself while it is called: it returns true instead");
    const auto removed = std::erase(entries_, entry);
    count_.store(entries_.size(), std::memory_order_release);
    const bool running = polling_ && under_way_ == entry;
    called_.wait(lock, [&] { return !(polling_ && under_way_ == entry); });
    if (removed == 0 && !running)
        throw Error(
            ErrorCode::kInvalidArgument,
            "this polling service is not registered with these data: it has returned true, or never was");
}

bool PollingServices::poll() noexcept {
    std::unique_lock lock(mutex_);
    if (polling_) return false;
    polling_ = true;
    bool done = false;
    for (size_t i = 0; i < entries_.size();) {
        under_way_.service = entries_[i].service;
        under_way_.data = entries_[i].data;
        lock.unlock();
        const auto* const outer = std::exchange(here, this);
        const bool finished = under_way_.service(under_way_.data);
        here = outer;
        lock.lock();
        done = done || finished;
        // The list may have changed meanwhile.
        called_.notify_all();
        const auto self = std::ranges::find(entries_, under_way_);
        if (self == entries_.end()) continue;
        i = static_cast<size_t>(self - entries_.begin()) + 1;
        const bool again = std::exchange(self->again, false);
        if (!finished || again) continue;
        entries_.erase(self);
        --i;
        count_.store(entries_.size(), std::memory_order_release);
    }
    polling_ = false;
    called_.notify_all();
    return done;
}

void register_polling_service(Runtime& runtime, const std::string& name, PollingService service, void* data) {
    runtime.state().add_service(name, service, data);
}

void unregister_polling_service(Runtime& runtime, PollingService service, void* data) {
    runtime.state().polling.remove(service, data);
}

}  // namespace heddle
