#include "tasks/frame.hpp"

#include <utility>

#include "heddle/error.hpp"

namespace heddle {
namespace {

thread_local TaskFrame* innermost [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

TaskFrame* current_frame() noexcept {
    return innermost;
}

TaskFrame* exchange_frame(TaskFrame* frame) noexcept {
    return std::exchange(innermost, frame);
}

void refuse_where_it_stays(const TaskFrame& frame) {
    if (!frame.stays) return;
    throw Error(ErrorCode::kLimit,
                "a task cannot be paused where it is: there is no memory for a stack of its own. Let fewer "
                "tasks be paused at once, or raise the limit of address space (ulimit -v, the cgroup's "
                "memory.max, vm.overcommit_memory).");
}

}  // namespace heddle
