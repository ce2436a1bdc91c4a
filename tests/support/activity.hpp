// Activity: what a process has done so far, as the kernel counts it: how often its threads were on a CPU, and
// for how long.
//
// Reads /proc; any thread. A process in which nothing happens has the same Activity later.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

namespace heddle::test {

struct Activity {
    int threads = 0;
    long switches = 0;  ///< context switches, voluntary or not: one for each time a thread woke up
    long cpu_ns = 0;
    friend bool operator==(const Activity&, const Activity&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Activity& a) {
        return out << a.threads << " threads, " << a.switches << " switches, " << a.cpu_ns << " ns";
    }
};

/// Of all threads of a process, but for one.
inline Activity activity_of(pid_t pid, pid_t but_for = 0) {
    Activity sum;
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        if (task.path().filename() == std::to_string(but_for)) continue;
        ++sum.threads;
        std::ifstream status(task.path() / "status");
        for (std::string word; status >> word;) {
            long count = 0;
            if (word.ends_with("voluntary_ctxt_switches:") && status >> count) sum.switches += count;
        }
        std::ifstream schedule(task.path() / "schedstat");
        long on_cpu_ns = 0;
        schedule >> on_cpu_ns;
        sum.cpu_ns += on_cpu_ns;
    }
    return sum;
}

}  // namespace heddle::test
