#include "machine_load.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace heddle::bench {
namespace {

constexpr Nanoseconds kLook = std::chrono::milliseconds(100);  // ten ticks of /proc/stat
constexpr double kQuiet = 0.1;

}  // namespace

MachineLoad::Reading MachineLoad::read() const {
    // cpu user nice system idle iowait irq softirq steal ...; guests are counted in user already
    std::ifstream file(stat_);
    std::string word;
    file >> word;
    const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    Reading reading;
    double ticks = 0;
    for (int field = 0; field < 8 && file >> ticks; ++field) {
        const bool idle = field == 3 || field == 4;
        reading.all_s += ticks * tick_s;
        if (!idle) reading.busy_s += ticks * tick_s;
    }
    return reading;
}

void MachineLoad::wait_for_quiet() {
    while (patience_ > Nanoseconds::zero()) {
        const Reading before = read();
        std::this_thread::sleep_for(kLook);
        const Reading after = read();
        if (after.busy_s - before.busy_s <= kQuiet * (after.all_s - before.all_s)) return;
        patience_ -= kLook;
    }
}

void MachineLoad::run_begins() {
    begin_ = read();
}

void MachineLoad::run_ended(double own_cpu_s) {
    const Reading end = read();
    others_s_ += end.busy_s - begin_.busy_s - own_cpu_s;
    all_s_ += end.all_s - begin_.all_s;
}

double MachineLoad::take_others_share() {
    const double share = all_s_ > 0 ? std::max(0.0, others_s_ / all_s_) : 0;
    others_s_ = 0;
    all_s_ = 0;
    return share;
}

}  // namespace heddle::bench
