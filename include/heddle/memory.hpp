// The directory/cache: global memory in segments of several kinds, and coherent copies of parts of it in
// caches (seed 001 section 4).
//
//     heddle::memory::Server server;
//     heddle::memory::Client client(server);
//     const auto segment = client.create_segment(1 << 20, {.kind = "shm"});
//     const auto data = client.allocate(1000, segment);
//     const auto cache = client.create_cache(4096);
//     const auto own = client.allocate_local(1000, cache);
//     std::memcpy(own.pointer(), values, 1000);
//     client.put_and_release(own, {data, {0, 1000}});
//     const auto copy = client.get_const({data, {0, 1000}}, cache);   // no transfer: it was put from here
//
// All functions may be called by any thread at any time; those that wait pause the task that calls them
// (heddle/pause.hpp). They throw MemoryError, and Error where the docstring says so.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/export.hpp"
#include "heddle/memory_types.hpp"

namespace heddle::memory {

class ServerState;
class OperationState;
class Connection;
class IpcService;

/// What a segment is made of, and how much of it each rank has.
struct SegmentDescription {
    /// "shm": memory of the machine. "file": files in the folder that the option "path" names, with the
    /// option "checksums" as "crc32c" checked at each read. "mpi": memory that ranks reach through MPI, by
    /// "data" as "shared", "windows" or "messages"; "gaspi" where heddle has GPI-2 (docs/MEMORY.md).
    std::string kind = "shm";
    std::map<std::string, std::string> options = {};
};

/// A kind of segments that this build knows, found or why not.
struct SegmentKindInfo {
    std::string name;
    bool available = false;
    std::string version;  ///< of what it stands on; of heddle itself: ""
    std::string reason;   ///< why it is not available, and what to do
};
/// All of them. Loads the plug-ins that are there. Any thread.
[[nodiscard]] HEDDLE_API std::vector<SegmentKindInfo> segment_kinds();

/// So many bytes of an allocation, on that rank.
struct Share {
    Rank rank = 0;
    uint64_t size = 0;
};

/// How an allocation of `size` bytes is spread, where so much of its segment is free on each rank: the shares
/// in the order in which they make up the data. All together are `size` bytes, those of one rank no more than
/// is free there; a rank may have several, or none. It is called by the thread that allocates, and again
/// where other allocations took room meanwhile; what it throws ends the allocation.
using Distribution = std::function<std::vector<Share>(uint64_t size, std::span<const uint64_t> free_bytes)>;

/// For DataDescription::distribution, in this process; the other ranks need not know it. Throws Error
/// kInvalidArgument for an empty function, an empty name, and one that is taken.
HEDDLE_API void register_distribution(const std::string& name, Distribution distribution);
/// What was allocated by it stays. Throws Error kInvalidArgument where nobody has registered it.
HEDDLE_API void unregister_distribution(const std::string& name);

/// How an allocation is spread over the ranks.
struct DataDescription {
    /// "equally_distributed", "prefix_filled", or a registered one.
    std::string distribution = "equally_distributed";
    /// Where it is there it is called, and the name is for messages alone.
    Distribution distribute = {};
};

struct CacheOptions {
    /// Clients in other processes can use it, too, by its id: what one has got the others find. What they
    /// write lies apart until they put it.
    bool shareable = false;
    /// Where its memory is to be.
    std::optional<unsigned> numa_node = {};
};

/// Which rank of how many a server is.
struct ServerOptions {
    Rank rank = 0;
    Rank ranks = 1;
    /// Where the ranks find each other: a folder of this group alone. Not needed by one rank.
    std::string folder = {};
    /// How long a rank waits for the others, in seconds.
    double patience_s = 30;
    /// A communicator of the program's own, by MPI_Comm_c2f(): its processes are the ranks, in its order, and
    /// what is above counts for nothing. All of them make their servers together.
    std::optional<int> communicator = {};
};

/// Owns the segments and caches of one rank, and speaks with the servers of the others. It lives longer than
/// its clients, and as long as others use what lies on its rank: see Collective::barrier.
class HEDDLE_API Server {
  public:
    /// As HEDDLE_RANK and HEDDLE_MESH say, which `heddle memory launch` sets; else one rank alone. Throws as
    /// the other one, and kBadInput.
    Server();
    /// Waits for all ranks. Throws Error: kUnavailable where one does not come, kVersionMismatch,
    /// kInvalidArgument, kSystem.
    explicit Server(const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    [[nodiscard]] Rank rank() const noexcept;
    [[nodiscard]] Rank ranks() const noexcept;
    /// Of the caches that there are, and of all transfers so far that ended well. Direct accesses move
    /// nothing.
    [[nodiscard]] Counters counters() const;

  private:
    friend class Client;
    friend class Collective;
    friend class IpcServer;
    std::unique_ptr<ServerState> state_;
};

/// {"rank", "caches":
/// [{"id","size","free_bytes","hits","hits_pending","misses","evictions","invalidations"}], "segments":
/// [{"id","kind","reads","bytes_read","writes","bytes_written"}], "links": [{"kind","rank","reads",
/// "bytes_read","writes","bytes_written"}], "bytes_copied_within_caches"}, in one line.
[[nodiscard]] HEDDLE_API std::string to_json(const Counters& counters);

/// The result of an operation that was begun by Client::execute. It may be dropped: the operation goes on,
/// and what it gets is released with the client.
class HEDDLE_API OperationFuture {
  public:
    OperationFuture() = default;

    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    [[nodiscard]] bool is_ready() const;
    /// Waits. Throws what the operation ended with. Once: from then on it is not valid(), and both throw
    /// kInvalidArgument.
    [[nodiscard]] OperationResult get();

  private:
    friend class Client;
    void check() const;
    explicit OperationFuture(std::shared_ptr<OperationState> state) : state_(std::move(state)) {}
    std::shared_ptr<OperationState> state_;
};

/// Each operation that failed, by its place in the bunch.
class HEDDLE_API BunchError : public Error {
  public:
    BunchError(std::vector<std::pair<size_t, std::exception_ptr>> errors, bool may_have_written);
    [[nodiscard]] const std::vector<std::pair<size_t, std::exception_ptr>>& errors() const noexcept {
        return errors_;
    }
    /// Puts of the bunch may have taken place.
    [[nodiscard]] bool may_have_written() const noexcept { return may_have_written_; }

  private:
    std::vector<std::pair<size_t, std::exception_ptr>> errors_;
    bool may_have_written_;
};

/// Lets programs of this machine be clients of a server, by a Unix socket: those of this user and of root.
/// A client may be stopped or killed at any moment: nobody waits for it, what it held is released, and what
/// it had begun to put is put. Docs: MEMORY_CLIENTS.md.
class HEDDLE_API IpcServer {
  public:
    /// Listens until it goes, which is before the server does. An empty path: HEDDLE_MEMORY, or else the
    /// user's usual place. Throws Error: kUnavailable where another program listens there, kSystem,
    /// kInvalidArgument where the path is too long.
    explicit IpcServer(Server& server, const std::string& path = {});
    ~IpcServer();
    IpcServer(const IpcServer&) = delete;
    IpcServer& operator=(const IpcServer&) = delete;

    [[nodiscard]] const std::string& path() const noexcept;

  private:
    std::unique_ptr<IpcService> state_;
};

/// Somebody who uses the memory. What it holds is released when it goes.
class HEDDLE_API Client {
  public:
    /// In the server's own process.
    explicit Client(Server& server);
    /// In another process than the server, which has an IpcServer at this path; an empty one as there. Direct
    /// access is a copy in the cache here. When the server goes each call throws kUnavailable, and so it does
    /// in a child that is forked later. Throws Error: kUnavailable, kPermission, kVersionMismatch, kLimit.
    explicit Client(const std::string& path);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    /// Of `size` bytes in all, equally distributed over the ranks. Throws Error: kInvalidArgument for an
    /// unknown kind or option, kUnavailable for a kind that is not there and where a rank is gone, kSystem
    /// where there is no room.
    [[nodiscard]] SegmentId create_segment(uint64_t size, const SegmentDescription& description = {});
    /// Throws Error kInvalidArgument where there are allocations in it.
    void delete_segment(SegmentId segment);

    /// All segments and allocations, whoever made them.
    [[nodiscard]] Inventory inventory() const;
    /// How much of a segment is free on each rank; nothing on one that is gone.
    [[nodiscard]] std::vector<uint64_t> free_bytes(SegmentId segment) const;

    /// The bytes are zero, or what an earlier allocation left there. Throws kSegmentFull, also where the
    /// distribution wants more of a rank than is free there; Error kInvalidArgument for an unknown
    /// distribution, and for one whose shares are not the data.
    [[nodiscard]] DataId allocate(uint64_t size, SegmentId segment, const DataDescription& description = {});
    /// An allocation that holds what is in `content`.
    [[nodiscard]] DataId allocate_filled(std::span<const std::byte> content, SegmentId segment,
                                         const DataDescription& description = {});
    /// Nobody may be using it: what waits for it fails; copies that are held stay as they are. It returns
    /// when the last transfer to or from it has ended, and its bytes can be another's.
    void free(DataId data);
    /// So many versions of each byte can be there at once from now on: room for them is taken in the
    /// segment, on the ranks on which the allocation is, until it is freed. A put that retains k does so for
    /// k + 1 where it has not been done. Throws kSegmentFull; Error kLimit beyond 65,536.
    void reserve_versions(DataId data, uint32_t count);
    /// This client is one of those who are to read what is put there for so many readers: if its process
    /// ends before it has, who puts there next is told, also where it has not read yet. Reading with such a
    /// tag registers, too. See docs/COHERENCE.md. Throws kUnknown, kOutside.
    void register_reader(const GlobalRange& global);
    void unregister_reader(const GlobalRange& global);

    /// On this rank; a shareable one that a client in another process created goes when the last such client
    /// that used it has gone. Throws Error kSystem where the machine has not so much memory,
    /// kInvalidArgument where it has no such NUMA node.
    [[nodiscard]] CacheId create_cache(uint64_t size, const CacheOptions& options = {});
    /// Throws Error kInvalidArgument where local ranges in it are held.
    void delete_cache(CacheId cache);
    [[nodiscard]] CacheStatistics statistics(CacheId cache) const;

    /// Begins an operation; the future tells what it is refused for. It throws where there is no room for the
    /// versions that a put is to retain.
    [[nodiscard]] OperationFuture execute(const Operation& operation);
    [[nodiscard]] std::vector<OperationFuture> execute(const std::vector<Operation>& operations);
    /// Waits for the result.
    OperationResult execute_sync(const Operation& operation);
    /// In the order of the operations, all of which are begun at once. Throws the first error when all have
    /// ended; what the others got is released then.
    std::vector<OperationResult> execute_sync(const std::vector<Operation>& operations);
    /// One of the two functions is called when all have ended, by a thread of the server's or of this
    /// client's connection, which has other work, or by one that a call of any client of the server is made
    /// in: it should not take long, and must not throw, nor wait for what the function of another bunch does.
    /// Where one operation fails, what the others got or allocated is released first; puts stay.
    void execute_bunch(const std::vector<Operation>& operations,
                       std::function<void(std::vector<OperationResult>)> success,
                       std::function<void(const BunchError&)> failure);

    // The single operations, and waiting for them: see namespace op.
    [[nodiscard]] MutableLocalRange allocate_local(uint64_t size, CacheId cache);
    void release(const LocalRange& local);
    [[nodiscard]] ConstLocalRange get_const(const GlobalRange& global, CacheId cache,
                                            std::optional<Tag> tag = {});
    [[nodiscard]] MutableLocalRange get_mutable(const GlobalRange& global, CacheId cache,
                                                std::optional<Tag> tag = {});
    [[nodiscard]] MutableLocalRange get_exclusive(const GlobalRange& global, CacheId cache);
    void put(const LocalRange& source, const GlobalRange& global);
    void put_and_release(const LocalRange& source, const GlobalRange& global);
    void put_and_set_tag(const LocalRange& source, const GlobalRange& global, Tag tag, uint32_t readers = 0,
                         uint32_t retain = 0);
    void put_and_release_and_set_tag(const LocalRange& source, const GlobalRange& global, Tag tag,
                                     uint32_t readers = 0, uint32_t retain = 0);

    /// What the transfers of these operations would take, in seconds, on each rank that executed them; the
    /// cheapest first. Of the moment, and an estimate: by the speed of each link, which was measured when the
    /// first segment of its kind was created, one transfer after the other. What a rank has valid copies of
    /// costs it nothing; on this rank, where the operation names a cache, only those in it. Local ranges of
    /// puts may be any. Throws kUnknown, kOutside. (Seed 001 section 4.2.6.)
    [[nodiscard]] std::vector<TransferCost> transfer_costs(const std::vector<Operation>& operations) const;
    /// Where the ranges lie, piece by piece in their order, and which ranks have copies of parts of a piece
    /// at the moment. Throws kUnknown, kOutside. (Seed 001 section 4.2.7.)
    [[nodiscard]] std::vector<DataLocality> data_locality(const std::vector<GlobalRange>& ranges) const;

    [[nodiscard]] Rank rank() const noexcept;

  private:
    /// For what it is to retain.
    void make_room(const Operation& operation);

    std::shared_ptr<Connection> connection_;
};

/// Calls that all ranks make, each in the same order: one rank does it, and all get the result (seed 001
/// section 4.4). One thread a rank.
class HEDDLE_API Collective {
  public:
    explicit Collective(Server& server) : server_(*server.state_) {}

    /// Returns when all ranks have called it. Throws Error kUnavailable where a rank is gone.
    void barrier();
    /// What rank `root` gave, in all ranks.
    [[nodiscard]] std::vector<std::byte> broadcast(std::span<const std::byte> content, Rank root);

    [[nodiscard]] SegmentId create_segment(uint64_t size, const SegmentDescription& description = {});
    void delete_segment(SegmentId segment);
    /// As rank 0 describes it.
    [[nodiscard]] DataId allocate(uint64_t size, SegmentId segment, const DataDescription& description = {});
    void free(DataId data);

  private:
    /// Rank 0 calls `change`; its result or error is everybody's.
    [[nodiscard]] uint64_t on_one(const std::function<uint64_t()>& change);

    ServerState& server_;
};

}  // namespace heddle::memory
