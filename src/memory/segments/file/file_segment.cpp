// Segments in files of a folder that all ranks see, as BeeGFS or NFS mounts one: one file a rank, sparse,
// which is gone with the segment. Transfers are pread and pwrite by whoever needs them.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/os.hpp"
#include "memory/segment.hpp"

namespace heddle::memory {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
    const int reason = errno;
    throw Error(ErrorCode::kSystem, fmt::format("cannot {} {}: {}{}", what, path, std::strerror(reason),
                                                reason == ENOSPC ? "; free some room there" : ""));
}

class FileSegment final : public Segment {
  public:
    FileSegment(const SegmentPlan& plan, const std::string& folder)
        : path_(fmt::format("{}/heddle-segment-{}-{}.{}", folder, ::getpid(), plan.id.value, plan.self)),
          self_(plan.self) {
        for (Rank rank = 0; rank < plan.part_sizes.size(); ++rank) parts_.push_back({path_, Descriptor()});
        Descriptor& own = parts_[self_].file;
        own = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!own.valid()) fail("create", path_);
        if (::ftruncate(own.get(), static_cast<off_t>(plan.part_sizes[plan.self])) == 0) return;
        const int reason = errno;
        ::unlink(path_.c_str());
        errno = reason;
        fail("give its size to", path_);
    }
    ~FileSegment() override { ::unlink(path_.c_str()); }
    FileSegment(const FileSegment&) = delete;
    FileSegment& operator=(const FileSegment&) = delete;

    std::byte* address() noexcept override { return nullptr; }
    std::string contact() const override { return path_; }
    void attach(const std::vector<std::string>& contacts) override {
        for (Rank rank = 0; rank < contacts.size(); ++rank) {
            if (rank == self_) continue;
            parts_[rank] = {contacts[rank], Descriptor(::open(contacts[rank].c_str(), O_RDWR | O_CLOEXEC))};
            if (!parts_[rank].file.valid())
                fail(fmt::format("open rank {}'s part of a segment (do all ranks see the folder?),", rank),
                     contacts[rank]);
        }
    }
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        const auto& [path, file] = parts_[rank];
        while (size > 0) {
            const ssize_t count = ::pread(file.get(), to, size, static_cast<off_t>(offset));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) fail("read", path);
            if (count == 0)
                throw Error(ErrorCode::kSystem,
                            fmt::format("{} ends before offset {}: somebody has cut it short", path, offset));
            offset += static_cast<uint64_t>(count);
            to += count;
            size -= static_cast<uint64_t>(count);
        }
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        const auto& [path, file] = parts_[rank];
        while (size > 0) {
            const ssize_t count = ::pwrite(file.get(), from, size, static_cast<off_t>(offset));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) fail("write", path);
            offset += static_cast<uint64_t>(count);
            from += count;
            size -= static_cast<uint64_t>(count);
        }
    }

  private:
    struct Part {
        std::string path;
        Descriptor file;
    };
    std::string path_;  // of this rank's part
    Rank self_;
    std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Segment> create_file_segment(const SegmentPlan& plan) {
    plan.allow_only({"path"}, "file");
    return std::make_unique<FileSegment>(plan, plan.option("path"));
}

}  // namespace heddle::memory
