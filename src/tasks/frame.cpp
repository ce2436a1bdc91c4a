#include "tasks/frame.hpp"

#include <utility>

#include "heddle/error.hpp"
#include "tasks/runtime_state.hpp"

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

void begin_wait(const TaskFrame& frame) {
    if (frame.stays) throw Error(ErrorCode::kLimit, frame.runtime->engine->why_no_more_pause());
    if (frame.held != nullptr) frame.held->let_go();
}

}  // namespace heddle
