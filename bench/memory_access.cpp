// memory.hit, memory.hit_ipc, memory.direct, memory.miss_*, memory.bunch, memory.put_64k: operations of the
// directory/cache of one rank, against what they cannot do without: memcpy of as many bytes, or pread from
// the same file system; a hit from another process against a packet to that process and back.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <stdexcept>

#include "base/temporary_folder.hpp"
#include "batches.hpp"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: it is all about these
using heddle::bench::against;
using heddle::bench::Figure;

template <class Call>
void alone(const char* name, int calls, const Call& call) {
    Figure figure{.name = name, .unit = "us", .values = {}};
    for (int batch = -1; batch < heddle::bench::kBatches; ++batch) {
        const double one = heddle::bench::each(0, calls, 1e-6, call);
        if (batch >= 0) figure.values.push_back(one);
    }
    print(figure);
}

void hits(bool quick) {
    constexpr uint64_t kRanges = 10'000, kSize = 64;
    const int calls = quick ? 5'000 : 50'000;
    Server server;
    Client client(server);
    const DataId data = client.allocate(kRanges * kSize, client.create_segment(kRanges * kSize));
    const CacheId cache = client.create_cache(kRanges * kSize);
    for (uint64_t i = 0; i < kRanges; ++i)
        client.release(client.get_const({data, {i * kSize, kSize}}, cache));
    std::mt19937 random(1);
    std::vector<GlobalRange> which;
    for (int i = 0; i < calls; ++i) which.push_back({data, {random() % kRanges * kSize, kSize}});
    const auto at = [&](int i) -> const GlobalRange& { return which[static_cast<size_t>(i)]; };

    alone("memory.hit", calls, [&](int i) { client.release(client.get_const(at(i), cache)); });
    alone("memory.hit_future", calls, [&](int i) {
        const OperationResult got = client.execute(op::GetConst{at(i), cache}).get();
        client.release(std::get<ConstLocalRange>(got));
    });
    alone("memory.direct", calls, [&](int i) {
        const OperationResult got = client.execute_sync(op::GetConst{at(i), cache, {}, true});
        client.release(std::get<ConstLocalRange>(got));
    });
    if (client.statistics(cache).misses != kRanges)
        throw std::runtime_error("a hit was none: the figures mean nothing");
}

/// A server in a process of its own, which also sends back each packet that it gets.
class ServerProcess {
  public:
    ServerProcess(uint64_t ranges, uint64_t size) {
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_) != 0)
            throw std::runtime_error("cannot make a pair of sockets");
        child_ = ::fork();
        if (child_ == 0) serve(ranges, size);
        ::close(sockets_[1]);
        if (::recv(sockets_[0], &data, sizeof data, 0) != sizeof data)
            throw std::runtime_error("a memory server did not start");
    }
    ~ServerProcess() {
        ::close(sockets_[0]);
        ::waitpid(child_, nullptr, 0);
    }
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;

    void round_trip() const {
        uint64_t packet = 0;
        if (::send(sockets_[0], &packet, sizeof packet, 0) < 0 || ::recv(sockets_[0], &packet, 8, 0) < 0)
            throw std::runtime_error("the other process is gone");
    }

    const std::string path =
        heddle::TemporaryFolder::place() + "/heddle-bench-" + std::to_string(::getpid()) + ".sock";
    DataId data;

  private:
    [[noreturn]] void serve(uint64_t ranges, uint64_t size) {
        ::close(sockets_[0]);
        {
            Server server;
            const IpcServer socket(server, path);
            Client client(server);
            data = client.allocate(ranges * size, client.create_segment(ranges * size));
            uint64_t packet = data.value;
            do (void)!::send(sockets_[1], &packet, sizeof packet, MSG_NOSIGNAL);
            while (::recv(sockets_[1], &packet, sizeof packet, 0) > 0);
        }
        ::_exit(0);
    }

    int sockets_[2];
    pid_t child_;
};

void hits_from_another_process(bool quick) {
    constexpr uint64_t kRanges = 10'000, kSize = 64;
    const ServerProcess process(kRanges, kSize);
    Client client(process.path);
    const CacheId cache = client.create_cache(kRanges * kSize, {.shareable = true});
    const auto at = [&](uint64_t i) { return GlobalRange{process.data, {i * kSize, kSize}}; };
    for (uint64_t i = 0; i < kRanges; ++i) client.release(client.get_const(at(i), cache));
    std::mt19937 random(1);
    against(
        "memory.hit_ipc", "us", 1e-6, quick ? 1'000 : 10'000,
        [&](int) { client.release(client.get_const(at(random() % kRanges), cache)); },
        [&](int) { process.round_trip(); });
    if (client.statistics(cache).misses != kRanges)
        throw std::runtime_error("a hit was none: the figures mean nothing");
}

/// Gets of ranges in turn, of which the cache holds one: each is a miss.
void misses(const char* name, const char* kind, uint64_t size, int calls) {
    constexpr uint64_t kRanges = 4;
    const std::string folder = heddle::TemporaryFolder::place();
    Server server;
    Client client(server);
    SegmentDescription description{kind, {}};
    const bool file = description.kind == "file";
    if (file) description.options["path"] = folder;
    const std::vector<std::byte> content(kRanges * size, std::byte{1});
    const DataId data = client.allocate_filled(content, client.create_segment(kRanges * size, description));
    const CacheId cache = client.create_cache(size);
    const auto global = [&](int i) {
        return GlobalRange{data, {static_cast<uint64_t>(i) % kRanges * size, size}};
    };

    std::vector<std::byte> to(size);
    const std::string path = folder + "/heddle-bench-" + std::to_string(::getpid());
    const int fd = file ? ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file && ::pwrite(fd, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
        throw std::runtime_error("cannot write " + path);
    against(
        name, "us", 1e-6, calls, [&](int i) { client.release(client.get_const(global(i), cache)); },
        [&](int i) {
            const uint64_t offset = global(i).range.offset;
            if (!file)
                std::memcpy(to.data(), content.data() + offset, size);
            else if (::pread(fd, to.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
                throw std::runtime_error("cannot read " + path);
            asm volatile("" : : "r"(to.data()) : "memory");
        });
    if (!file) return;
    ::close(fd);
    ::unlink(path.c_str());
}

void puts_and_bunches(bool quick) {
    constexpr uint64_t kSize = 64 << 10, kRanges = 64;
    const int calls = quick ? 50 : 1'000;
    Server server;
    Client client(server);
    const std::vector<std::byte> content(2 * kRanges * kSize, std::byte{1});
    const DataId data = client.allocate_filled(content, client.create_segment(content.size()));
    const CacheId cache = client.create_cache(kRanges * kSize);
    std::vector<std::byte> to(content.size());
    {
        const MutableLocalRange own = client.allocate_local(kSize, cache);
        against(
            "memory.put_64k.shm", "us", 1e-6, calls,
            [&](int i) {
                client.put(own, {data, {static_cast<uint64_t>(i) % kRanges * kSize, kSize}});
            },
            [&](int i) {
                std::memcpy(to.data() + static_cast<uint64_t>(i) % kRanges * kSize, content.data(), kSize);
                asm volatile("" : : "r"(to.data()) : "memory");
            });
        client.release(own);
    }
    const auto half = [&](int i) { return static_cast<uint64_t>(i) % 2 * kRanges * kSize; };
    against(
        "memory.bunch.shm", "us", 1e-6, quick ? 4 : 40,
        [&](int i) {
            std::vector<Operation> gets, releases;
            for (uint64_t range = 0; range < kRanges; ++range)
                gets.push_back(op::GetConst{{data, {half(i) + range * kSize, kSize}}, cache});
            for (const OperationResult& got : client.execute_sync(gets))
                releases.push_back(op::Release{std::get<ConstLocalRange>(got)});
            (void)client.execute_sync(releases);
        },
        [&](int i) {
            for (uint64_t range = 0; range < kRanges; ++range)
                std::memcpy(to.data() + range * kSize, content.data() + half(i) + range * kSize, kSize);
            asm volatile("" : : "r"(to.data()) : "memory");
        });
}

void run(bool quick) {
    hits_from_another_process(quick);  // first: it begins another process
    hits(quick);
    misses("memory.miss_64k.shm", "shm", 64 << 10, quick ? 100 : 2'000);
    misses("memory.miss_1m.shm", "shm", 1 << 20, quick ? 10 : 200);
    misses("memory.miss_16m.shm", "shm", 16 << 20, quick ? 1 : 10);
    misses("memory.miss_64k.file", "file", 64 << 10, quick ? 100 : 2'000);
    misses("memory.file_1m", "file", 1 << 20, quick ? 10 : 200);
    puts_and_bunches(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
