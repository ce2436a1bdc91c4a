// The Directory/Cache by the names of seed 001 section 4 and of its prototype, over heddle/memory.hpp, which
// tells what each call does, which threads may make it, and what a killed program leaves.
//
//     vmem::server server;
//     vmem::in_process_client client (server);
//     auto const segment (client.segment_create (1 << 20,
//     vmem::shm::equally_distributed_segment_description())); auto const data (client.allocate (1000,
//     segment, vmem::prefix_filled_data()));
//
// All that fails throws heddle::Error or heddle::memory::MemoryError. HEDDLE_VMEM_SEGMENTS=KIND[:PATH] makes
// all segments of that kind, whatever the program asks for.
#pragma once

#include <algorithm>
#include <boost/variant.hpp>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heddle/compat/vmem/operations.hpp"
#include "heddle/compat/vmem/segments.hpp"
#include "heddle/compat/vmem/types.hpp"
#include "heddle/memory.hpp"

namespace vmem {

/// A server of the group, as all servers list them.
struct node {
    std::string host;
    uint16_t port = 0;
};

namespace detail {

/// The ranks are the nodes, and this one is the one of this host with that port. Throws kInvalidArgument
/// where there is none, kUnavailable where a node is another host, kSystem.
HEDDLE_API heddle::memory::ServerOptions options_of(const std::vector<node>& nodes, uint16_t comm_port,
                                                    double patience_s);

/// The folder where the servers of some nodes find each other: gone with the last of them. Empty: there is
/// none.
class meeting_place {
  public:
    explicit meeting_place(std::string folder) : folder_(std::move(folder)) {}
    HEDDLE_API ~meeting_place();
    meeting_place(const meeting_place&) = delete;
    meeting_place& operator=(const meeting_place&) = delete;

  private:
    std::string folder_;
};

class server_base {
  public:
    [[nodiscard]] rank_t rank() const { return server_.rank(); }
    [[nodiscard]] heddle::memory::Server& native() { return server_; }
    /// Throws kInvalidArgument where no factory of the server makes such segments.
    HEDDLE_API void check_kind(const std::string& kind) const;

  protected:
    explicit server_base(std::vector<std::string> kinds) : kinds_(std::move(kinds)) {}
    server_base(std::vector<std::string> kinds, const heddle::memory::ServerOptions& options)
        : kinds_(std::move(kinds)), meeting_place_(options.folder), server_(options) {}

  private:
    std::vector<std::string> kinds_;
    meeting_place meeting_place_{""};
    heddle::memory::Server server_;
};

}  // namespace detail

template <class... Contexts>
struct factories {};
template <class... Descriptions>
struct descriptions {};

template <class Factories, class Descriptions>
class server_templ;

/// Makes segments of the kinds of its factories. By default one rank, or as `heddle memory launch` says; else
/// one of the nodes, all of which are this host, or one of the communicator that mpi's params have.
template <class... Contexts, class... Descriptions>
class server_templ<factories<Contexts...>, descriptions<Descriptions...>> : public detail::server_base {
    static_assert((detail::is_one_of<typename Descriptions::factory, Contexts...> && ...),
                  "each segment description needs its factory");

  public:
    server_templ() : server_base({Contexts::kind()...}) {}
    server_templ(typename Contexts::params const&... params, std::vector<node> const& nodes,
                 uint16_t comm_port)
        : server_base({Contexts::kind()...}, options_of(params..., nodes, comm_port)) {}

  private:
    static heddle::memory::ServerOptions options_of(typename Contexts::params const&... params,
                                                    std::vector<node> const& nodes, uint16_t comm_port) {
        for (std::optional<int> const communicator : {params.communicator()...}) {
            if (!communicator) continue;
            heddle::memory::ServerOptions options;
            options.communicator = communicator;
            return options;
        }
        return detail::options_of(nodes, comm_port, std::max({params.timeout_s()...}));
    }
};

using all_factories = factories<gaspi::context, mpi::context, beegfs::context, shm::context>;
using all_descriptions =
    descriptions<gaspi::equally_distributed_segment_description, mpi::equally_distributed_segment_description,
                 beegfs::equally_distributed_segment_description,
                 shm::equally_distributed_segment_description>;

/// Of all kinds. Whether one can be had shows when a segment of it is created.
class server : public server_templ<all_factories, all_descriptions> {
  public:
    using server_templ::server_templ;
    server() = default;
    /// With the processes of a communicator as its ranks.
    explicit server(mpi::context::params const& mpi) : server_templ({}, mpi, {}, {}, {}, 0) {}
    /// As the prototype's.
    server(gaspi::context::params const& gaspi, beegfs::context::params const& beegfs,
           std::vector<node> const& nodes, uint16_t comm_port)
        : server_templ(gaspi, {}, beegfs, {}, nodes, comm_port) {}
};

namespace error {

/// What each operation of a bunch that failed did so with.
template <class Error = std::exception_ptr>
class multiple : public std::exception {
  public:
    explicit multiple(const heddle::memory::BunchError& failed)
        : what_(failed.what()), may_have_written_(failed.may_have_written()) {
        for (const auto& one : failed.errors()) {
            operations_.push_back(one.first);
            errors_.emplace_back(one.second);
        }
    }
    [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
    [[nodiscard]] const std::vector<Error>& errors() const noexcept { return errors_; }
    /// Their places in the bunch.
    [[nodiscard]] const std::vector<std::size_t>& operations() const noexcept { return operations_; }
    /// Puts of the bunch may have taken place.
    [[nodiscard]] bool may_have_written() const noexcept { return may_have_written_; }

  private:
    std::string what_;
    bool may_have_written_;
    std::vector<std::size_t> operations_;
    std::vector<Error> errors_;
};

}  // namespace error

/// Of a piece of a range: whose memory it is in, and which ranks have copies of parts of it.
struct data_locality_description {
    global_range_t range;
    rank_t home;
    std::set<rank_t> copies;
};

namespace detail {

/// What clients in the server's process and in others have in common.
class client {
  public:
    using operation_t = vmem::operation_t;

    /// Any thing with native(), as those in segments.hpp.
    template <class SegmentDescription>
    segment_id_t segment_create(size_t size, const SegmentDescription& description) {
        if (server_ != nullptr) server_->check_kind(SegmentDescription::factory::kind());
        return segment_id_t(client_.create_segment(size, detail::chosen(description.native())).value);
    }
    void segment_delete(segment_id_t segment) { client_.delete_segment({segment.value()}); }

    /// equally_distributed_data, prefix_filled_data, or a function as heddle::memory::Distribution.
    template <class DataDescription>
    data_id_t allocate(size_t size, segment_id_t segment, const DataDescription& description) {
        return data_id_t(
            client_.allocate(size, {segment.value()}, detail::data_description(description)).value);
    }
    void free(data_id_t data) { client_.free({data.value()}); }

    cache_id_t in_process_cache_create(size_t size) { return cache_id_t(client_.create_cache(size).value); }
    /// For clients of several processes, which get its id as text.
    shareable_cache_id_t shareable_cache_create(size_t size) {
        return shareable_cache_id_t(client_.create_cache(size, {.shareable = true, .numa_node = {}}).value);
    }
    void cache_delete(cache_id_t cache) { client_.delete_cache({cache.value()}); }

    /// Its thread waits, also in a task: execute_sync pauses that.
    std::future<operation_result_t> execute(operation_t operation) {
        const auto promise = std::make_shared<std::promise<operation_result_t>>();
        client_.execute_bunch(
            {operation.native()},
            [promise](const std::vector<heddle::memory::OperationResult>& results) {
                promise->set_value(detail::result_of(results.front()));
            },
            [promise](const heddle::memory::BunchError& failed) {
                promise->set_exception(failed.errors().front().second);
            });
        return promise->get_future();
    }
    std::vector<std::future<operation_result_t>> execute(std::vector<operation_t> const& operations) {
        std::vector<std::future<operation_result_t>> futures;
        for (const operation_t& operation : operations) futures.push_back(execute(operation));
        return futures;
    }

    operation_result_t execute_sync(operation_t operation) {
        return detail::result_of(client_.execute_sync(operation.native()));
    }
    std::vector<operation_result_t> execute_sync(std::vector<operation_t> const& operations) {
        std::vector<operation_result_t> results;
        for (const auto& result : client_.execute_sync(detail::native(operations)))
            results.push_back(detail::result_of(result));
        return results;
    }
    void execute_bunch(std::vector<operation_t> const& operations,
                       std::function<void(std::vector<operation_result_t>)> success,
                       std::function<void(error::multiple<>)> failure) {
        client_.execute_bunch(
            detail::native(operations),
            [success](const std::vector<heddle::memory::OperationResult>& results) {
                std::vector<operation_result_t> all;
                for (const auto& result : results) all.push_back(detail::result_of(result));
                success(std::move(all));
            },
            [failure](const heddle::memory::BunchError& failed) { failure(error::multiple<>(failed)); });
    }

    /// In seconds, the cheapest rank first. Caches may be cache_id_t(), and local ranges any.
    [[nodiscard]] std::vector<std::pair<rank_t, double>> transfer_costs(
        std::vector<operation_t> const& operations) {
        std::vector<std::pair<rank_t, double>> costs;
        for (const auto& one : client_.transfer_costs(detail::native(operations)))
            costs.emplace_back(one.rank, one.seconds);
        return costs;
    }
    [[nodiscard]] std::vector<data_locality_description> data_locality(
        std::vector<global_range_t> const& ranges) {
        std::vector<heddle::memory::GlobalRange> asked;
        for (const global_range_t& range : ranges) asked.push_back(detail::native(range));
        std::vector<data_locality_description> all;
        for (const auto& one : client_.data_locality(asked))
            all.push_back({{data_id_t(one.range.data.value), {one.range.range.offset, one.range.range.size}},
                           one.home,
                           {one.copies.begin(), one.copies.end()}});
        return all;
    }

    [[nodiscard]] rank_t rank() const { return client_.rank(); }
    [[nodiscard]] heddle::memory::Client& native() { return client_; }

  protected:
    explicit client(server_base& server) : server_(&server), client_(server.native()) {}
    explicit client(const std::string& path) : client_(path) {}

  private:
    server_base* server_ = nullptr;
    heddle::memory::Client client_;
};

}  // namespace detail

class in_process_client : public detail::client {
  public:
    explicit in_process_client(detail::server_base& server) : client(server) {}
};

/// In another process than the server, which has an ipc_server at this path.
class ipc_client : public detail::client {
  public:
    explicit ipc_client(const std::string& path) : client(path) {}
};

class ipc_server {
  public:
    ipc_server(detail::server_base& server, const std::string& path) : server_(server.native(), path) {}

  private:
    heddle::memory::IpcServer server_;
};

/// Section 4.4: calls that all ranks make, one of which does it and tells the others.
class collective {
  public:
    explicit collective(detail::server_base& server) : server_(server), collective_(server.native()) {}

    template <class SegmentDescription>
    segment_id_t segment_create(size_t size, const SegmentDescription& description) {
        server_.check_kind(SegmentDescription::factory::kind());
        return segment_id_t(collective_.create_segment(size, detail::chosen(description.native())).value);
    }
    void segment_delete(segment_id_t segment) { collective_.delete_segment({segment.value()}); }
    template <class DataDescription>
    data_id_t allocate(size_t size, segment_id_t segment, const DataDescription& description) {
        return data_id_t(
            collective_.allocate(size, {segment.value()}, detail::data_description(description)).value);
    }
    void free(data_id_t data) { collective_.free({data.value()}); }
    void barrier() { collective_.barrier(); }

  private:
    detail::server_base& server_;
    heddle::memory::Collective collective_;
};

}  // namespace vmem

namespace intertwine {
namespace vmem = ::vmem;
}  // namespace intertwine
