// What a task of StarPU's uses.
#pragma once

#include <starpu.h>

#include <cstdlib>
#include <new>

namespace heddle {

struct StarPuAccess {
    starpu_data_handle_t handle;
    starpu_data_access_mode mode;
};

/// Of each of `uses` what `access_of` makes of it. Throws std::bad_alloc, and has destroyed the task then.
template <class Uses, class AccessOf>
void set_accesses(starpu_task& job, const Uses& uses, const AccessOf& access_of) {
    job.nbuffers = static_cast<int>(uses.size());
    starpu_data_handle_t* handles = job.handles;
    starpu_data_access_mode* modes = job.modes;
    if (uses.size() > STARPU_NMAXBUFS) {
        // StarPU frees them with the task.
        handles = job.dyn_handles =
            static_cast<starpu_data_handle_t*>(std::calloc(uses.size(), sizeof(*handles)));
        modes = job.dyn_modes =
            static_cast<starpu_data_access_mode*>(std::calloc(uses.size(), sizeof(*modes)));
        if (handles == nullptr || modes == nullptr) {
            starpu_task_destroy(&job);
            throw std::bad_alloc();
        }
    }
    for (const auto& use : uses) {
        const StarPuAccess access = access_of(use);
        *handles++ = access.handle;
        *modes++ = access.mode;
    }
}

}  // namespace heddle
