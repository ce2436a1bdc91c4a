// The threads of a memory server: none of the program's signals come to them.
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"

namespace heddle::memory {

/// Throws kSystem where there can be no thread.
template <class Run>
[[nodiscard]] std::thread service_thread(Run run) {
    const SignalsBlocked blocked;
    try {
        return std::thread(std::move(run));
    } catch (const std::system_error& error) {
        throw Error(
            ErrorCode::kSystem,
            fmt::format("a memory server can have no thread for its work: {}. Let fewer run, or raise "
                        "the limit of processes (ulimit -u)",
                        error.what()));
    }
}

}  // namespace heddle::memory
