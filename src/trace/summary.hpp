// Summary: the accounts of a trace in core-seconds: used, lent, idle, waited, for each client and in all.
//
// Pure functions over a Timeline. One core-second is one CPU (hardware thread) for one second.
#pragma once

#include <vector>

#include "trace/timeline.hpp"

namespace heddle::trace {

struct Account {
    double used_s = 0;      ///< CPUs it used, whoever owns them
    double borrowed_s = 0;  ///< the part of used_s on CPUs that another client owns
    double lent_s = 0;      ///< CPUs it owns while another client used them
    double idle_s = 0;      ///< CPUs it owns while nobody used them
    double waited_s = 0;    ///< CPUs it had asked for and was not given
};

struct Summary {
    double elapsed_s = 0;
    double capacity_s = 0;  ///< elapsed time x CPUs = used + idle
    double used_s = 0;
    double idle_s = 0;
    double lent_s = 0;
    std::vector<Account> clients;  ///< as Timeline::clients
};

[[nodiscard]] Summary summary(const Timeline& timeline);

/// All work of one name, of all clients.
struct WorkAccount {
    std::string name;
    int64_t ended = 0;     ///< pieces that did not end with a pause: tasks
    double run_s = 0;      ///< without what nests in it
    double longest_s = 0;  ///< a piece, the same way
    int64_t pauses = 0;
    double paused_s = 0;  ///< from each pause until the task went on, and waits of the thread inside
};
/// By run_s, the largest first. What a thread waits outside of work is in none.
[[nodiscard]] std::vector<WorkAccount> work_summary(const Timeline& timeline);

/// The unit that suits accounts of this size.
struct AccountUnit {
    double seconds = 1;
    const char* name = "core-s";
};
[[nodiscard]] AccountUnit account_unit(double seconds);

/// "12.3 core-s", "450 core-ms", with three significant digits.
[[nodiscard]] std::string core_seconds(double seconds);

}  // namespace heddle::trace
