// Messages of the coherence protocol, between the caching agents of all ranks and the home agents of all
// ranks (docs/COHERENCE.md). From one rank to another they arrive in the order in which they were sent.
#pragma once

#include "heddle/memory_types.hpp"

namespace heddle::memory {

enum class MessageKind : uint8_t {
    // From a caching agent to a home agent.
    kReadRequest,     ///< may I take a copy of the range? With a tag: only if that is its tag
    kWriteRequest,    ///< may I write the range?
    kKnownDead,       ///< of the kWriteDone that follows: this reader is not among those it speaks of
    kWriteDone,       ///< I have
    kWriteGivenUp,    ///< I have not
    kTagRequest,      ///< tell me when all of the range has the tag
    kReadersRequest,  ///< tell me when I may write the range, as far as those go who are still to read it
    kWaitGivenUp,     ///< do not tell me that, nor the tag
    kHasRead,         ///< one of those who are to read the range has
    kReaderDied,      ///< one who was to read the range will not any more
    kDeathIsTold,     ///< a writer of the range knows that this reader has died
    kInvalidated,     ///< no copy that I had is valid any more, and none is on its way
    kUnshare,         ///< I have no copies of the range
    // From a home agent to a caching agent.
    kSlotIs,        ///< of the grant that follows: where its bytes, or some of them, lie or are to lie
    kReadGrant,     ///< you may, from now until you say kInvalidated
    kReadRefused,   ///< its tag is another one by now
    kWriteGrant,    ///< you may: there are no copies, and nobody else reads or writes
    kWriteRefused,  ///< some are still to read it
    kTagReached,
    kReadersGone,
    kDeadReaderIs,  ///< of the kReadersLost that follows
    kReadersLost,   ///< a rank is gone, or a client has died, and with it those who are still to read it
    kInvalidate,    ///< your copies of the range are old
};

struct Message {
    MessageKind kind = MessageKind::kReadRequest;
    Rank from = 0;
    Rank to = 0;
    /// Of the caching agent's access; of kInvalidate and kInvalidated of the home's; of kHasRead and
    /// kReaderDied the client.
    uint64_t access = 0;
    /// Within one piece; of kUnshare what of it lies there.
    GlobalRange range;
    std::optional<Tag> tag = {};
    /// kWriteDone: the writer keeps a copy.
    bool keeps_copy = false;
    /// kWriteDone: how many are to read each byte. kReadGrant and kTagReached: not 0 where some are, who say
    /// kHasRead then. kReadersLost: how many of them have died.
    uint32_t readers = 0;
    /// kWriteRequest and kReadersRequest: how many versions that are still to be read may stay.
    uint32_t retain = 0;
    /// kSlotIs: which slot of the allocation.
    uint32_t slot = 0;
    /// kKnownDead, kDeathIsTold and kDeadReaderIs.
    Rank reader_rank = 0;
    uint32_t reader_client = 0;
    /// kReadGrant: it is, in part, an earlier version, which others are not to find.
    bool earlier = false;
    /// kReadGrant: you may read all of the allocation that lies there, until you say kInvalidated or
    /// kUnshare.
    bool delegates = false;
};

}  // namespace heddle::memory
