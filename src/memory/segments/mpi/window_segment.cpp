// Parts of a segment in an MPI window, which every rank locks once, shared and for good (passive target). In
// a shared window a transfer is memcpy; in another one an MPI_Get or MPI_Put, and the flush that ends it.
//
// MPI need not move bytes from and to a rank whose threads are all elsewhere (MPICH 4.0 does not), so each
// rank has a thread that looks into MPI now and then while there are windows that are not shared.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/signals_blocked.hpp"
#include "memory/segments/mpi/mpi_runtime.hpp"
#include "memory/segments/mpi/mpi_segments.hpp"
#include "memory/segments/mpi/patience.hpp"

namespace heddle::memory {
namespace {

/// MPICH 4.0 puts and gets at wrong places where a part before another one is no multiple of 64 bytes.
constexpr uint64_t kPage = 4096;

/// Windows are in shared memory, and are filled when they are made.
uint64_t room_for_windows() {
    uint64_t room = UINT64_MAX / 4;
    struct statvfs shared {};
    if (::statvfs("/dev/shm", &shared) == 0 && shared.f_blocks > 0)
        room = std::min<uint64_t>(room, uint64_t{shared.f_bavail} * shared.f_frsize);
    std::ifstream memory("/proc/meminfo");
    for (std::string line; std::getline(memory, line);)
        if (line.starts_with("MemAvailable:"))
            room = std::min<uint64_t>(
                room, std::strtoull(line.c_str() + std::strlen("MemAvailable:"), nullptr, 10) << 10u);
    return room;
}

class WindowSegment final : public Segment {
  public:
    /// Nothing may be done with it but to open() it.
    WindowSegment(Window kind, Rank self)
        : kind_(kind),
          self_(self),
          all_(communicator_of_changes().get()),
          parts_(communicator_of_changes().ranks()) {}
    ~WindowSegment() override {
        if (!mpi_is_running()) return;
        wait_for_all();
        stopping_ = true;
        if (progress_.joinable()) progress_.join();
        if (locked_) MPI_Win_unlock_all(window_);
        // One that not all ranks have cannot be freed, which all would have to do.
        if (whole_) MPI_Win_free(&window_);
    }
    WindowSegment(const WindowSegment&) = delete;
    WindowSegment& operator=(const WindowSegment&) = delete;

    /// By all ranks. Why it cannot be used, on any of them.
    [[nodiscard]] std::string open(uint64_t size) {
        std::string problem = all_.first_problem(problem_of([&] { check_room(size); }));
        if (!problem.empty()) return problem;
        problem = all_.first_problem(problem_of([&] { allocate(size); }));
        whole_ = problem.empty();
        if (whole_) problem = all_.first_problem(problem_of([&] { prepare(size); }));
        if (!problem.empty() || kind_ == Window::kShared) return problem;
        const SignalsBlocked blocked;
        progress_ = std::thread([this] { look_into_mpi(); });
        return {};
    }

    std::byte* address() noexcept override { return parts_[self_]; }
    std::string contact() const override { return "window"; }
    void attach(const std::vector<std::string>&) override {}
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        if (parts_[rank] != nullptr) {
            MPI_Win_sync(window_);
            std::memcpy(to, parts_[rank] + offset, size);
            return;
        }
        for (uint64_t done = 0; done < size; done += kMostAtOnce) {
            const int count = static_cast<int>(std::min(kMostAtOnce, size - done));
            check_mpi(MPI_Get(to + done, count, MPI_BYTE, static_cast<int>(rank),
                              static_cast<MPI_Aint>(offset + done), count, MPI_BYTE, window_),
                      fmt::format("MPI_Get from rank {}", rank));
        }
        flush(rank);
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        if (parts_[rank] != nullptr) {
            std::memmove(parts_[rank] + offset, from, size);  // it may be of the same part
            MPI_Win_sync(window_);
            return;
        }
        for (uint64_t done = 0; done < size; done += kMostAtOnce) {
            const int count = static_cast<int>(std::min(kMostAtOnce, size - done));
            check_mpi(MPI_Put(from + done, count, MPI_BYTE, static_cast<int>(rank),
                              static_cast<MPI_Aint>(offset + done), count, MPI_BYTE, window_),
                      fmt::format("MPI_Put to rank {}", rank));
        }
        flush(rank);
    }

  private:
    template <class Step>
    [[nodiscard]] static std::string problem_of(const Step& step) {
        try {
            step();
            return {};
        } catch (const Error& error) {
            return error.what();
        }
    }

    /// MPI would wait for good for what one rank cannot have, or have it and be killed.
    void check_room(uint64_t size) const {
        if (kind_ == Window::kShared && all_.ranks_of_machine() != all_.ranks())
            throw Error(ErrorCode::kUnavailable, "shared windows need all ranks on one machine");
        const uint64_t room = room_for_windows();
        if (size > room / all_.ranks_of_machine())
            throw Error(
                ErrorCode::kSystem,
                fmt::format("a window of {} bytes a rank does not fit into the {} bytes that are free here",
                            size, room));
    }
    void allocate(uint64_t size) {
        const auto bytes = static_cast<MPI_Aint>((size + kPage - 1) / kPage * kPage);
        auto* const base = static_cast<void*>(&parts_[self_]);
        const bool shared = kind_ == Window::kShared;
        const int made = shared ? MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, all_.get(), base, &window_)
                                : MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, all_.get(), base, &window_);
        check_mpi(made, fmt::format("{} of {} bytes", shared ? "MPI_Win_allocate_shared" : "MPI_Win_allocate",
                                    size));
    }
    /// Where all ranks have the window.
    void prepare(uint64_t size) {
        check_mpi(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
        int* model = nullptr;
        int known = 0;
        check_mpi(MPI_Win_get_attr(window_, MPI_WIN_MODEL, static_cast<void*>(&model), &known),
                  "MPI_Win_get_attr");
        if (known == 0 || *model != MPI_WIN_UNIFIED)
            throw Error(ErrorCode::kUnavailable,
                        "its windows have two copies of their memory (MPI_WIN_SEPARATE)");
        check_mpi(MPI_Win_lock_all(0, window_), "MPI_Win_lock_all");
        locked_ = true;
        if (size > 0) std::memset(parts_[self_], 0, size);
        check_mpi(MPI_Win_sync(window_), "MPI_Win_sync");
        for (Rank rank = 0; kind_ == Window::kShared && rank < parts_.size(); ++rank) {
            MPI_Aint its_size = 0;
            int unit = 0;
            check_mpi(MPI_Win_shared_query(window_, static_cast<int>(rank), &its_size, &unit,
                                           static_cast<void*>(&parts_[rank])),
                      "MPI_Win_shared_query");
        }
    }
    void flush(Rank rank) {
        check_mpi(MPI_Win_flush(static_cast<int>(rank), window_),
                  fmt::format("MPI_Win_flush of rank {}", rank));
    }
    void look_into_mpi() {
        for (Patience patience; !stopping_; patience.nap()) {
            int arrived = 0;  // nothing ever does
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, all_.get(), &arrived, MPI_STATUS_IGNORE);
        }
    }
    /// Others may be moving bytes from and to this rank, and sleep before they come here.
    void wait_for_all() {
        MPI_Request all;
        int done = 0;
        if (!whole_ || MPI_Ibarrier(all_.get(), &all) != MPI_SUCCESS) return;
        for (Patience patience; MPI_Test(&all, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;)
            patience.nap();
    }

    Window kind_;
    Rank self_;
    Communicator all_;
    std::vector<std::byte*> parts_;  // null: no address here
    MPI_Win window_ = MPI_WIN_NULL;
    bool whole_ = false, locked_ = false;
    std::atomic<bool> stopping_{false};
    std::thread progress_;
};

/// What `from` writes for `to`.
void fill(std::vector<std::byte>& pattern, Rank from, Rank to) {
    for (size_t i = 0; i < pattern.size(); ++i)
        pattern[i] = static_cast<std::byte>(i * 31 + from * 7 + to * 13 + 1);
}

}  // namespace

std::unique_ptr<Segment> make_window_segment(Window kind, Rank self, uint64_t size, std::string& problem) {
    auto made = std::make_unique<WindowSegment>(kind, self);
    problem = made->open(size);
    if (!problem.empty()) return nullptr;
    return made;
}

std::string test_windows(Window kind) {
    constexpr uint64_t kSize = 40'007;  // longer than what MPIs copy at once
    const Communicator& all = communicator_of_changes();
    const Rank self = all.rank(), ranks = all.ranks();
    std::string problem;
    const std::unique_ptr<Segment> segment = make_window_segment(kind, self, kSize * ranks, problem);
    if (!segment) return problem;
    std::vector<std::byte> expected(kSize), found(kSize);
    const auto compare = [&](Rank reader, Rank writer) {
        fill(expected, writer, reader);
        if (problem.empty() && found != expected)
            problem =
                fmt::format("what rank {} put into a window of rank {} is not found there", writer, reader);
    };
    try {
        for (Rank to = 0; to < ranks; ++to) {
            fill(expected, self, to);
            segment->write(to, self * kSize, expected.data(), kSize);
        }
        check_mpi(MPI_Barrier(all.get()), "MPI_Barrier");
        for (Rank other = 0; other < ranks; ++other) {
            segment->read(self, other * kSize, found.data(), kSize);
            compare(self, other);
            segment->read(other, self * kSize, found.data(), kSize);
            compare(other, self);
        }
    } catch (const Error& error) {
        problem = error.what();
    }
    return all.first_problem(problem);
}

}  // namespace heddle::memory
