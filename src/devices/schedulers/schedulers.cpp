#include "devices/schedulers/schedulers.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "heddle/device.hpp"

namespace heddle::devices {
namespace {

struct Known {
    const char* name;
    std::shared_ptr<Scheduler> (*make)();
};
constexpr std::array kKnown{Known{"fcfs", make_fcfs}, Known{"heft", make_heft}, Known{"pams", make_pams}};

}  // namespace

std::shared_ptr<Scheduler> make_scheduler(const std::string& name) {
    std::string names;
    for (const Known& known : kKnown) {
        if (name == known.name) return known.make();
        names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no scheduler \"{}\" of devices: heddle knows {}", name, names));
}

void Scheduler::submitted(std::span<const TaskPointer>, std::span<const Device* const>) {}
void Scheduler::dropped(const TaskPointer&) {}

}  // namespace heddle::devices
