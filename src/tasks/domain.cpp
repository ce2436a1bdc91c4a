#include <mutex>
#include <utility>

#include "tasks/graph.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {

/// One after the other: each is the last to hold the one above it, and there may be any number.
Domain::~Domain() {
    std::shared_ptr<SequenceState> last = std::move(parent_);
    while (last != nullptr && last.use_count() == 1 && last->domain.use_count() == 1) {
        std::shared_ptr<SequenceState> above = std::move(last->domain->parent_);
        last = std::move(above);
    }
}

std::shared_ptr<SequenceState> Domain::parent() const noexcept {
    const std::lock_guard guard(parent_lock_);
    return parent_;
}

void Domain::set_parent(std::shared_ptr<SequenceState> parent) noexcept {
    // The one before goes outside of the lock.
    const std::lock_guard guard(parent_lock_);
    parent_.swap(parent);
}

void Domain::leave_ended_parents() noexcept {
    for (auto above = parent(); above != nullptr && above->is_over(); above = parent()) {
        if (above->domain->is_root()) return;
        set_parent(above->domain->parent());
    }
}

}  // namespace heddle
