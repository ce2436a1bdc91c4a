// memory.remote_*, memory.miss_cold, memory.remote_put_64k, memory.idle: operations of the directory/cache
// whose data lie on another rank, in another process, against the raw transport in the same run.
//
// The other rank has nothing to do but to answer. A miss is a transfer, once the home has seen that nobody
// writes; where it is asked, and in memory.miss_cold, a round trip of messages and the transfer.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "base/temporary_folder.hpp"
#include "batches.hpp"
#include "bench/process.hpp"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: it is all about these
using heddle::bench::against;
using heddle::bench::each;
using heddle::bench::Figure;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kLargest = 16 << 20, kRanges = 4;

double seconds_of_processor(int who) {
    rusage usage{};
    ::getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Rank 0 in a process of its own, which answers until the socket is closed; and says what processor time it
/// has used when it is asked.
class Home {
  public:
    explicit Home(const std::string& folder) {
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_) != 0)
            throw std::runtime_error("cannot make a pair of sockets");
        child_ = ::fork();
        if (child_ == 0) {
            ::close(sockets_[0]);
            serve(folder);
        }
        ::close(sockets_[1]);
    }
    ~Home() {
        ::close(sockets_[0]);
        ::waitpid(child_, nullptr, 0);
    }
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;

    [[nodiscard]] double processor_s() const {
        double used = 0;
        if (::send(sockets_[0], "?", 1, 0) != 1 || ::recv(sockets_[0], &used, sizeof used, 0) != sizeof used)
            throw std::runtime_error("the other rank is gone");
        return used;
    }

  private:
    [[noreturn]] void serve(const std::string& folder) const {
        try {
            const Server server({.rank = 0, .ranks = 2, .folder = folder});
            char asked;
            while (::recv(sockets_[1], &asked, 1, 0) > 0) {
                const double used = seconds_of_processor(RUSAGE_SELF);
                if (::send(sockets_[1], &used, sizeof used, MSG_NOSIGNAL) < 0) break;
            }
        } catch (const std::exception& error) {
            std::fprintf(stderr, "rank 0: %s\n", error.what());
            ::_exit(1);
        }
        ::_exit(0);
    }

    int sockets_[2];
    pid_t child_;
};

/// What a get cannot do without: a copy out of memory that another process has, too; or a read of a file.
class Raw {
  public:
    Raw(const std::string& kind, const std::string& folder) : is_file_(kind == "file"), to_(kLargest) {
        const std::string path = folder + "/raw";
        fd_ = is_file_ ? ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                       : ::memfd_create("raw", MFD_CLOEXEC);
        const std::vector<std::byte> content(kRanges * kLargest, std::byte{1});
        if (::pwrite(fd_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
            throw std::runtime_error("cannot write " + path);
        memory_ = static_cast<std::byte*>(
            ::mmap(nullptr, content.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0));
        if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    }
    ~Raw() {
        ::munmap(memory_, kRanges * kLargest);
        ::close(fd_);
    }
    Raw(const Raw&) = delete;
    Raw& operator=(const Raw&) = delete;

    void get(uint64_t offset, uint64_t size) {
        if (!is_file_)
            std::memcpy(to_.data(), memory_ + offset, size);
        else if (::pread(fd_, to_.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
            throw std::runtime_error("cannot read");
        asm volatile("" : : "r"(to_.data()) : "memory");
    }
    void put(uint64_t offset, uint64_t size) {
        std::memcpy(memory_ + offset, to_.data(), size);
        asm volatile("" : : "r"(memory_) : "memory");
    }

  private:
    bool is_file_;
    int fd_;
    std::byte* memory_;
    std::vector<std::byte> to_;
};

struct Far {
    Client& client;
    DataId data;

    [[nodiscard]] GlobalRange range(int i, uint64_t size) const {
        return {data, {static_cast<uint64_t>(i) % kRanges * size, size}};
    }
};

Far far_data(Client& client, const std::string& kind, const std::string& folder) {
    SegmentDescription description{kind, {}};
    if (kind == "file") description.options["path"] = folder;
    // All of it is on rank 0.
    const SegmentId segment = client.create_segment(2 * kRanges * kLargest, description);
    const std::vector<std::byte> content(kRanges * kLargest, std::byte{1});
    return {client, client.allocate_filled(content, segment, {"prefix_filled", {}})};
}

void misses(const Far& far, Raw& raw, const std::string& name, uint64_t size, int calls) {
    const CacheId cache = far.client.create_cache(size);
    against(
        name, "us", 1e-6, calls,
        [&](int i) { far.client.release(far.client.get_const(far.range(i, size), cache)); },
        [&](int i) { raw.get(static_cast<uint64_t>(i) % kRanges * size, size); });
    far.client.delete_cache(cache);
}

void misses(const Far& far, Raw& raw, const std::string& name, const std::string& kind, bool quick) {
    misses(far, raw, name + "_64k." + kind, 64 << 10, quick ? 20 : 500);
    misses(far, raw, name + "_1m." + kind, 1 << 20, quick ? 5 : 50);
    misses(far, raw, name + "_16m." + kind, 16 << 20, quick ? 1 : 4);
}

/// From now on the home is asked for each read: a byte of the allocation has a tag.
void have_asked(const Far& far) {
    const CacheId cache = far.client.create_cache(1);
    const MutableLocalRange byte = far.client.allocate_local(1, cache);
    far.client.put_and_set_tag(byte, {far.data, {kRanges * kLargest - 1, 1}}, Tag{1});
    far.client.release(byte);
    far.client.delete_cache(cache);
}

/// Misses of 64 KiB after a while in which nobody has spoken.
void cold_misses(const Far& far, Raw& raw, bool quick) {
    constexpr uint64_t kSize = 64 << 10;
    const CacheId cache = far.client.create_cache(kSize);
    Figure figure{.name = "memory.miss_cold", .unit = "us", .values = {}};
    std::vector<double> peer;
    for (int i = 0; i < (quick ? 5 : 101); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        figure.values.push_back(each(
            i, 1, 1e-6, [&](int) { far.client.release(far.client.get_const(far.range(i, kSize), cache)); }));
        peer.push_back(
            each(i, 1, 1e-6, [&](int) { raw.get(static_cast<uint64_t>(i) % kRanges * kSize, kSize); }));
    }
    figure.peer_median = heddle::bench::median(peer);
    print(figure);
    far.client.delete_cache(cache);
}

void puts(const Far& far, Raw& raw, int calls) {
    constexpr uint64_t kSize = 64 << 10;
    const CacheId cache = far.client.create_cache(kSize);
    const MutableLocalRange own = far.client.allocate_local(kSize, cache);
    against(
        "memory.remote_put_64k.shm", "us", 1e-6, calls,
        [&](int i) { far.client.put(own, far.range(i, kSize)); },
        [&](int i) { raw.put(static_cast<uint64_t>(i) % kRanges * kSize, kSize); });
    far.client.release(own);
    far.client.delete_cache(cache);
}

/// What both servers use of a processor while nobody asks for anything.
void idle(const Home& home, bool quick) {
    Figure figure{.name = "memory.idle", .unit = "%", .values = {}};
    for (int i = 0; i < (quick ? 1 : 3); ++i) {
        const double before = home.processor_s() + seconds_of_processor(RUSAGE_SELF);
        const Clock::time_point start = Clock::now();
        std::this_thread::sleep_for(std::chrono::milliseconds(quick ? 200 : 1000));
        const double used = home.processor_s() + seconds_of_processor(RUSAGE_SELF) - before;
        figure.values.push_back(100 * used / std::chrono::duration<double>(Clock::now() - start).count());
    }
    print(figure);
}

/// By a program of its own, which is built where there is an Open MPI.
void by_mpi(bool quick) {
    const std::string program = heddle::bench::own_folder() / "gets_mpi";
    if (::access(program.c_str(), X_OK) != 0) return;
    heddle::bench::Command command{{"mpirun.openmpi", "--oversubscribe", "-n", "2", program},
                                   {"HEDDLE_ARBITER=off", "HEDDLE_MPI=openmpi", "OMPI_ALLOW_RUN_AS_ROOT=1",
                                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_plm=isolated",
                                    "OMPI_MCA_hwloc_base_binding_policy=none"},
                                   {}};
    if (quick) command.argv.emplace_back("--quick");
    const auto outcome = heddle::bench::run_together({&command, 1}, std::chrono::seconds(120)).front();
    if (outcome.exit_code != 0) throw std::runtime_error("gets_mpi: " + outcome.output + outcome.errors);
    std::fputs(outcome.output.c_str(), stdout);
}

void run(bool quick) {
    by_mpi(quick);
    const heddle::TemporaryFolder folder(heddle::TemporaryFolder::place() + "/heddle-bench-");
    const Home home(folder.path());
    Server server({.rank = 1, .ranks = 2, .folder = folder.path()});
    Client client(server);
    for (const std::string kind : {"shm", "file"}) {
        Raw raw(kind, folder.path());
        const Far far = far_data(client, kind, folder.path());
        misses(far, raw, "memory.remote", kind, quick);
        if (kind == "shm") puts(far, raw, quick ? 20 : 500);
        have_asked(far);
        misses(far, raw, "memory.remote_asked", kind, quick);
        if (kind == "shm") cold_misses(far, raw, quick);
    }
    idle(home, quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
