// The schedulers of this library, a file each. A new one: a line here and one in schedulers.cpp.
#pragma once

#include <memory>

namespace heddle::devices {

class Scheduler;

[[nodiscard]] std::shared_ptr<Scheduler> make_fcfs();
[[nodiscard]] std::shared_ptr<Scheduler> make_heft();
[[nodiscard]] std::shared_ptr<Scheduler> make_pams();

}  // namespace heddle::devices
