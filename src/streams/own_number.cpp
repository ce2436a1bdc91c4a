#include "streams/own_number.hpp"

#include "tasks/frame.hpp"

namespace heddle::streams {

uintptr_t own_number() {
    if (const TaskFrame* const frame = current_frame()) return reinterpret_cast<uintptr_t>(frame->task);
    static thread_local char own;
    return reinterpret_cast<uintptr_t>(&own);
}

}  // namespace heddle::streams
