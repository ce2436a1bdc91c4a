// ServerState: the thin shell around a Node: its lock, its segments and the memory of its caches, and the
// threads that move bytes.
//
// Whoever makes a step of the state machine carries out what follows from it: who waits for an operation
// moves its bytes, and a thread of the server those of operations for which nobody waits. Bytes are moved
// without the lock.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "heddle/memory.hpp"
#include "memory/memory_region.hpp"
#include "memory/node.hpp"
#include "memory/operation_state.hpp"
#include "memory/segment.hpp"

namespace heddle::memory {

class ServerState {
  public:
    ServerState();
    /// There is no client any more.
    ~ServerState();
    ServerState(const ServerState&) = delete;
    ServerState& operator=(const ServerState&) = delete;

    [[nodiscard]] ClientId add_client();
    void drop_client(ClientId client);

    [[nodiscard]] SegmentId create_segment(uint64_t size, const SegmentDescription& description);
    void delete_segment(SegmentId segment);
    [[nodiscard]] DataId allocate(uint64_t size, SegmentId segment, const DataDescription& description);
    void free(DataId data);
    [[nodiscard]] CacheId create_cache(uint64_t size);
    void delete_cache(CacheId cache);
    [[nodiscard]] CacheStatistics statistics(CacheId cache);

    [[nodiscard]] OperationResult execute_sync(ClientId client, const Operation& operation);
    /// When it has ended, `state` says so. A thread of the server moves its bytes.
    void execute(ClientId client, const Operation& operation, const std::shared_ptr<OperationState>& state);
    [[nodiscard]] bool is_done(const OperationState& state);
    void wait(OperationState& state);
    /// Ends those that wait for a tag.
    void give_up(const std::vector<std::shared_ptr<OperationState>>& states);
    void put_memory(ClientId client, std::span<const std::byte> content, DataId data);

    [[nodiscard]] Rank rank() const noexcept { return node_.rank(); }

  private:
    using Lock = std::unique_lock<std::mutex>;

    /// Moves bytes, with the lock open, and says to the node that they are moved.
    void carry_out(std::vector<Transfer> transfers, Actions& actions, Lock& lock);
    /// Leaves transfers to the mover, and tells those whose operations have ended, with the lock open.
    void hand_over(Actions& actions, Lock& lock);
    /// Moves what is to be moved now, and waits for the end of the operation. Opens the lock.
    [[nodiscard]] OperationResult wait_for(Ticket ticket, Actions& actions, Lock& lock);
    void run_mover();

    std::mutex mutex_;
    Node node_{0};
    std::map<SegmentId, std::shared_ptr<Segment>> segments_;
    std::map<CacheId, std::unique_ptr<MemoryRegion>> payloads_;
    std::unordered_map<Ticket, std::shared_ptr<OperationState>> pending_;
    Ticket last_ticket_ = 0;
    ClientId last_client_ = 0;
    uint64_t last_id_ = 0;

    std::vector<Transfer> to_move_;
    std::condition_variable moving_;
    bool stopping_ = false;
    std::thread mover_;
};

}  // namespace heddle::memory
