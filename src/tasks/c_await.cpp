// The C interface: waits for a time and for descriptors.
#include "heddle/await.h"

#include "heddle/await.hpp"
#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

Deadline deadline_at(int64_t time_ns) {
    return Deadline(std::chrono::nanoseconds(time_ns));
}
static_assert(Deadline::max().time_since_epoch().count() == HEDDLE_NO_DEADLINE);

using Wait = Readiness (*)(int fd, Deadline deadline);

heddle_task_ret_t wait(Wait wait, int fd, int64_t deadline_ns) {
    Readiness readiness = Readiness::kReady;
    const heddle_task_ret_t result = guarded([&] { readiness = wait(fd, deadline_at(deadline_ns)); });
    return result == HEDDLE_TASK_SUCCESS && readiness == Readiness::kTimeout ? HEDDLE_TASK_TIMEOUT : result;
}

}  // namespace
}  // namespace heddle::c

using namespace heddle::c;

heddle_task_ret_t heddle_sleep_for(int64_t duration_ns) {
    return guarded([&] { heddle::sleep_for(std::chrono::nanoseconds(duration_ns)); });
}

heddle_task_ret_t heddle_sleep_until(int64_t time_ns) {
    return guarded([&] { heddle::sleep_until(deadline_at(time_ns)); });
}

heddle_task_ret_t heddle_wait_readable(int fd, int64_t deadline_ns) {
    return wait(&heddle::wait_readable, fd, deadline_ns);
}

heddle_task_ret_t heddle_wait_writable(int fd, int64_t deadline_ns) {
    return wait(&heddle::wait_writable, fd, deadline_ns);
}
