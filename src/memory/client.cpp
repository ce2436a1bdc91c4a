// The public Server and Client: heddle/memory.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/ipc_connection.hpp"
#include "memory/joined_server.hpp"
#include "memory/local_connection.hpp"

namespace heddle::memory {
namespace {

std::string describe(const std::vector<std::pair<size_t, std::exception_ptr>>& errors) {
    std::string all = fmt::format("{} operation(s) of a bunch failed", errors.size());
    for (const auto& [place, error] : errors) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& one) {
            all += fmt::format("; operation {}: {}", place, one.what());
        }
    }
    return all;
}

/// Operations that end together.
class Bunch : public std::enable_shared_from_this<Bunch> {
  public:
    Bunch(std::shared_ptr<Connection> connection, const std::vector<Operation>& operations,
          std::function<void(std::vector<OperationResult>)> success,
          std::function<void(const BunchError&)> failure)
        : connection_(std::move(connection)),
          writes_(std::ranges::any_of(
              operations, [](const Operation& one) { return std::holds_alternative<op::Put>(one); })),
          success_(std::move(success)),
          failure_(std::move(failure)),
          outcomes_(operations.size()) {
        for (size_t i = 0; i < operations.size(); ++i) states_.push_back(std::make_shared<OperationState>());
    }

    void begin(const std::vector<Operation>& operations) {
        const auto self = shared_from_this();
        for (size_t i = 0; i < operations.size(); ++i)
            states_[i]->when_done = [self, i](OperationState::Outcome outcome) {
                self->ended(i, std::move(outcome));
            };
        for (size_t i = 0; i < operations.size(); ++i) connection_->execute(operations[i], states_[i]);
        // Those that failed before the last one was begun could not yet make the others give up.
        if (failed_) connection_->give_up(states_);
        leave();
    }

  private:
    void ended(size_t which, OperationState::Outcome outcome) {
        const bool failed = !std::holds_alternative<OperationResult>(outcome);
        outcomes_[which] = std::move(outcome);
        if (failed && !failed_.exchange(true)) connection_->give_up(states_);
        leave();
    }
    /// The last of all operations and begin() finishes.
    void leave() {
        if (left_.fetch_add(1) < outcomes_.size()) return;
        std::vector<OperationResult> results;
        std::vector<std::pair<size_t, std::exception_ptr>> errors;
        for (size_t i = 0; i < outcomes_.size(); ++i) {
            if (const auto* error = std::get_if<MemoryError>(&*outcomes_[i]))
                errors.emplace_back(i, std::make_exception_ptr(*error));
            else if (const auto* other = std::get_if<std::exception_ptr>(&*outcomes_[i]))
                errors.emplace_back(i, *other);
            else
                results.push_back(std::get<OperationResult>(*outcomes_[i]));
        }
        if (errors.empty()) return success_(std::move(results));
        for (const OperationResult& result : results)
            if (const LocalRange* const local = local_of(result)) connection_->release_soon(*local);
        failure_(BunchError(std::move(errors), writes_));
    }

    std::shared_ptr<Connection> connection_;
    bool writes_;
    std::function<void(std::vector<OperationResult>)> success_;
    std::function<void(const BunchError&)> failure_;
    std::vector<std::shared_ptr<OperationState>> states_;
    std::vector<std::optional<OperationState::Outcome>> outcomes_;
    std::atomic<size_t> left_{0};
    std::atomic<bool> failed_{false};
};

}  // namespace

Server::Server() : state_(make_server_of_environment()) {}
Server::Server(const ServerOptions& options) : state_(make_server(options)) {}
Server::~Server() = default;
Rank Server::rank() const noexcept {
    return state_->rank();
}
Rank Server::ranks() const noexcept {
    return state_->ranks();
}

Counters Server::counters() const {
    return state_->counters();
}

BunchError::BunchError(std::vector<std::pair<size_t, std::exception_ptr>> errors, bool may_have_written)
    : Error(ErrorCode::kSystem, describe(errors)),
      errors_(std::move(errors)),
      may_have_written_(may_have_written) {}

Client::Client(Server& server) : connection_(std::make_shared<LocalConnection>(*server.state_)) {}
Client::Client(const std::string& path) : connection_(std::make_shared<IpcConnection>(path)) {}
Client::~Client() {
    connection_->leave();
}
Rank Client::rank() const noexcept {
    return connection_->rank();
}

SegmentId Client::create_segment(uint64_t size, const SegmentDescription& description) {
    return connection_->create_segment(size, description);
}
void Client::delete_segment(SegmentId segment) {
    connection_->delete_segment(segment);
}
std::vector<uint64_t> Client::free_bytes(SegmentId segment) const {
    return connection_->free_bytes(segment);
}
Inventory Client::inventory() const {
    return connection_->inventory();
}
DataId Client::allocate(uint64_t size, SegmentId segment, const DataDescription& description) {
    return allocate_as_described(*connection_, size, segment, description);
}
DataId Client::allocate_filled(std::span<const std::byte> content, SegmentId segment,
                               const DataDescription& description) {
    const DataId data = allocate_as_described(*connection_, content.size(), segment, description);
    try {
        connection_->fill(data, content);
    } catch (...) {
        connection_->free(data);
        throw;
    }
    return data;
}
void Client::free(DataId data) {
    connection_->free(data);
}
void Client::reserve_versions(DataId data, uint32_t count) {
    connection_->reserve_versions(data, count);
}
void Client::register_reader(const GlobalRange& global) {
    connection_->register_reader(global, true);
}
void Client::unregister_reader(const GlobalRange& global) {
    connection_->register_reader(global, false);
}
void Client::make_room(const Operation& operation) {
    const auto* const put = std::get_if<op::Put>(&operation);
    if (put == nullptr || put->retain == 0) return;
    const auto all = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{put->retain} + 1, UINT32_MAX));
    connection_->reserve_versions(put->global.data, all);
}
CacheId Client::create_cache(uint64_t size, const CacheOptions& options) {
    return connection_->create_cache(size, options);
}
void Client::delete_cache(CacheId cache) {
    connection_->delete_cache(cache);
}
CacheStatistics Client::statistics(CacheId cache) const {
    return connection_->statistics(cache);
}

std::vector<TransferCost> Client::transfer_costs(const std::vector<Operation>& operations) const {
    return connection_->transfer_costs(planned_transfers(operations));
}
std::vector<DataLocality> Client::data_locality(const std::vector<GlobalRange>& ranges) const {
    return connection_->data_locality(ranges);
}

OperationFuture Client::execute(const Operation& operation) {
    make_room(operation);
    auto state = std::make_shared<OperationState>();
    state->connection = connection_;
    connection_->execute(operation, state);
    return OperationFuture(std::move(state));
}

std::vector<OperationFuture> Client::execute(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) make_room(operation);
    std::vector<OperationFuture> futures;
    for (const Operation& operation : operations) futures.push_back(execute(operation));
    return futures;
}

OperationResult Client::execute_sync(const Operation& operation) {
    make_room(operation);
    return connection_->execute_sync(operation);
}

std::vector<OperationResult> Client::execute_sync(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) make_room(operation);
    // All in one piece of memory, which stays as long as any of them is known.
    const std::shared_ptr<OperationState[]> all(new OperationState[operations.size()]);
    std::vector<std::shared_ptr<OperationState>> states;
    states.reserve(operations.size());
    for (size_t i = 0; i < operations.size(); ++i) states.emplace_back(all, all.get() + i);
    connection_->execute_here(operations, states);
    std::vector<OperationResult> results;
    results.reserve(operations.size());
    std::exception_ptr first;
    for (const auto& state : states) {
        try {
            connection_->wait(*state);
            results.push_back(state->take());
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    }
    if (!first) return results;
    for (const OperationResult& result : results)
        if (const LocalRange* const local = local_of(result)) release(*local);
    std::rethrow_exception(first);
}

void Client::execute_bunch(const std::vector<Operation>& operations,
                           std::function<void(std::vector<OperationResult>)> success,
                           std::function<void(const BunchError&)> failure) {
    for (const Operation& operation : operations) make_room(operation);
    std::make_shared<Bunch>(connection_, operations, std::move(success), std::move(failure))
        ->begin(operations);
}

MutableLocalRange Client::allocate_local(uint64_t size, CacheId cache) {
    return std::get<MutableLocalRange>(execute_sync(op::Allocate{size, cache}));
}
void Client::release(const LocalRange& local) {
    (void)execute_sync(op::Release{local});
}
ConstLocalRange Client::get_const(const GlobalRange& global, CacheId cache, std::optional<Tag> tag) {
    return std::get<ConstLocalRange>(execute_sync(op::GetConst{global, cache, tag}));
}
MutableLocalRange Client::get_mutable(const GlobalRange& global, CacheId cache, std::optional<Tag> tag) {
    return std::get<MutableLocalRange>(execute_sync(op::GetMutable{global, cache, tag}));
}
MutableLocalRange Client::get_exclusive(const GlobalRange& global, CacheId cache) {
    return std::get<MutableLocalRange>(execute_sync(op::GetExclusive{global, cache}));
}
void Client::put(const LocalRange& source, const GlobalRange& global) {
    (void)execute_sync(op::Put{source, global});
}
void Client::put_and_release(const LocalRange& source, const GlobalRange& global) {
    (void)execute_sync(op::Put{source, global, {}, true});
}

void Client::put_and_set_tag(const LocalRange& source, const GlobalRange& global, Tag tag, uint32_t readers,
                             uint32_t retain) {
    (void)execute_sync(op::Put{source, global, tag, false, readers, retain});
}
void Client::put_and_release_and_set_tag(const LocalRange& source, const GlobalRange& global, Tag tag,
                                         uint32_t readers, uint32_t retain) {
    (void)execute_sync(op::Put{source, global, tag, true, readers, retain});
}

void OperationFuture::check() const {
    if (!valid())
        throw Error(ErrorCode::kInvalidArgument,
                    "this future has no operation: it was made without one, or get() has been called");
}

bool OperationFuture::is_ready() const {
    check();
    return state_->connection->is_done(*state_);
}

OperationResult OperationFuture::get() {
    check();
    const std::shared_ptr<OperationState> state = std::exchange(state_, nullptr);
    state->connection->wait(*state);
    return state->take();
}

}  // namespace heddle::memory
