// LocalConnection: a client of the server of its own process.
#pragma once

#include "memory/connection.hpp"
#include "memory/server_state.hpp"

namespace heddle::memory {

class LocalConnection final : public Connection {
  public:
    explicit LocalConnection(ServerState& server) : server_(server), id_(server.add_client()) {}
    void leave() noexcept override { server_.drop_client(id_); }

    SegmentId create_segment(uint64_t size, const SegmentDescription& description) override {
        return server_.create_segment(size, description);
    }
    void delete_segment(SegmentId segment) override { server_.delete_segment(segment); }
    std::vector<uint64_t> free_bytes(SegmentId segment) override { return server_.free_bytes(segment); }
    Inventory inventory() override { return server_.inventory(); }
    DataId allocate(uint64_t size, SegmentId segment, const Placement& placement) override {
        return server_.allocate(size, segment, placement);
    }
    void free(DataId data) override { server_.free(data); }
    void reserve_versions(DataId data, uint32_t count) override { server_.reserve_versions(data, count); }
    void register_reader(const GlobalRange& global, bool reads) override {
        server_.register_reader(id_, global, reads);
    }
    void fill(DataId data, std::span<const std::byte> content) override {
        server_.put_memory(id_, content, data);
    }
    CacheId create_cache(uint64_t size, const CacheOptions& options) override {
        return server_.create_cache(size, options);
    }
    void delete_cache(CacheId cache) override { server_.delete_cache(cache); }
    CacheStatistics statistics(CacheId cache) override { return server_.statistics(cache); }

    std::vector<TransferCost> transfer_costs(const std::vector<PlannedTransfer>& transfers) override {
        return server_.transfer_costs(transfers);
    }
    std::vector<DataLocality> data_locality(const std::vector<GlobalRange>& ranges) override {
        return server_.data_locality(ranges);
    }

    OperationResult execute_sync(const Operation& operation) override {
        return server_.execute_sync(id_, operation);
    }
    void execute(const Operation& operation, const std::shared_ptr<OperationState>& state) override {
        server_.execute(id_, operation, state);
    }
    void execute_here(const Operations& operations, const States& states) override {
        server_.execute_here(id_, operations, states);
    }
    bool is_done(const OperationState& state) override { return server_.is_done(state); }
    void wait(OperationState& state) override { server_.wait(state); }
    void give_up(const States& states) override { server_.give_up(id_, states); }
    void release_soon(const LocalRange& local) noexcept override {
        try {
            (void)server_.execute_sync(id_, op::Release{local});
        } catch (const MemoryError&) {
            // The client has left, and nothing of it is held any more.
        }
    }
    Rank rank() const noexcept override { return server_.rank(); }

  private:
    ServerState& server_;
    ClientId id_;
};

}  // namespace heddle::memory
