#include "base/forks.hpp"

#include <pthread.h>

#include <atomic>

namespace heddle {
namespace {

/// Written in a child before it has a second thread.
std::atomic<unsigned> count{0};

}  // namespace

unsigned forks() noexcept {
    static const int installed =
        ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
    (void)installed;  // without memory for it forks are not seen
    return count.load(std::memory_order_relaxed);
}

}  // namespace heddle
