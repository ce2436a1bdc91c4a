// Messages of the coherence protocol, between the caching agents of all ranks and the home agents of all
// ranks (docs/COHERENCE.md). From one rank to another they arrive in the order in which they were sent.
#pragma once

#include "heddle/memory_types.hpp"

namespace heddle::memory {

enum class MessageKind : uint8_t {
    // From a caching agent to a home agent.
    kReadRequest,     ///< may I take a copy of the range? With a tag: only if that is its tag
    kWriteRequest,    ///< may I write the range?
    kWriteDone,       ///< I have
    kWriteGivenUp,    ///< I have not
    kTagRequest,      ///< tell me when all of the range has the tag
    kReadersRequest,  ///< tell me when nobody is left who is to read the range before it is written again
    kWaitGivenUp,     ///< do not tell me that, nor the tag
    kHasRead,         ///< one of those who are to read the range has
    kInvalidated,     ///< no copy that I had is valid any more, and none is on its way
    kUnshare,         ///< I have no copies of the range
    // From a home agent to a caching agent.
    kReadGrant,     ///< you may, from now until you say kInvalidated
    kReadRefused,   ///< its tag is another one by now
    kWriteGrant,    ///< you may: there are no copies, and nobody else reads or writes
    kWriteRefused,  ///< some are still to read it
    kTagReached,
    kReadersGone,
    kReadersLost,  ///< a rank is gone, and perhaps with it those who are still to read it
    kInvalidate,   ///< your copies of the range are old
};

struct Message {
    MessageKind kind = MessageKind::kReadRequest;
    Rank from = 0;
    Rank to = 0;
    /// Of the caching agent's access; of kInvalidate and kInvalidated of the home's.
    uint64_t access = 0;
    /// Within one piece.
    GlobalRange range;
    std::optional<Tag> tag = {};
    /// kWriteDone: the writer keeps a copy.
    bool keeps_copy = false;
    /// kWriteDone: how many are to read each byte. kReadGrant and kTagReached: not 0 where some are, who say
    /// kHasRead then.
    uint32_t readers = 0;
};

}  // namespace heddle::memory
