// Whether the process may have one more thread now, for who would otherwise wait for what nobody runs.
#pragma once

#include <string>
#include <system_error>
#include <thread>

#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"

namespace heddle {

/// Throws kLimit where it may not. Some 20 us.
inline void expect_thread_for(const std::string& what) {
    const SignalsBlocked blocked;
    try {
        std::thread([] {}).join();
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::kLimit, "there can be no thread for " + what + ": " + error.what() +
                                           " (ulimit -u, the cgroup's pids.max)");
    }
}

}  // namespace heddle
