#include "memory/ipc_connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/failpoint.h"
#include "base/packet_socket.hpp"
#include "base/settings.hpp"
#include "base/signals_blocked.hpp"

namespace heddle::memory {
namespace {

constexpr int kWelcomedWithinMs = 5000;
/// Of a server that does not go on reading: it is stopped.
constexpr int kHeardWithinMs = 5000;
/// Of the cache by which allocations are filled.
constexpr uint64_t kFillPiece = 4 << 20;

struct Incoming {
    std::byte bytes[ipc::kMaxPacket];
    size_t size = 0;
    std::vector<Descriptor> descriptors;
};

/// False: the peer is gone. Blocks.
bool read_packet(int fd, Incoming& incoming) {
    std::array<Descriptor, 4> descriptors;
    const ssize_t got = receive_packet(fd, incoming.bytes, descriptors);
    if (got <= 0) return false;
    for (Descriptor& one : descriptors)
        if (one.valid()) incoming.descriptors.push_back(std::move(one));
    incoming.size = static_cast<size_t>(got);
    return true;
}

/// `path` where it is not empty, or what HEDDLE_MEMORY names: then whoever listens there is meant. At the
/// usual place another user may have been first, where that is in a folder for all.
Descriptor connect_to(const std::string& path, bool named) {
    Descriptor socket = connect_to_packet_socket(path);
    if (!socket.valid())
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("no memory server listens at {} ({}): start one by heddle memory serve, or "
                                "name its socket in HEDDLE_MEMORY",
                                path, std::strerror(errno)));
    ucred server{};
    socklen_t size = sizeof server;
    if (named || (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 &&
                  (server.uid == ::geteuid() || server.uid == 0)))
        return socket;
    throw Error(
        ErrorCode::kPermission,
        fmt::format("the memory server at {} is of user {}, not of user {}: start your own by heddle memory "
                    "serve PATH, or name this one in HEDDLE_MEMORY if you trust it with your data",
                    path, server.uid, ::geteuid()));
}

/// So many at a time; once where there is none, so that the server is asked.
template <class Value>
std::vector<std::span<const Value>> in_packets(const std::vector<Value>& values) {
    std::vector<std::span<const Value>> packets;
    std::span<const Value> rest(values);
    do {
        packets.push_back(rest.first(std::min(kMostInSurvey, rest.size())));
        rest = rest.subspan(packets.back().size());
    } while (!rest.empty());
    return packets;
}

}  // namespace

IpcConnection::IpcConnection(const std::string& path)
    : path_(path.empty() ? ipc::usual_path() : path),
      socket_(connect_to(path_, !path.empty() || !setting("HEDDLE_MEMORY").empty())),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      server_process_(peer_process(socket_.get())) {
    HEDDLE_FAILPOINT(memory_connected);
    if (!wake_.valid())
        throw Error(ErrorCode::kSystem, fmt::format("cannot watch a socket: {}", std::strerror(errno)));
    say_hello();
    HEDDLE_FAILPOINT(memory_is_welcomed);
    const SignalsBlocked blocked;
    thread_ = std::thread([this] {
        run();
        const auto last_owner = std::move(until_it_ends_);
    });
    thread_id_ = thread_.get_id();
}

IpcConnection::~IpcConnection() {
    leave();
}

void IpcConnection::say_hello() {
    const Packet hello = ipc::packet_of(1, ipc::Hello{::program_invocation_short_name});
    last_number_ = 1;
    // A server that refuses has said so and closed: what it said is still there to be read.
    (void)!::send(socket_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    Incoming incoming;
    if (!wait_for_packet(socket_.get(), kWelcomedWithinMs) || !read_packet(socket_.get(), incoming))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("what listens at {} does not answer as a memory server", path_));
    const std::span<const std::byte> packet(incoming.bytes, incoming.size);
    const auto version = ipc::version_of(packet);
    if (version && *version != ipc::kVersion)
        throw Error(ErrorCode::kVersionMismatch,
                    fmt::format("the memory server at {} speaks version {} of the protocol, this program {}: "
                                "use one heddle for both",
                                path_, *version, ipc::kVersion));
    const auto reply = ipc::parse_reply(packet);
    if (reply && std::holds_alternative<ipc::Failure>(reply->content))
        ipc::raise(std::get<ipc::Failure>(reply->content));
    if (!reply || !std::holds_alternative<ipc::Welcome>(reply->content))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("what listens at {} does not answer as a memory server", path_));
    rank_ = std::get<ipc::Welcome>(reply->content).rank;
}

void IpcConnection::leave() noexcept {
    {
        const Lock lock(mutex_);
        if (std::exchange(left_, true)) return;
        try {
            send(ipc::packet_of(0, ipc::Request(ipc::Goodbye{})));
        } catch (const std::exception&) {
            // Without memory it leaves as one that dies.
        }
    }
    send_rest();
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (!is_own_thread()) return thread_.join();
    end_all();
    until_it_ends_ = shared_from_this();
    thread_.detach();
}

void IpcConnection::send_rest() noexcept {
    Lock lock(mutex_);
    flush(lock);
    while (!outgoing_.empty() && !gone_) {
        lock.unlock();
        pollfd room{socket_.get(), POLLOUT, 0};
        const int ready = ::poll(&room, 1, kHeardWithinMs);
        if (ready == 0 || (ready < 0 && errno != EINTR)) return;
        lock.lock();
        flush(lock);
    }
}

void IpcConnection::check_there() const {
    if (left_) throw MemoryError(MemoryErrorCode::kCancelled, "its client has left");
    if (gone_)
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("the memory server at {} is gone: make a new client when there is one again", path_));
}

// Sending. The caller has the lock.
void IpcConnection::send(Packet packet) {
    if (outgoing_.empty()) {
        const ssize_t sent = ::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        // One that is gone the thread will see.
        if (sent >= 0 || !is_passing(-errno)) return;
    }
    outgoing_.push_back(std::move(packet));
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

void IpcConnection::flush(Lock&) {
    while (!outgoing_.empty()) {
        const Packet& packet = outgoing_.front();
        const ssize_t sent = ::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && is_passing(-errno)) return;
        outgoing_.pop_front();
    }
}

void IpcConnection::run() {
    while (take_turn())
        ;
}

bool IpcConnection::take_turn() {
    bool waits_for_room = false;
    {
        Lock lock(mutex_);
        flush(lock);
        waits_for_room = !outgoing_.empty();
    }
    pollfd ready[] = {{socket_.get(), static_cast<short>(POLLIN | (waits_for_room ? POLLOUT : 0)), 0},
                      {wake_.get(), POLLIN, 0},
                      {server_process_.get(), POLLIN, 0}};
    if (::poll(ready, std::size(ready), -1) < 0) return true;
    uint64_t count;
    if (ready[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
    const bool says_something = (ready[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    const bool is_there = says_something ? receive() : ready[2].revents == 0;
    if (!is_there) end_all();
    return is_there;
}

bool IpcConnection::receive() {
    Incoming incoming;
    if (!read_packet(socket_.get(), incoming)) return false;
    auto reply = ipc::parse_reply({incoming.bytes, incoming.size});
    if (!reply) return false;
    HEDDLE_FAILPOINT(memory_was_answered);
    take(reply->number, {std::move(reply->content), std::move(incoming.descriptors)});
    return true;
}

void IpcConnection::take(uint64_t number, Answer answer) {
    Lock lock(mutex_);
    if (auto asked = questions_.extract(number)) {
        asked.mapped()->answer = std::move(answer);
        lock.unlock();
        return asked.mapped()->answered.signal();
    }
    auto found = running_.extract(number);
    if (found.empty()) return;
    if (found.mapped().writes) --writing_;
    const std::shared_ptr<OperationState> state = found.mapped().state;
    const bool tells = state->end(outcome_of(answer.content, found.mapped()));
    lock.unlock();
    if (tells) state->tell();
}

void IpcConnection::end_all() {
    Lock lock(mutex_);
    gone_ = true;
    const auto questions = std::exchange(questions_, {});
    const auto running = std::exchange(running_, {});
    held_.clear();
    std::exception_ptr why;
    try {
        check_there();
    } catch (...) {
        why = std::current_exception();
    }
    std::vector<std::shared_ptr<OperationState>> told;
    for (const auto& [number, one] : running)
        if (one.state->end(why)) told.push_back(one.state);
    lock.unlock();
    for (const auto& [number, question] : questions) question->answered.signal();
    for (const auto& state : told) state->tell();
}

// Asking.
IpcConnection::Answer IpcConnection::ask(ipc::Request request) {
    const auto question = std::make_shared<Question>();
    {
        const Lock lock(mutex_);
        check_there();
        Packet packet = ipc::packet_of(last_number_ + 1, request);
        questions_.emplace(++last_number_, question);
        send(std::move(packet));
    }
    HEDDLE_FAILPOINT(memory_has_asked);
    // The function of a bunch asks, in the thread that receives the answer.
    if (is_own_thread())
        while (!question->answer && take_turn())
            ;
    question->answered.block_until_signalled();
    if (!question->answer) {
        const Lock lock(mutex_);
        check_there();
    }
    if (const auto* failure = std::get_if<ipc::Failure>(&question->answer->content)) ipc::raise(*failure);
    return std::move(*question->answer);
}

template <class Content>
Content IpcConnection::ask_for(ipc::Request request) {
    const Answer answer = ask(std::move(request));
    if (const auto* content = std::get_if<Content>(&answer.content)) return *content;
    throw Error(ErrorCode::kSystem, fmt::format("the memory server at {} answers another question", path_));
}

SegmentId IpcConnection::create_segment(uint64_t size, const SegmentDescription& description) {
    return {ask_for<ipc::Created>(ipc::CreateSegment{size, description}).id};
}
void IpcConnection::delete_segment(SegmentId segment) {
    (void)ask(ipc::DeleteSegment{segment});
}
std::vector<uint64_t> IpcConnection::free_bytes(SegmentId segment) {
    return ask_for<ipc::FreeBytes>(ipc::AskFreeBytes{segment}).ranks;
}
DataId IpcConnection::allocate(uint64_t size, SegmentId segment, const Placement& placement) {
    return {ask_for<ipc::Created>(ipc::AllocateData{size, segment, placement}).id};
}
void IpcConnection::free(DataId data) {
    (void)ask(ipc::FreeData{data});
    const Lock lock(mutex_);
    reserved_.erase(data);
}
void IpcConnection::reserve_versions(DataId data, uint32_t count) {
    {
        const Lock lock(mutex_);
        const auto known = reserved_.find(data);
        if (known != reserved_.end() && known->second >= count) return;
    }
    (void)ask(ipc::ReserveVersions{data, count});
    const Lock lock(mutex_);
    reserved_[data] = std::max(reserved_[data], count);
}
void IpcConnection::register_reader(const GlobalRange& global, bool reads) {
    (void)ask(ipc::RegisterReader{global, reads});
}

void IpcConnection::fill(DataId data, std::span<const std::byte> content) {
    if (content.empty()) return;
    const CacheId cache = create_cache(std::min<uint64_t>(content.size(), kFillPiece), {});
    // Where it fails the cache goes with the client.
    for (uint64_t offset = 0; offset < content.size(); offset += kFillPiece) {
        const uint64_t size = std::min(content.size() - offset, kFillPiece);
        const auto own = std::get<MutableLocalRange>(execute_sync(op::Allocate{size, cache}));
        std::memcpy(own.pointer(), content.data() + offset, size);
        (void)execute_sync(op::Put{own, {data, {offset, size}}, {}, true});
    }
    delete_cache(cache);
}

void IpcConnection::map_answer(Answer& answer) {
    const auto* const is = std::get_if<ipc::CacheIs>(&answer.content);
    if (is == nullptr || answer.regions.size() != (is->writable ? 3u : 4u))
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} shows no cache when asked for one", path_));
    auto region = answer.regions.begin();
    const auto map = [&](uint64_t size, bool writable) {
        return std::make_unique<MemoryRegion>(std::move(*region++), size, writable);
    };
    const uint32_t listings = listings_of(is->size);
    Mapped mapped;
    mapped.payload = map(is->size, is->writable);
    if (!is->writable) mapped.staging = map(is->size, true);
    mapped.listings = map(listings * sizeof(CopyListing), false);
    mapped.pins = map(sizeof(PinPage), true);
    mapped.copies = std::make_unique<PinnedCopies>(
        std::span(reinterpret_cast<const CopyListing*>(mapped.listings->data()), listings),
        *reinterpret_cast<PinPage*>(mapped.pins->data()));
    HEDDLE_FAILPOINT(memory_has_mapped);
    const Lock lock(mutex_);
    caches_.emplace(is->cache, std::move(mapped));  // another thread may have been first
}

CacheId IpcConnection::create_cache(uint64_t size, const CacheOptions& options) {
    Answer answer = ask(ipc::CreateCache{size, options});
    map_answer(answer);
    return std::get<ipc::CacheIs>(answer.content).cache;
}

void IpcConnection::map_cache(CacheId cache) {
    if (cache == CacheId{}) return;
    {
        const Lock lock(mutex_);
        if (caches_.contains(cache)) return;
    }
    Answer answer = ask(ipc::AttachCache{cache});
    map_answer(answer);
}

void IpcConnection::delete_cache(CacheId cache) {
    map_cache(cache);
    const auto forget = [&] {
        const Lock lock(mutex_);
        caches_.erase(cache);
    };
    try {
        (void)ask(ipc::DeleteCache{cache});
    } catch (const MemoryError&) {  // somebody else has deleted it
        forget();
        throw;
    }
    forget();
}

CacheStatistics IpcConnection::statistics(CacheId cache) {
    map_cache(cache);
    return ask_for<CacheStatistics>(ipc::AskStatistics{cache});
}

std::string IpcConnection::ask_for_text(ipc::Request request) {
    Answer answer = ask(std::move(request));
    const auto* const is = std::get_if<ipc::TextIs>(&answer.content);
    if (is == nullptr || answer.regions.size() != 1)
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} answers another question", path_));
    MemoryRegion region(std::move(answer.regions[0]), is->size, false);
    return {reinterpret_cast<const char*>(region.data()), static_cast<size_t>(region.size())};
}

std::string IpcConnection::status() {
    return ask_for_text(ipc::AskStatus{});
}

Inventory IpcConnection::inventory() {
    try {
        const auto shown = nlohmann::json::parse(status());
        Inventory all;
        for (const auto& row : shown.at("segments"))
            all.segments.push_back({{row.at("id")}, row.at("kind"), row.at("options"), row.at("size")});
        for (const auto& row : shown.at("allocations"))
            all.allocations.push_back(
                {{row.at("id")}, {row.at("segment")}, row.at("size"), row.at("distribution")});
        return all;
    } catch (const nlohmann::json::exception&) {
        throw Error(ErrorCode::kSystem,
                    fmt::format("the memory server at {} does not tell what it has", path_));
    }
}

std::vector<TransferCost> IpcConnection::transfer_costs(const std::vector<PlannedTransfer>& transfers) {
    std::map<Rank, TransferCost> sums;
    for (const std::span<const PlannedTransfer> some : in_packets(transfers)) {
        const auto part = ask_for<ipc::CostsAre>(ipc::AskCosts{{some.begin(), some.end()}});
        for (const TransferCost& cost : part.ranks) {
            sums[cost.rank].rank = cost.rank;
            sums[cost.rank].seconds += cost.seconds;
        }
    }
    std::vector<TransferCost> costs;
    for (const auto& [rank, cost] : sums) costs.push_back(cost);
    std::ranges::stable_sort(costs, {}, &TransferCost::seconds);
    return costs;
}

std::vector<DataLocality> IpcConnection::data_locality(const std::vector<GlobalRange>& ranges) {
    std::vector<DataLocality> all;
    for (const std::span<const GlobalRange> some : in_packets(ranges))
        std::ranges::move(localities_in(ask_for_text(ipc::AskLocality{{some.begin(), some.end()}})),
                          std::back_inserter(all));
    return all;
}

}  // namespace heddle::memory
