// Waiting for what another process does, in a test: looked at every millisecond, up to a limit.
//
// The limit only ends a test that would hang, so it is far above what a machine stands still that others use
// too. How soon something happens is what the campaigns measure against the machine itself, and bench/.
#pragma once

#include <chrono>
#include <thread>

namespace heddle::test {

template <class Condition>
bool becomes_true(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace heddle::test
