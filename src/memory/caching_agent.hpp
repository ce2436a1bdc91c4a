// CachingAgent: the operations of the clients of one rank, and its caches (docs/COHERENCE.md).
//
// A pure state machine: operations, messages and ends of transfers in; messages, transfers and results out.
// One thread at a time. What misses takes three steps: room in the cache, the consent of each home, one after
// the other in ascending order, and the transfer. So no two accesses wait for each other in a circle.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "memory/atlas.hpp"
#include "memory/byte_intervals.hpp"
#include "memory/cache.hpp"
#include "memory/local_ranges.hpp"
#include "memory/message.hpp"
#include "memory/range_table.hpp"
#include "memory/recycled.hpp"
#include "memory/transfer.hpp"

namespace heddle::memory {

/// Names an operation that has not ended at once; the server chooses it.
using Ticket = uint64_t;

struct Completion {
    /// What an operation ended with: any other error, too.
    using Outcome = std::variant<OperationResult, MemoryError, std::exception_ptr>;
    Ticket ticket = 0;
    Outcome result;
};

/// What became of an operation that has not ended, for traces.
struct Note {
    enum class What : uint8_t {
        kMisses,           ///< it is to be fetched
        kEvicts,           ///< copies had to go for it
        kWaitsForConsent,  ///< of the home `rank`
        kWaitsForTag,
        kWaitsForReaders,
        kWaitsForPut,   ///< an earlier one of this rank, which has readers
        kWaitsForCopy,  ///< that is under way for somebody else
        kMoves,         ///< its bytes, by the transfer of `access`
    };
    Ticket ticket = 0;
    What what = What::kMisses;
    Rank rank = 0;
    uint64_t access = 0;
};

/// A get, of whatever kind.
struct Get {
    ClientId client = 0;
    Ticket ticket = 0;
    GlobalRange global;
    CacheId cache;
    std::optional<Tag> tag = {};
    bool prefer_direct = false;
    bool writable = false;
    bool exclusive = false;
    bool given_up = false;  ///< it is not to begin to wait for a tag or for readers
};

struct Actions {
    std::vector<Message> messages;
    std::vector<Transfer> transfers;
    std::vector<Completion> completions;
    std::vector<Note> notes;  ///< where it is to note

    [[nodiscard]] bool empty() const noexcept {
        return messages.empty() && transfers.empty() && completions.empty();
    }
    void clear() noexcept {
        messages.clear();
        transfers.clear();
        completions.clear();
        notes.clear();
    }
};

/// A client that is gone, and how much of it.
struct LeavingClient {
    ClientId client;
    bool died = false;  ///< it did not leave in order, so that who waits for it to read is told
    size_t place = 0;   ///< of local ranges, below which it holds none
};

class HomeAgent;

class CachingAgent {
  public:
    CachingAgent(Rank self, const Atlas& atlas);
    ~CachingAgent();
    CachingAgent(const CachingAgent&) = delete;
    CachingAgent& operator=(const CachingAgent&) = delete;

    /// `payload` has `size` bytes, and stays until the cache is removed. `listings` as Cache's.
    void add_cache(CacheId id, uint64_t size, std::byte* payload, CopyListings* listings = nullptr);
    /// Throws kInvalidArgument where something in it is in use.
    void remove_cache(CacheId id, Actions& actions);
    /// This rank's part of a segment, where it has an address.
    void add_part(SegmentId id, std::byte* part) { parts_[id] = part; }
    void remove_part(SegmentId id) { parts_.erase(id); }

    /// The result, where there is one at once; else it comes later, with the ticket. Throws what the
    /// operation ends with at once; but for copies that had to go nothing has happened then.
    [[nodiscard]] std::optional<OperationResult> start(ClientId client, Ticket ticket,
                                                       const Operation& operation, Actions& actions);
    /// From now on it asks this rank's home agent itself, where that comes to the same as a message: nothing
    /// may be on its way between them. Null: it sends messages alone, as in the beginning.
    void meet(const HomeAgent* home) noexcept { home_here_ = home; }
    /// From now on it notes what becomes of operations.
    void take_notes() noexcept { notes_ = true; }
    void handle(const Message& message, Actions& actions);
    /// A transfer ended; `error` is empty where it went well.
    void transferred(uint64_t access, const std::string& error, Actions& actions);
    /// What a client of another process has pinned by itself is held for it. Throws kUnknown.
    [[nodiscard]] LocalRange hold_pinned(ClientId client, CacheId id, Pin pin);
    /// Memory of a client, from which it can put.
    [[nodiscard]] LocalRange hold_memory(ClientId client, const std::byte* memory, uint64_t size);
    /// Where a put of it has failed.
    void drop_memory(const LocalRange& memory) noexcept;
    /// Whether the client is one of those who are to read what is put there. Throws kUnknown, kOutside.
    void register_reader(ClientId client, const GlobalRange& global, bool reads);
    /// In how many pieces lies what the client has read, where that is counted, or has registered for.
    [[nodiscard]] size_t registrations(ClientId client) const;
    /// An operation that waits for a tag or for readers ends as cancelled, and so does one that would begin
    /// to.
    void give_up(ClientId client, Ticket ticket, Actions& actions);
    /// What the client holds is released, what it waits for is given up; its puts go on. So many steps of it
    /// at once, so that others have their turn between them; true: there is more to do.
    [[nodiscard]] bool drop_client(LeavingClient& leaving, size_t most, Actions& actions);

    /// What waits for that home, or will, fails.
    void lost(Rank rank, Actions& actions);
    /// The allocation is gone, and all copies of it: what waits for it fails. Before it goes from the atlas.
    void forget(DataId data, Actions& actions);

    /// Bytes are being moved between the allocation and this rank, also where it has been forgotten.
    [[nodiscard]] bool is_moving(DataId data) const;

    /// Throws kUnknown.
    [[nodiscard]] CacheStatistics statistics(CacheId id);
    /// Of all.
    [[nodiscard]] std::vector<Counters::OfCache> statistics();
    /// There is a valid copy of all of it in that cache; 0: in any.
    [[nodiscard]] bool has_copy(const GlobalRange& range, CacheId in) const;
    /// There are valid copies of some bytes of it.
    [[nodiscard]] bool has_part_of(const GlobalRange& range) const;
    /// Its home, on another rank, has delegated it to this one: it need not be asked.
    [[nodiscard]] bool is_delegated(const Piece& piece) const;
    /// It can be got directly.
    [[nodiscard]] bool is_here(const GlobalRange& range) const { return here(range).has_value(); }
    [[nodiscard]] size_t held_ranges() const noexcept { return held_.count(); }
    /// How many pieces of the cache are in use. Throws kUnknown.
    [[nodiscard]] size_t in_use(CacheId id) { return cache(id).cache.pinned(); }
    /// As LocalRanges::find().
    [[nodiscard]] const HeldRange& held(ClientId client, const LocalRange& local) {
        return held_.find(local, client);
    }
    /// Under way; an exclusive range is one until it is put or released.
    [[nodiscard]] size_t operations() const noexcept { return accesses_.size(); }
    [[nodiscard]] bool idle() const noexcept { return accesses_.empty(); }

  private:
    struct CacheState {
        CacheState(uint64_t size, std::byte* memory, CopyListings* listings)
            : cache(size, listings), payload(memory) {}
        Cache cache;
        std::byte* payload;
        CacheStatistics counters = {};
    };
    using Result = std::optional<OperationResult>;
    [[nodiscard]] Result allocate(ClientId client, Ticket ticket, const op::Allocate& wanted,
                                  Actions& actions);
    [[nodiscard]] Result release(ClientId client, const op::Release& wanted, Actions& actions);
    [[nodiscard]] Result get(const Get& wanted, Actions& actions);
    [[nodiscard]] Result put(ClientId client, Ticket ticket, const op::Put& wanted, Actions& actions);

    /// `reads`: its homes want to know when it has been read.
    [[nodiscard]] Result get_direct(const Get& wanted, bool reads);
    /// Without asking anybody: at once, or when what is under way here has ended. False: it has to be
    /// fetched.
    [[nodiscard]] bool get_here(const Get& wanted, CacheState& state, Result& result, Actions& actions);
    /// The copy, which nobody uses, becomes the getter's own: where there is no room for another. Nothing:
    /// somebody uses it now, and it is not found any more.
    [[nodiscard]] Result take_over(const Get& wanted, CacheEntry& copy, CacheState& state, Actions& actions);
    void copy_within(const Get& wanted, CacheEntry& from, CacheState& state, Actions& actions);
    /// Room for the copy, and the first question to the first home.
    void fetch(Access& access, CacheState& state, Actions& actions);

    /// Where all of a range lies in this rank's part of its segment, if that has an address.
    struct Here {
        std::byte* part;
        uint64_t offset;
    };
    [[nodiscard]] std::optional<Here> here(const GlobalRange& range) const;
    [[nodiscard]] CacheState& cache(CacheId id);
    [[nodiscard]] CacheEntry& reserve(CacheState& state, CacheId id, uint64_t size, Ticket ticket,
                                      Actions& actions);
    void note(Ticket ticket, Note::What what, Actions& actions, Rank rank = 0, uint64_t access = 0) const {
        if (notes_) actions.notes.push_back({ticket, what, rank, access});
    }
    /// Of the operation that it was begun for.
    void note(const Access& access, Note::What what, Actions& actions, Rank rank = 0) const;
    Access& new_access(const GlobalRange& global);
    void remove_access(uint64_t id);
    /// Who waits for the access, and how it is told what came of that.
    void join(Access& access, const Get& waiter);
    void tell(const Get& waiter, Completion::Outcome outcome, Actions& actions);
    void ask_for_tags(Access& access, Actions& actions);
    void tag_reached(Access& access, Actions& actions);
    /// Its tag was there, and is gone: what was granted is given back, and it waits again.
    void refused(Access& access, Actions& actions);
    // Puts that wait for readers: readers.cpp.
    /// Some are still to read what it would write: what was granted is given back, and it waits.
    void wait_for_readers(Access& access, Actions& actions);
    void readers_gone(Access& access, Actions& actions);
    /// Writes behind it wait for it.
    void keep_order(Access& access);
    /// It waits for an earlier write of this rank, if there is one that it has to wait for.
    [[nodiscard]] bool goes_behind_another(Access& access);
    /// The access is over: what was behind it goes on.
    void end(uint64_t access, Actions& actions);
    void tell_read(ClientId client, const GlobalRange& global, Tag tag, Actions& actions);
    void tell_reader_died(ClientId client, Actions& actions);
    /// Homes hear of a death at different times: a writer is told of it once.
    void note_dead_reader(const Message& message, Actions& actions);
    void readers_lost(Access& access, const Message& message, Actions& actions);
    /// Of those who were not counted any more in a put: to a home that may not have heard of them.
    void tell_known_dead(const Access& access, const Piece& piece, Actions& actions) const;
    /// Of all accesses, so that each may end while others are looked at.
    [[nodiscard]] std::vector<uint64_t> access_ids() const;

    /// Asks the next home, or moves the bytes.
    void go_on(Access& access, Actions& actions);
    /// It lies on this rank, whose home agent grants the read without a message.
    [[nodiscard]] bool is_granted_here(const Piece& piece, const Actions& actions) const;
    /// Where the bytes of a piece are, or are to be.
    void add_parts(Access& access, const Piece& piece) const;
    void end_copy_within(Access& access, Actions& actions);
    void end_get(Access& access, const std::string& error, Actions& actions);
    void end_put(Access& access, const std::string& error, Actions& actions);
    /// What a put was to release is held again where it has failed.
    void end_source(const Access& access, bool released, Actions& actions);
    /// Where all of a private range was put and nobody holds it any more it stays as a copy.
    [[nodiscard]] bool keep_as_copy(Access& access);
    /// Tells the homes that have granted it that it is over, and which bytes were written, if any.
    void end_writing(Access& access, const Range& written, bool keeps_copy, Actions& actions) const;
    void invalidate(const Message& message, Actions& actions);
    /// The copy is not looked for any more: answers that waited for that go out.
    void let_go(Access& access, Actions& actions) const;
    /// Of reads_.
    template <class Function>
    void for_each_read(const GlobalRange& global, Function function);
    /// There is, or is on its way, a copy of a part of the range.
    [[nodiscard]] bool has_copy_of_any(const GlobalRange& global);
    /// Tells the homes of what there is no copy of any more.
    void unshare(const GlobalRange& global, Actions& actions);
    /// That home has granted the access with all that it has of the allocation.
    void take_delegation(const Access& access, Rank home);
    /// The home is to be asked again for all of which there is no copy, nor one on its way.
    void give_back_delegation(DataId data, Rank home, Actions& actions);
    /// No more than are given back around. Those on their way may count twice.
    [[nodiscard]] bool has_few_copies(DataId data);
    /// Without those of which there are copies, or copies are on their way.
    void leave_out_copies(const GlobalRange& global, ByteSet& bytes);
    void send_gone(const GlobalRange& global, Rank home, Actions& actions);
    /// There is no copy of that piece any more.
    void tell_gone(const Piece& piece, Actions& actions);
    /// Fails with everything that waits for it.
    void fail(Access& access, const MemoryError& error, Actions& actions);
    /// The access waits for a home that is gone.
    [[nodiscard]] bool is_stuck(const Access& access) const;
    /// One whose bytes are not being moved yet.
    void fail_waiting(Access& access, const std::string& why, Actions& actions);
    [[nodiscard]] OperationResult hold(const Get& wanted, CacheState& state, CacheEntry& entry,
                                       const Range& range, Access* exclusive);
    /// Of no entry yet.
    [[nodiscard]] LocalRange hold(const Get& wanted, std::byte* base, const Range& range, CacheId cache,
                                  HeldRange*& held);
    void give_up_waiting(Access& access, Actions& actions);
    /// Those that are not to wait, of an access that is about to, or does.
    void cancel_given_up(Access& access, Actions& actions);
    void release_held(const LocalRange& local, const HeldRange& held, Actions& actions);
    void send(MessageKind kind, const Access& access, const Piece& piece, Actions& actions) const;

    Rank self_;
    const Atlas& atlas_;
    const HomeAgent* home_here_ = nullptr;
    std::map<CacheId, CacheState> caches_;
    std::map<SegmentId, std::byte*> parts_;
    LocalRanges held_;
    std::map<uint64_t, std::unique_ptr<Access>, std::less<>,
             Recycled<std::pair<const uint64_t, std::unique_ptr<Access>>>>
        accesses_;
    std::vector<std::unique_ptr<Access>> spare_accesses_;
    /// What waits for which access, by its client.
    using Waiting = std::pair<ClientId, Ticket>;
    std::map<Waiting, Access*, std::less<>, Recycled<std::pair<const Waiting, Access*>>> waiting_;
    /// Those that have room for a copy and have not got all of it; their allocation is the kind.
    RangeTable<Access*> reads_;
    /// What homes on other ranks have granted of an allocation beside copies.
    std::map<std::pair<DataId, Rank>, ByteSet> delegations_;
    RangeTable<Access*>
        ordered_;  ///< writes that are held back or have readers; their allocation is the kind
    uint64_t last_access_ = 0;
    std::set<Rank> lost_;
    bool notes_ = false;
    std::vector<GlobalRange> evicted_;  // of reserve(), empty outside of it
    /// What clients read where that is counted, or have said that they will.
    std::map<ClientId, std::map<DataId, ByteSet>> readers_;
    /// Readers of whose death writers of this rank have been told: by which homes, and writers of which
    /// bytes.
    struct DeadReader {
        std::set<Rank> told_by;
        ByteSet told_of;
    };
    std::map<DataId, std::map<std::pair<Rank, ClientId>, DeadReader>> dead_readers_;
};

}  // namespace heddle::memory
