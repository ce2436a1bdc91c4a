// Arbiter::Client: what the arbiter knows of one client. Internal to the arbiter.
#pragma once

#include "arbiter/arbiter.hpp"

namespace heddle {

struct Arbiter::Client {
    /// CPUs taken out of the grant that the client may still run on.
    struct Leaving {
        CpuSet cpus;
        uint32_t epoch;  ///< the first epoch without them
        Time deadline;
        bool fencing = false;
    };

    ClientId id;
    MemberId member;
    std::string name;
    uint32_t pid;
    uint32_t around = 0;  ///< the process that its job began in; 0: its own
    UserId user;
    int demand;
    bool stopped = false;  ///< as by SIGSTOP; its demand is 0 then
    JobId job;
    Reservation asks;  ///< of its whole job
    int min;           ///< its part of that, and so is `owned`
    int max, weight;
    CpuSet affinity;  ///< as it was when the client came
    CpuSet allowed;   ///< of those, what its groups allow
    int usable = 0;   ///< CPUs of allowed that there are to hand out
    int quota = 0;    ///< of its groups, in CPUs; 0: none
    CpuSet owned;

    bool away = false;  ///< restored after a restart, and not back yet: it keeps what it holds
    /// Says that it holds these, which are kept for others of its user that are away: they may have handed
    /// them over. The first that such a one is back without, or dies with, is its own.
    CpuSet claims;
    bool hands_over = false;
    // Of name_successors() alone: for so many CPUs it may still be named the successor, and for so many of
    // them where the arbiter has asked the holder for the CPU.
    int room = 0, room_for_leaving = 0;
    Gangs gangs;
    bool sits_out = false;  ///< somebody else's turn: it gets no CPU, and none of its threads runs
    bool parked = false;    ///< as last published
    bool has_turn = false;  ///< as last published
    static constexpr long kNoTurns = -1;
    long turns = kNoTurns;  ///< that it has had, by its weight, and those of before it came (turns.cpp)
    uint64_t had_turn = 0;  ///< the number of its last one; 0: none yet

    int target = 0;
    CpuSet granted;
    int held_count = 0;  ///< CPUs in granted: counting them each time is half the cost of a rebalance
    std::vector<Leaving> leaving;
    uint32_t epoch = 0;
    bool grant_changed = true;
    bool noticed_changed = false;

    int peak = 0;
    Time peak_at;

    Nanoseconds cpu_time{0};
    Time accounted_at;

    [[nodiscard]] int held() const { return held_count; }
    [[nodiscard]] CpuSet leaving_cpus() const {
        CpuSet all;
        for (const Leaving& part : leaving) all |= part.cpus;
        return all;
    }
};

}  // namespace heddle
