#include "tasks/task_log.hpp"

#include <sched.h>

#include "base/clock.hpp"

namespace heddle {
namespace {

int64_t now_ns() noexcept {
    return SteadyClock().now().time_since_epoch().count();
}

}  // namespace

TracedTask::TracedTask(trace::WorkLog& log, const char* engine, const char* name) noexcept
    : log_(log), engine_(engine), name_(name == nullptr ? "task" : name) {
    begin();
}

void TracedTask::begin() noexcept {
    cpu_ = ::sched_getcpu();
    began_ns_ = now_ns();
}

void TracedTask::pause() noexcept {
    if (number_ == 0) number_ = log_.number();
    note(trace::SpanKind::kPaused);
}

void TracedTask::note(trace::SpanKind kind) noexcept {
    log_.note(engine_, {name_, began_ns_, now_ns(), number_, cpu_, kind});
}

TracedWait::TracedWait(trace::WorkLog* log, const char* engine) noexcept : log_(log), engine_(engine) {
    if (log_ != nullptr) began_ns_ = now_ns();
}

TracedWait::~TracedWait() {
    if (log_ != nullptr)
        log_->note(engine_, {"wait", began_ns_, now_ns(), 0, ::sched_getcpu(), trace::SpanKind::kWait});
}

}  // namespace heddle
