// IpcConnection: a client of a server in another process (docs/MEMORY_CLIENTS.md).
//
// Requests go out by the thread that makes them, and never block; one thread of the connection receives the
// replies and wakes who waits for them. When the server goes, all that is under way fails and all that is
// asked later, too. In a child that is forked it says that it is not there, and touches nothing of its
// process's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/forks.hpp"
#include "base/os.hpp"
#include "memory/connection.hpp"
#include "memory/ipc_wire.hpp"
#include "memory/memory_region.hpp"
#include "memory/pinned_copies.hpp"

namespace heddle::memory {

class IpcConnection final : public Connection, public std::enable_shared_from_this<IpcConnection> {
  public:
    /// As Client's constructor of a path.
    explicit IpcConnection(const std::string& path);
    /// It has left.
    ~IpcConnection() override;
    IpcConnection(const IpcConnection&) = delete;
    IpcConnection& operator=(const IpcConnection&) = delete;

    void leave() noexcept override;

    SegmentId create_segment(uint64_t size, const SegmentDescription& description) override;
    void delete_segment(SegmentId segment) override;
    std::vector<uint64_t> free_bytes(SegmentId segment) override;
    Inventory inventory() override;
    DataId allocate(uint64_t size, SegmentId segment, const Placement& placement) override;
    void free(DataId data) override;
    void reserve_versions(DataId data, uint32_t count) override;
    void register_reader(const GlobalRange& global, bool reads) override;
    void fill(DataId data, std::span<const std::byte> content) override;
    CacheId create_cache(uint64_t size, const CacheOptions& options) override;
    void delete_cache(CacheId cache) override;
    CacheStatistics statistics(CacheId cache) override;

    std::vector<TransferCost> transfer_costs(const std::vector<PlannedTransfer>& transfers) override;
    std::vector<DataLocality> data_locality(const std::vector<GlobalRange>& ranges) override;

    OperationResult execute_sync(const Operation& operation) override;
    void execute(const Operation& operation, const std::shared_ptr<OperationState>& state) override;
    void execute_here(const Operations& operations, const States& states) override;
    bool is_done(const OperationState& state) override;
    void wait(OperationState& state) override;
    void give_up(const States& states) override;
    void release_soon(const LocalRange& local) noexcept override;
    Rank rank() const noexcept override { return rank_; }

    /// What `heddle memory status --json` prints.
    [[nodiscard]] std::string status();

  private:
    using Lock = std::unique_lock<std::mutex>;
    /// False in a child that was forked later: the thread of the connection is not in it, and whoever had the
    /// lock may not be, either.
    [[nodiscard]] bool is_own_process() const noexcept { return forks() == forks_; }
    /// The lock. Throws kUnavailable in a forked child.
    [[nodiscard]] Lock locked() const;
    /// A reply, and what came with it.
    struct Answer {
        ipc::Reply content;
        std::vector<Descriptor> regions;
    };
    /// Somebody who waits for one.
    struct Question {
        BlockCondition answered;
        std::optional<Answer> answer;  // nothing: the server is gone
    };
    /// An operation under way.
    struct Running {
        std::shared_ptr<OperationState> state;
        /// A put's, which is released with it, as it was held.
        std::optional<LocalRange> released;
        /// It changes what gets that come after it see.
        bool writes = false;
    };
    struct Mapped {
        std::unique_ptr<MemoryRegion> payload, listings, pins;
        std::unique_ptr<PinnedCopies> copies;
        /// Of a shareable one: what this client may write.
        std::unique_ptr<MemoryRegion> staging;
    };

    void say_hello();
    [[nodiscard]] Answer ask(ipc::Request request);
    template <class Content>
    [[nodiscard]] Content ask_for(ipc::Request request);
    [[nodiscard]] std::string ask_for_text(ipc::Request request);
    void send(Packet packet);
    void flush(Lock& lock);
    /// What is begun is put, and the server hears that this client has left.
    void send_rest() noexcept;
    void run();
    /// The function of a bunch is called in it.
    [[nodiscard]] bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_id_; }
    /// Waits for the next thing to do, and does it. False: as receive().
    [[nodiscard]] bool take_turn();
    /// False: the server is gone, or speaks something else.
    [[nodiscard]] bool receive();
    void take(uint64_t number, Answer answer);
    [[nodiscard]] OperationState::Outcome outcome_of(const ipc::Reply& reply, const Running& running);
    void end_all();
    /// What needs no message: a hit of a copy that this client can pin by itself, and its release. The caller
    /// has the lock.
    [[nodiscard]] std::optional<OperationResult> do_here(const Operation& operation);
    /// It, or what it is a part of, is held, and not by a pin. Throws.
    void check_held(const LocalRange& local) const;
    /// Null: this client has not pinned it. The caller has the lock.
    [[nodiscard]] PinnedCopies* copies_with(const LocalRange& local);
    /// A copy that this client has pinned is held by the server, too.
    [[nodiscard]] LocalRange hold_pinned(const LocalRange& local);
    /// Throws what it is refused for.
    void begin(const Operation& operation, const std::shared_ptr<OperationState>& state);
    void check_there() const;
    /// Where the cache lies here; asks for it where others made it.
    void map_cache(CacheId cache);
    void map_answer(Answer& answer);

    unsigned forks_ = forks();
    std::string path_;
    Descriptor socket_, wake_;
    Descriptor server_process_;  // a pidfd; none where the kernel tells of no process
    Rank rank_ = 0;

    mutable std::mutex mutex_;
    bool gone_ = false;
    bool left_ = false;
    uint64_t last_number_ = 0;
    std::unordered_map<uint64_t, std::shared_ptr<Question>> questions_;
    std::unordered_map<uint64_t, Running> running_;
    size_t writing_ = 0;  // of these
    std::unordered_map<uint64_t, LocalRange> held_;
    std::map<CacheId, Mapped> caches_;
    std::map<DataId, uint32_t> reserved_;  // versions, of which the server has said that there is room
    std::deque<Packet> outgoing_;          // what waits for room in the socket

    std::thread thread_;
    std::thread::id thread_id_;
    std::shared_ptr<IpcConnection> until_it_ends_;  // the thread, which has been left to itself
};

}  // namespace heddle::memory
