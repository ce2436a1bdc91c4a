// What a simulated client of the arbiter knows and does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "arbiter/arbiter.hpp"
#include "cores/protocol.h"

namespace heddle::test {

struct SimulatedClient {
    CpuSet told;     // its grant as last published
    CpuSet running;  // where its threads are: may include CPUs it was asked to leave
    uint32_t epoch = 0;
    std::optional<Time> lacks_since;
    bool has_turn = false;
    bool stopped = false;
    bool lied = false;  // said that it left where it had not
    int demand = 0;
    int max = 0, weight = 1;
    uint32_t pid = 0;
    UserId user = 0;
    Reservation reserved;
    CpuSet allowed;
    bool hands_over = false;
    std::map<int, std::vector<uint64_t>> successor;  // words of its grant page, by CPU: all of this grant,
                                                     // since a release under way may have read any of them
    std::map<int, uint64_t> lender;                  // the words of its grant page
    std::map<int, uint64_t> release;                 // the words of its client page
    std::map<int, uint64_t> taken;                   // handed to it, and not confirmed by the arbiter yet

    [[nodiscard]] uint32_t generation(int cpu) const {
        const auto place = successor.find(cpu);
        return place == successor.end() ? 0 : heddle_word_generation(place->second.back());
    }
    [[nodiscard]] bool released(int cpu) const {
        const auto place = release.find(cpu);
        return place != release.end() && heddle_word_generation(place->second) == generation(cpu) &&
               heddle_word_client(place->second) != HEDDLE_HELD;
    }
};

}  // namespace heddle::test
