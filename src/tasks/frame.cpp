#include "tasks/frame.hpp"

#include <utility>

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

}  // namespace heddle
