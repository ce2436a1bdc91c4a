// ServerState: the thin shell around a Node: its lock, its segments and the memory of its caches, the
// connection with the other ranks, and the thread that moves bytes.
//
// Whoever makes a step of the state machine carries out what follows from it: who waits for an operation
// moves its bytes, and the mover those of operations for which nobody waits. Bytes are moved without the
// lock. The mesh's thread makes steps too, and leaves all that takes long to the mover.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "heddle/memory.hpp"
#include "heddle/pause.hpp"
#include "memory/link_speed.hpp"
#include "memory/memory_region.hpp"
#include "memory/mesh.hpp"
#include "memory/node.hpp"
#include "memory/operation_state.hpp"
#include "memory/operation_trace.hpp"
#include "memory/recycled.hpp"
#include "memory/segment.hpp"
#include "memory/sequencer.hpp"
#include "memory/server_status.hpp"
#include "memory/survey.hpp"
#include "memory/traffic.hpp"
#include "memory/wire.hpp"

namespace heddle::memory {

class ServerState : private Transport::Listener {
  public:
    /// Several ranks speak through `transport`, or without one through a Mesh in the options' folder.
    explicit ServerState(const ServerOptions& options, std::unique_ptr<Transport> transport = nullptr);
    /// There is no client any more.
    ~ServerState() override;
    ServerState(const ServerState&) = delete;
    ServerState& operator=(const ServerState&) = delete;

    /// `name` is for people, and may be empty.
    [[nodiscard]] ClientId add_client(const std::string& name = {});
    /// Which functions of bunches a thread calls that has ended their operations. The mover calls one after
    /// the other, also while one of them waits.
    enum class Functions : uint8_t {
        kOneHere,  ///< where there is one alone, and the mover is another thread
        kHere,
        kByMover,
    };
    /// `died` as CachingAgent's.
    void drop_client(ClientId client, bool died = false, Functions called = Functions::kHere);

    [[nodiscard]] SegmentId create_segment(uint64_t size, const SegmentDescription& description);
    void delete_segment(SegmentId segment);
    [[nodiscard]] DataId allocate(uint64_t size, SegmentId segment, const Placement& placement);
    void free(DataId data);
    /// As Client's.
    void reserve_versions(DataId data, uint32_t count);
    /// Throws kInvalidArgument where not all ranks are known to have the room that the put retains versions
    /// in: one that has not could not read it.
    void check_room(const op::Put& put);
    void register_reader(ClientId client, const GlobalRange& global, bool reads);
    [[nodiscard]] size_t registrations(ClientId client);
    [[nodiscard]] std::vector<uint64_t> free_bytes(SegmentId segment);
    [[nodiscard]] CacheId create_cache(uint64_t size, const CacheOptions& options);
    void delete_cache(CacheId cache);
    /// What a client in another process has of a cache.
    struct AttachedCache {
        CacheId id;
        std::shared_ptr<MemoryRegion> payload;
        /// Its copies, as CopyListing.
        std::shared_ptr<MemoryRegion> listings;
        /// The client's PinPage.
        std::shared_ptr<MemoryRegion> pins;
        /// Of a shareable one what this client may write, as large as the payload; else null.
        std::shared_ptr<MemoryRegion> staging;
    };
    /// As create_cache(), for the client in another process whose it is. Throws kLimit where there is not so
    /// much memory.
    [[nodiscard]] AttachedCache create_client_cache(uint64_t size, const CacheOptions& options);
    /// For one more client in another process. Throws kUnknown where it is none that can be shared, kLimit.
    [[nodiscard]] AttachedCache attach_cache(CacheId cache);
    /// A client of another process goes, and with it what it has pinned: with the last one goes a cache that
    /// was made by one, as soon as nothing in it is in use.
    void detach_cache(CacheId cache, MemoryRegion& pins);
    /// As CachingAgent::hold_pinned().
    [[nodiscard]] LocalRange hold_pinned(ClientId client, CacheId cache, Pin pin);
    /// What a client holds, and is to be within `local`. Throws kUnknown, kOutside.
    [[nodiscard]] HeldRange held(ClientId client, const LocalRange& local);
    [[nodiscard]] ServerStatus status();
    [[nodiscard]] Inventory inventory();
    [[nodiscard]] CacheStatistics statistics(CacheId cache);
    [[nodiscard]] Counters counters();

    /// What they would cost each rank that is there, in ascending order. Throws kUnknown, kOutside.
    [[nodiscard]] std::vector<TransferCost> transfer_costs(std::span<const PlannedTransfer> transfers);
    [[nodiscard]] std::vector<DataLocality> data_locality(std::span<const GlobalRange> ranges);

    [[nodiscard]] OperationResult execute_sync(ClientId client, const Operation& operation);
    /// When it has ended, `state` says so, also where it is refused at once. A thread of the server moves its
    /// bytes.
    void execute(ClientId client, const Operation& operation, const std::shared_ptr<OperationState>& state);
    /// Begins all, and moves their bytes in this thread.
    void execute_here(ClientId client, const std::vector<Operation>& operations,
                      const std::vector<std::shared_ptr<OperationState>>& states);
    [[nodiscard]] bool is_done(const OperationState& state);
    void wait(OperationState& state);
    /// Ends those that wait for a tag.
    void give_up(ClientId client, const std::vector<std::shared_ptr<OperationState>>& states);
    void put_memory(ClientId client, std::span<const std::byte> content, DataId data);

    /// Returns when all ranks have called it as often as this one: what the one rank that gave something
    /// gave.
    [[nodiscard]] std::vector<uint8_t> meet(std::vector<uint8_t> content);

    [[nodiscard]] Rank rank() const noexcept { return node_.rank(); }
    [[nodiscard]] Rank ranks() const noexcept { return ranks_; }

  private:
    using Lock = std::unique_lock<std::mutex>;

    struct SharedListings {
        explicit SharedListings(uint64_t cache_size);
        MemoryRegion memory;
        CopyListings copies;
    };
    struct Payload {
        std::shared_ptr<MemoryRegion> memory;
        bool shareable = false;
        /// Of one that clients of other processes may use.
        std::shared_ptr<SharedListings> listings = {};
        /// How many clients of other processes use it, and whether it goes with the last.
        size_t attached = 0;
        bool goes = false;
    };

    /// Somebody who waits for an answer of rank 0.
    struct Question {
        BlockCondition answered;
        std::atomic<bool> is_answered{false};  // it is, or will be, signalled
        uint64_t id = 0;
        Ending ending;
        std::vector<uint8_t> content;
    };

    /// Somebody who waits for the answers of other ranks.
    struct Survey : Question {
        std::set<Rank> awaited;
        std::map<Rank, SurveyReply> replies;
    };
    using Surveys = std::map<uint64_t, std::shared_ptr<Survey>>;

    /// Lists for one step of the state machine and what follows from it. They keep their room: they are
    /// borrowed for the step, and given back at its end where that has the lock.
    struct Lists {
        Actions actions;
        std::vector<Transfer> moving;
        std::vector<std::pair<SegmentId, std::shared_ptr<Segment>>> used;
        std::vector<std::string> errors;                 // of those that are moving, or none
        std::vector<std::pair<int64_t, int64_t>> times;  // of them, where it is traced

        void forget_moved() noexcept {
            moving.clear();
            used.clear();
            errors.clear();
            times.clear();
        }
    };
    class Step {
      public:
        Step(ServerState& server, Lock& lock);
        ~Step();
        Step(const Step&) = delete;
        Step& operator=(const Step&) = delete;
        [[nodiscard]] Lists& lists() const noexcept { return *lists_; }
        [[nodiscard]] Actions& actions() const noexcept { return lists_->actions; }

      private:
        ServerState& server_;
        Lock& lock_;
        std::unique_ptr<Lists> lists_;
    };

    /// An operation whose bytes the thread that began it moves at once: what it ended with comes here, and
    /// nobody has to be told. Made and destroyed under the lock.
    class OwnMove {
      public:
        OwnMove(ServerState& server, Ticket ticket) : ticket_(ticket), all_(server.own_moves_) {
            all_.push_back(this);
        }
        ~OwnMove() { std::erase(all_, this); }
        OwnMove(const OwnMove&) = delete;
        OwnMove& operator=(const OwnMove&) = delete;
        [[nodiscard]] Ticket ticket() const noexcept { return ticket_; }
        std::optional<Completion::Outcome> outcome;

      private:
        Ticket ticket_;
        std::vector<OwnMove*>& all_;
    };

    void begin(ClientId client, const Operation& operation, const std::shared_ptr<OperationState>& state,
               Actions& actions);
    void trace_start(ClientId client, Ticket ticket, const Operation& operation, bool has_ended,
                     Actions& actions) noexcept;
    void trace_step() noexcept {
        if (trace_) trace_->step();
    }
    void trace_notes(Actions& actions) noexcept;
    void trace_moved(const Lists& lists);
    /// Moves the bytes of `moving`, with the lock open, and says to the node that they are moved.
    void carry_out(Lists& lists, Lock& lock);
    /// The same of the transfers that the step asks for.
    void carry_out_here(Lists& lists, Lock& lock);
    /// Those to one rank as one packet, in their order.
    void send_messages(std::vector<Message>& messages);
    /// Sends messages, leaves transfers to the mover, and tells those whose operations have ended, with the
    /// lock open. Functions of bunches are called last.
    void hand_over(Actions& actions, Lock& lock, Functions called = Functions::kOneHere);
    /// As hand_over(), but the mover tells.
    void leave_to_mover(Actions& actions);
    /// As that, but whoever waits in a thread of its own moves its bytes, and is told by the caller, of
    /// to_wake_.
    void leave_to_waiters(Actions& actions);
    /// `wakes`: those who wait in threads or tasks are left to the caller, in to_wake_.
    void leave(Actions& actions, bool wakes);
    [[nodiscard]] std::vector<std::shared_ptr<OperationState>> end_operations(Actions& actions);
    /// Moves what is to be moved now, and waits for the end of the operation. Opens the lock.
    [[nodiscard]] OperationResult wait_for(Ticket ticket, Lists& lists, Lock& lock);
    void end_mover();
    [[nodiscard]] bool is_mover() const noexcept { return std::this_thread::get_id() == mover_.get_id(); }
    [[nodiscard]] bool mover_has_work() const noexcept {
        return !to_move_.empty() || !to_tell_.empty() || !to_answer_.empty() || !to_apply_.empty();
    }
    [[nodiscard]] bool mover_ends() const noexcept { return stopping_ && !mover_has_work(); }
    /// The mover's work, until there is what `done` looks for.
    template <class Done>
    void work_until(Done done, Lock& lock) {
        while (true) {
            for_mover_.wait(lock, [&] { return done() || mover_has_work() || stopping_; });
            if (done() || mover_ends()) return;
            work(lock);
        }
    }
    /// In the function of a bunch, which the mover calls, and which waits: the mover's work goes on
    /// meanwhile. Throws kUnavailable where the server ends first.
    template <class Done>
    void work_until_done(Done done, Lock& lock) {
        mover_waits_ = true;
        work_until(done, lock);
        if (!done()) throw Error(ErrorCode::kUnavailable, "the memory server has ended meanwhile");
    }
    /// Some of what there is to do. What it takes from a list it does before it takes more: it may be called
    /// again by a function that it calls.
    void work(Lock& lock);
    void wait_for_answer(Question& question);
    /// What it was answered with is there.
    void answered(const std::shared_ptr<Question>& question);
    /// This thread may receive what it waits for itself.
    [[nodiscard]] bool may_look() const noexcept;
    CacheId add_cache(uint64_t size, Payload payload);
    [[nodiscard]] Inventory inventory(const Lock& lock) const;
    /// Throws kLimit where the machine cannot have so much for a client, beside the caches and what their
    /// clients may write: a process that writes what there is not is killed, and it might be the server.
    void check_room(uint64_t size, const Lock& lock) const;
    void remove_unused_caches(Actions& actions);

    void received(Rank from, std::span<const std::byte> packet) override;
    void lost(Rank rank) override;
    void deal_with(Rank from, Parsed&& content);
    void send(Rank to, Parsed&& content);
    void emit(Sequencer::Output& output);
    /// Asks rank 0 for a change of all ranks, and waits. Its id.
    uint64_t change(Command command);
    void answer(std::map<uint64_t, std::shared_ptr<Question>>& questions, uint64_t number, uint64_t id,
                Ending ending, std::vector<uint8_t> content);
    void depart();
    // Costs and places: server_survey.cpp.
    /// Of a rank that answered all.
    [[nodiscard]] std::map<Rank, SurveyReply> survey(std::span<const PlannedTransfer> transfers);
    [[nodiscard]] std::map<Rank, SurveyReply> ask_ranks(std::vector<PlannedTransfer> transfers);
    [[nodiscard]] SurveyReply answer_survey(const SurveyRequest& request) const;
    [[nodiscard]] double seconds_here(const PlannedTransfer& planned) const;
    void surveyed(Rank from, SurveyReply reply);
    void end_survey(bool complete, Surveys::iterator survey);
    void give_up_surveys(Rank gone);
    /// By the mover, with the lock open.
    [[nodiscard]] Ending apply(const Command& command) noexcept;
    [[nodiscard]] std::string change_tables(const Command& command);
    void applied(ChangeApplied applied, const Command& command);
    /// Of what is freed here: a transfer that has begun ends before somebody else may have its bytes.
    void tell_freed();
    /// Those that are not known yet, with the lock open.
    void measure_links(const Command& command, Segment& segment);

    Rank ranks_;
    std::mutex mutex_;
    Node node_;
    std::map<SegmentId, std::shared_ptr<Segment>> segments_;
    /// How segments and allocations were described.
    std::map<SegmentId, SegmentDescription> descriptions_;
    std::map<DataId, std::string> distributions_;
    std::map<DataId, uint32_t> versions_everywhere_;  // what all ranks have applied of reserve_versions()
    Traffic traffic_;
    std::unique_ptr<OperationTrace> trace_;  // null: it is not traced
    LinkSpeeds links_;
    std::map<CacheId, Payload> payloads_;
    std::set<CacheId> going_;  // caches whose last client is gone
    std::unordered_map<Ticket, std::shared_ptr<OperationState>, std::hash<Ticket>, std::equal_to<>,
                       Recycled<std::pair<const Ticket, std::shared_ptr<OperationState>>>>
        pending_;
    std::vector<OwnMove*> own_moves_;
    std::vector<std::unique_ptr<Lists>> spare_lists_;
    std::vector<std::shared_ptr<OperationState>> spare_states_;
    Ticket last_ticket_ = 0;
    ClientId last_client_ = 0;
    uint64_t last_cache_ = 0;

    // With the other ranks. What is asked of rank 0, and what it asks:
    std::map<uint64_t, std::shared_ptr<Question>> changes_, meetings_;
    uint64_t last_change_ = 0, last_meeting_ = 0;
    Surveys surveys_;
    uint64_t last_survey_ = 0;
    std::set<Rank> gone_;
    // Of rank 0 alone.
    std::optional<Sequencer> sequencer_;
    std::map<Rank, Arrival> arrived_;

    // For the mover.
    std::vector<Transfer> to_move_;
    std::deque<std::pair<uint64_t, Command>> to_apply_;
    std::vector<std::pair<DataId, ChangeApplied>> freed_;  // what rank 0 is told of when nothing moves there
    std::deque<std::shared_ptr<OperationState>> to_tell_;
    /// For whoever has received a packet: those who wait in threads or tasks, and no code of programs.
    std::vector<std::shared_ptr<OperationState>> to_wake_;
    std::deque<std::shared_ptr<Question>> to_answer_;
    std::vector<std::shared_ptr<Question>>* answers_ = nullptr;  // of whoever has received a packet
    std::condition_variable for_mover_;
    bool stopping_ = false;
    bool mover_waits_ = false;  // from the first time on that it has waited for the end of an operation

    std::unique_ptr<Transport> mesh_;
    std::thread mover_;
};

}  // namespace heddle::memory
