// A GuestEngine's polling services: one task of the runtime calls them.
#include <new>

#include "base/full_fence.hpp"
#include "cores/futex.hpp"
#include "engines/guests/guest_engine.hpp"

namespace heddle {

void GuestEngine::services_arrived() {
    if (host_.polling_services().empty() || polling_.exchange(true)) return;
    if (come_again()) return;
    polling_.store(false);
    throw std::bad_alloc();
}

/// False: there is no memory for that, and an exception would end all that the runtime has of this engine.
bool GuestEngine::come_again() noexcept {
    try {
        make_poll();
        return true;
    } catch (...) {
        return false;
    }
}

void GuestEngine::poll() noexcept {
    const auto over = [this] { return host_.polling_services().empty() || stops(); };
    // On top of a task they would be called in its name.
    if (host_.frame() != nullptr && come_again()) return;
    do {
        while (!over()) {
            // One that waits for a CPU may do so for long.
            const bool waits = called();
            PollingPause pause;
            bool last;
            do {
                if (host_.poll()) pause.restart();
                last = pause.longest();
                nap_between_polls(pause.take(), waits);
                // What else the runtime has, for this thread too, has its turn.
            } while (!over() && !called() && !last);
            if (over()) break;
            if (come_again()) return;
            answer_call();
        }
        polling_.store(false, std::memory_order_seq_cst);
        // One may have come meanwhile.
    } while (!over() && !polling_.exchange(true));
}

void GuestEngine::nap_between_polls(Nanoseconds longest, bool called_before) noexcept {
    const uint32_t seen = poll_bell_.load(std::memory_order_relaxed);
    poll_naps_.store(true, std::memory_order_relaxed);
    full_fence();
    if (!stops() && (called_before || !called())) futex_wait(poll_bell_, seen, SteadyClock().now() + longest);
    poll_naps_.store(false, std::memory_order_relaxed);
}

}  // namespace heddle
