// SavedClients: who holds and who owns what, in a file that outlives the arbiter, so that the next one keeps
// the CPUs of programs that have not come back yet.
//
// The server's, in its thread. The file is mapped and written by plain stores, one place a client, and needs
// no call while nothing changes. The place carries a sequence number, odd while it is written: of one that an
// arbiter was killed half way through the process alone is known, and what it holds is what it says itself.
// The file counts only for the boot in which it was written, and a place only for a process of that pid and
// start time. What is in it was written by this user, as the folder is his; it is bounded all the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "arbiter/reservation.hpp"
#include "base/os.hpp"
#include "cores/protocol.h"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct SavedClient {
    pid_t pid = 0;
    uid_t user = 0;
    uint64_t started = 0;  ///< ProcessStatus::started of the pid
    std::string name;
    CpuSet cpus;
    Reservation reserves = {};
    JobId job = {};
    friend bool operator==(const SavedClient&, const SavedClient&) = default;
};

class SavedClients {
  public:
    static constexpr size_t kPlaces = 512;

    /// Opens or makes the file. Where that is impossible, or `path` is empty, nothing is saved.
    SavedClients(const std::string& path, Os& os);
    ~SavedClients();
    SavedClients(const SavedClients&) = delete;
    SavedClients& operator=(const SavedClients&) = delete;

    /// "" or why nothing is saved.
    [[nodiscard]] const std::string& problem() const { return problem_; }
    /// What the arbiter before this one left, by place; of a client whose only place it was writing when it
    /// died, the process alone. These are used from now on: remove those of clients that are not kept. Once,
    /// before any is added.
    [[nodiscard]] std::map<int, SavedClient> left_behind();
    /// As much of a name as is saved.
    [[nodiscard]] static std::string saved_name(const std::string& name);
    /// A place for the client, or -1 where there is none. The place that it had under the arbiter before, if
    /// any, is removed: one of the two is whole at any time, and only one is found.
    [[nodiscard]] int add(const SavedClient& client, int before = -1);
    /// The client of this place holds these now. Nothing where the place is -1.
    void update(int place, const CpuSet& cpus);
    void remove(int place);

  private:
    void settle_moves();

    struct Header;
    struct Place;
    struct File;

    Os& os_;
    File* file_ = nullptr;
    std::string problem_;
    std::vector<bool> used_ = std::vector<bool>(kPlaces);
};

}  // namespace heddle
