#include "tasks/outer_affinity.hpp"

#include "tasks/crew.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {

void know_outer_affinity() noexcept {
    tell_outer_affinity([]() noexcept -> const CpuSet* {
        if (const TaskFrame* const frame = current_frame(); frame != nullptr)
            return &frame->runtime->makers_affinity;
        const Crew* const crew = Crew::here();
        return crew == nullptr ? nullptr : &crew->makers_affinity();
    });
}

}  // namespace heddle
