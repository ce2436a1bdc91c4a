#include "tasks/region_thread.hpp"

#include <pthread.h>

#include <utility>

namespace heddle {
namespace {

std::mutex idle_mutex;
void* idle = nullptr;  // a list of RegionThread::Kept

/// A child that was forked has none of the threads.
void forget_in_children() {
    static const int installed = ::pthread_atfork([] { idle_mutex.lock(); }, [] { idle_mutex.unlock(); },
                                                  [] {
                                                      idle = nullptr;
                                                      idle_mutex.unlock();
                                                  });
    (void)installed;
}

}  // namespace

void RegionThread::Kept::run() {
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return job != nullptr; });
        lock.unlock();
        job();
        lock.lock();
        job = nullptr;
        changed.notify_all();
    }
}

void RegionThread::start(std::function<void()> job, bool keep) {
    if (!keep) {
        own_ = std::thread(std::move(job));
        return;
    }
    forget_in_children();
    {
        const std::lock_guard guard(idle_mutex);
        kept_ = static_cast<Kept*>(idle);
        if (kept_ != nullptr) idle = std::exchange(kept_->next, nullptr);
    }
    if (kept_ == nullptr) {
        auto fresh = std::make_unique<Kept>();
        std::thread(&Kept::run, fresh.get()).detach();
        kept_ = fresh.release();
    }
    const std::lock_guard guard(kept_->mutex);
    kept_->job = std::move(job);
    kept_->changed.notify_all();
}

void RegionThread::join() {
    if (own_.joinable()) own_.join();
    if (kept_ == nullptr) return;
    {
        std::unique_lock lock(kept_->mutex);
        kept_->changed.wait(lock, [this] { return kept_->job == nullptr; });
    }
    const std::lock_guard guard(idle_mutex);
    kept_->next = static_cast<Kept*>(std::exchange(idle, kept_));
    kept_ = nullptr;
}

}  // namespace heddle
