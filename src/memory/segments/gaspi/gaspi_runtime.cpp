#include "memory/segments/gaspi/gaspi_runtime.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/temporary_folder.hpp"

namespace heddle::memory {
namespace {

/// Of each of the two kinds of ports that GPI-2 has a rank.
constexpr uint16_t kFirstPort = 20'000, kLastPort = 32'000;
constexpr gaspi_segment_id_t kBuffersId = 0;
constexpr uint64_t kBufferSize = 4 << 20;
constexpr size_t kBuffers = 8;
/// At the end of each buffer's place: what a write reads back.
constexpr uint64_t kTail = 64;
constexpr uint64_t kStride = kBufferSize + kTail;
constexpr gaspi_number_t kMostSegments = 200;

bool is_free(uint16_t port) {
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// So many in a row.
uint16_t free_ports(Rank ranks) {
    const uint32_t wanted = 2 * ranks;
    constexpr uint32_t kRoom = kLastPort - kFirstPort;
    // Jobs that start at one time look at different places.
    uint32_t port = kFirstPort + static_cast<uint32_t>(::getpid()) * wanted % kRoom;
    for (uint32_t tried = 0; tried < kRoom; tried += wanted, port += wanted) {
        if (port + wanted > kLastPort) port = kFirstPort;
        bool all = true;
        for (uint32_t i = 0; i < wanted && all; ++i) all = is_free(static_cast<uint16_t>(port + i));
        if (all) return static_cast<uint16_t>(port);
    }
    throw Error(ErrorCode::kUnavailable,
                fmt::format("GASPI needs {} free TCP ports in a row from {} to {}, and there are none",
                            wanted, kFirstPort, kLastPort));
}

struct Place {
    std::string host;
    uint16_t port = 0;
};

Place place_of(const std::string& contact) {
    Place place;
    const size_t space = contact.find(' ');
    place.host = contact.substr(0, space);
    if (space != std::string::npos)
        (void)std::from_chars(contact.data() + space + 1, contact.data() + contact.size(), place.port);
    if (place.host.empty() || place.port == 0)
        throw Error(ErrorCode::kUnavailable, "a rank does not say where GASPI finds it");
    return place;
}

/// What gaspi_run would write: a host a line, in the order of ranks.
void write_machine_file(const std::string& path, const std::vector<Place>& places) {
    std::ofstream file(path);
    for (const Place& place : places) file << place.host << '\n';
    if (!file.flush())
        throw Error(ErrorCode::kSystem, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

/// GPI-2 reads from its environment who it is.
void tell_gpi2(Rank self, const std::vector<Place>& places, const std::string& machines) {
    const auto before = std::count_if(places.begin(), places.begin() + self,
                                      [&](const Place& place) { return place.host == places[self].host; });
    const std::array<std::pair<const char*, std::string>, 6> all{
        {{"GASPI_RANK", std::to_string(self)},
         {"GASPI_NRANKS", std::to_string(places.size())},
         {"GASPI_SOCKET", std::to_string(before)},
         {"GASPI_SET_NUMA_SOCKET", "0"},
         {"GASPI_MASTER", places[0].host},
         {"GASPI_MFILE", machines}}};
    for (const auto& [name, value] : all) set_variable(name, value);
}

void configure(uint16_t port, size_t ranks) {
    gaspi_config_t config;
    check_gaspi(gaspi_config_get(&config), "gaspi_config_get");
    config.sn_port = port;
    if (config.network == GASPI_ETHERNET)
        config.dev_config.params.tcp.port = port + static_cast<gaspi_uint>(ranks);
    config.queue_num = std::max<gaspi_uint>(config.queue_num, kBuffers);
    config.segment_max = std::max(config.segment_max, kMostSegments);
    check_gaspi(gaspi_config_set(config), "gaspi_config_set");
}

}  // namespace

void check_gaspi(gaspi_return_t result, const std::string& what) {
    if (result == GASPI_SUCCESS) return;
    gaspi_string_t text = nullptr;
    std::string reason = result == GASPI_TIMEOUT ? "not all ranks were there in time" : "it says no more";
    if (result != GASPI_TIMEOUT && gaspi_print_error(result, &text) == GASPI_SUCCESS && text != nullptr)
        reason = text;
    std::free(text);
    throw Error(ErrorCode::kSystem, fmt::format("GASPI: {} failed: {}", what, reason));
}

std::string gaspi_version_text() {
    float version = 0;
    check_gaspi(gaspi_version(&version), "gaspi_version");
    return fmt::format("GPI-2 {:.1f}", version);
}

std::string gaspi_contact(Rank ranks) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
    return fmt::format("{} {}", host.data(), free_ports(ranks));
}

Gaspi& Gaspi::started(Rank self, const std::vector<std::string>& contacts) {
    static std::mutex mutex;
    static std::unique_ptr<Gaspi> one;
    const std::lock_guard lock(mutex);
    if (!one) one.reset(new Gaspi(self, contacts));
    if (one->self_ != self || one->ranks_ != contacts.size())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("GASPI was started as rank {} of {} in this process, which cannot be rank {} "
                                "of {} as well: use one server a process",
                                one->self_, one->ranks_, self, contacts.size()));
    return *one;
}

Gaspi::Gaspi(Rank self, const std::vector<std::string>& contacts) : self_(self), ranks_(contacts.size()) {
    const bool by_gaspi_run = std::getenv("GASPI_RANK") != nullptr;
    if (!by_gaspi_run) {
        std::vector<Place> places;
        for (const std::string& contact : contacts) places.push_back(place_of(contact));
        const uint16_t port = places[0].port;
        // The names of other machines mean something to GPI-2; that of this one need not.
        const std::string here = places[0].host;
        if (std::ranges::all_of(places, [&](const Place& place) { return place.host == here; }))
            for (Place& place : places) place.host = "localhost";
        configure(port, ranks_);
        const TemporaryFolder folder("/tmp/heddle-gaspi-");
        const std::string machines = folder.path() + "/machines";
        write_machine_file(machines, places);
        tell_gpi2(self, places, machines);
        check_gaspi(gaspi_proc_init(kPatienceMs), "gaspi_proc_init");
    } else {
        check_gaspi(gaspi_proc_init(kPatienceMs), "gaspi_proc_init");
    }
    gaspi_rank_t rank = 0, ranks = 0;
    check_gaspi(gaspi_proc_rank(&rank), "gaspi_proc_rank");
    check_gaspi(gaspi_proc_num(&ranks), "gaspi_proc_num");
    if (rank != self || ranks != ranks_)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("rank {} of {} servers is rank {} of {} of GASPI, which must be the same for "
                                "segments of kind gaspi",
                                self, ranks_, rank, ranks));
    check_gaspi(gaspi_segment_create(kBuffersId, kBuffers * kStride, GASPI_GROUP_ALL, kPatienceMs,
                                     GASPI_MEM_UNINITIALIZED),
                "gaspi_segment_create for its buffers");
    gaspi_pointer_t memory = nullptr;
    check_gaspi(gaspi_segment_ptr(kBuffersId, &memory), "gaspi_segment_ptr");
    buffers_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < kBuffers; ++i) free_buffers_.push_back(i);
    numbers_.assign(kMostSegments, false);
    numbers_[kBuffersId] = true;
}

class Gaspi::Buffer {
  public:
    explicit Buffer(Gaspi& gaspi) : gaspi_(gaspi), which_(gaspi.take_buffer()) {}
    ~Buffer() {
        {
            const std::lock_guard lock(gaspi_.mutex_);
            gaspi_.free_buffers_.push_back(which_);
        }
        gaspi_.given_back_.notify_one();
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    [[nodiscard]] size_t which() const { return which_; }
    [[nodiscard]] gaspi_queue_id_t queue() const { return static_cast<gaspi_queue_id_t>(which_); }
    [[nodiscard]] uint64_t offset() const { return which_ * kStride; }
    [[nodiscard]] std::byte* memory() const { return gaspi_.buffers_ + offset(); }

  private:
    Gaspi& gaspi_;
    size_t which_;
};

size_t Gaspi::take_buffer() {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [&] { return !free_buffers_.empty(); });
    const size_t which = free_buffers_.back();
    free_buffers_.pop_back();
    return which;
}

void Gaspi::finish(size_t buffer, gaspi_return_t posted, Rank rank) {
    const auto queue = static_cast<gaspi_queue_id_t>(buffer);
    gaspi_return_t ended = posted;
    if (ended == GASPI_SUCCESS) ended = gaspi_wait(queue, kPatienceMs);
    if (ended == GASPI_SUCCESS) return;
    // What is left in the queue would end the next transfer, too.
    (void)pgaspi_queue_purge(queue, kPatienceMs);
    check_gaspi(ended, fmt::format("a transfer from or to rank {}", rank));
}

void Gaspi::read(gaspi_segment_id_t segment, Rank rank, uint64_t offset, std::byte* to, uint64_t size) {
    const Buffer buffer(*this);
    for (uint64_t done = 0; done < size; done += kBufferSize) {
        const uint64_t some = std::min(kBufferSize, size - done);
        finish(buffer.which(),
               gaspi_read(kBuffersId, buffer.offset(), static_cast<gaspi_rank_t>(rank), segment,
                          offset + done, some, buffer.queue(), kPatienceMs),
               rank);
        std::memcpy(to + done, buffer.memory(), some);
    }
}

void Gaspi::write(gaspi_segment_id_t segment, Rank rank, uint64_t offset, const std::byte* from,
                  uint64_t size) {
    const Buffer buffer(*this);
    for (uint64_t done = 0; done < size; done += kBufferSize) {
        const uint64_t some = std::min(kBufferSize, size - done);
        std::memcpy(buffer.memory(), from + done, some);
        gaspi_return_t posted = gaspi_write(kBuffersId, buffer.offset(), static_cast<gaspi_rank_t>(rank),
                                            segment, offset + done, some, buffer.queue(), kPatienceMs);
        // A write has ended here when it has left here. What is read after it, on its way to the same place,
        // comes back when it is there.
        if (posted == GASPI_SUCCESS)
            posted = gaspi_read(kBuffersId, buffer.offset() + kBufferSize, static_cast<gaspi_rank_t>(rank),
                                segment, offset + done + some - 1, 1, buffer.queue(), kPatienceMs);
        finish(buffer.which(), posted, rank);
    }
}

gaspi_segment_id_t Gaspi::take_number() {
    const std::lock_guard lock(mutex_);
    const auto free = std::ranges::find(numbers_, false);
    if (free == numbers_.end())
        throw Error(ErrorCode::kLimit,
                    fmt::format("there are {} segments of kind gaspi already", kMostSegments - 1));
    *free = true;
    return static_cast<gaspi_segment_id_t>(free - numbers_.begin());
}

void Gaspi::give_back(gaspi_segment_id_t number) {
    const std::lock_guard lock(mutex_);
    numbers_[number] = false;
}

}  // namespace heddle::memory
