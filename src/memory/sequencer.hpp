// Sequencer: creates and deletes segments and allocations on all ranks, in one order.
//
// Rank 0 has it. A pure state machine: requests and answers in, commands and replies out. One change at a
// time: every rank applies it, and only then does who asked for it hear of it. What fails on one rank is
// undone on all.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "memory/placement.hpp"

namespace heddle::memory {

/// A change, as one rank applies it.
struct Command {
    enum class Kind : uint8_t {
        kCreateSegment,  ///< each rank makes its part, and says how the others reach it
        kAttachSegment,  ///< each rank gets to know how to reach all parts
        kSealSegment,    ///< all ranks have reached all parts
        kDropSegment,    ///< also where it is not whole
        kAllocate,
        kFree,
        kReserveVersions,  ///< `size` slots for an allocation
    };
    Kind kind = Kind::kCreateSegment;
    uint64_t id = 0;
    /// Of a segment: of which kind, with which options, and how many bytes each rank has.
    std::string segment_kind = {};
    std::map<std::string, std::string> options = {};
    std::vector<uint64_t> part_sizes = {};
    std::vector<std::string> contacts = {};
    /// Of an allocation.
    uint64_t segment = 0;
    uint64_t size = 0;
    Placement placement = {};
    /// Ranks on which nothing can lie any more.
    std::vector<Rank> gone = {};
};

/// How it ended: an empty text is well.
struct Ending {
    std::string error = {};
    int code = 0;
    /// Where it is one of MemoryError.
    int memory_code = -1;
    /// Of kCreateSegment.
    std::string contact = {};
};

class Sequencer {
  public:
    struct Reply {
        Rank to = 0;
        uint64_t request = 0;
        uint64_t id = 0;
        Ending ending;
    };
    struct Output {
        /// For every rank, this one too.
        std::vector<std::pair<uint64_t, Command>> commands;
        std::vector<Reply> replies;
    };

    explicit Sequencer(Rank ranks);

    void request(Rank from, uint64_t request, Command command, Output& output);
    void applied(Rank from, uint64_t number, const Ending& ending, Output& output);
    /// It answers no more: no segment can be made any more, which all ranks would have a part of, and no
    /// allocation lies on it.
    void lost(Rank rank, Output& output);
    /// The command could not be sent, and no rank has got it.
    void undeliverable(uint64_t number, Ending why, Output& output);

  private:
    struct Request {
        Rank from;
        uint64_t number;
        Command command;
    };
    void begin(Output& output);
    /// The change that is at work is over.
    void reply(Output& output);
    void send(Output& output);
    void all_applied(Output& output);

    std::set<Rank> ranks_;
    std::vector<Rank> gone_;
    std::deque<Request> queue_;  // the first one is at work
    std::set<Rank> awaited_;
    std::vector<std::string> contacts_;
    Ending failed_;
    uint64_t last_number_ = 0;
    uint64_t last_id_ = 0;
};

}  // namespace heddle::memory
