// Connection: what a Client asks. LocalConnection is one to the server of the same process, IpcConnection
// (ipc_connection.hpp) one to the server of another.
//
// A client and its futures own it. Any thread; a call that waits pauses the task that makes it. After leave()
// nothing new is begun: what is under way ends as cancelled.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/memory.hpp"
#include "memory/operation_state.hpp"
#include "memory/placement.hpp"
#include "memory/survey.hpp"

namespace heddle::memory {

class Connection {
  public:
    using Operations = std::vector<Operation>;
    using States = std::vector<std::shared_ptr<OperationState>>;

    virtual ~Connection() = default;
    /// The client goes: what it holds is released.
    virtual void leave() noexcept = 0;

    [[nodiscard]] virtual SegmentId create_segment(uint64_t size, const SegmentDescription& description) = 0;
    virtual void delete_segment(SegmentId segment) = 0;
    [[nodiscard]] virtual std::vector<uint64_t> free_bytes(SegmentId segment) = 0;
    [[nodiscard]] virtual Inventory inventory() = 0;
    [[nodiscard]] virtual DataId allocate(uint64_t size, SegmentId segment, const Placement& placement) = 0;
    virtual void free(DataId data) = 0;
    virtual void reserve_versions(DataId data, uint32_t count) = 0;
    virtual void register_reader(const GlobalRange& global, bool reads) = 0;
    /// Writes all of a new allocation.
    virtual void fill(DataId data, std::span<const std::byte> content) = 0;
    [[nodiscard]] virtual CacheId create_cache(uint64_t size, const CacheOptions& options) = 0;
    virtual void delete_cache(CacheId cache) = 0;
    [[nodiscard]] virtual CacheStatistics statistics(CacheId cache) = 0;

    [[nodiscard]] virtual std::vector<TransferCost> transfer_costs(
        const std::vector<PlannedTransfer>& transfers) = 0;
    [[nodiscard]] virtual std::vector<DataLocality> data_locality(const std::vector<GlobalRange>& ranges) = 0;

    [[nodiscard]] virtual OperationResult execute_sync(const Operation& operation) = 0;
    /// When it has ended, `state` says so, also where it is refused at once.
    virtual void execute(const Operation& operation, const std::shared_ptr<OperationState>& state) = 0;
    /// Begins all, for a thread that will wait for them.
    virtual void execute_here(const Operations& operations, const States& states) = 0;
    [[nodiscard]] virtual bool is_done(const OperationState& state) = 0;
    virtual void wait(OperationState& state) = 0;
    /// Ends those that wait for a tag.
    virtual void give_up(const States& states) = 0;
    /// Does not wait, so that it may be called where an operation has ended; nothing where the client has
    /// left.
    virtual void release_soon(const LocalRange& local) noexcept = 0;

    [[nodiscard]] virtual Rank rank() const noexcept = 0;
};

}  // namespace heddle::memory
