// Segments in files of a folder that all ranks see, as BeeGFS or NFS mounts one: one file a rank, sparse,
// whose name is gone as soon as all ranks have opened it, and which goes with the last process that has it,
// whatever that dies of. Transfers are pread and pwrite by whoever needs them.
#include <fmt/format.h>
#include <unistd.h>

#include "memory/segment.hpp"
#include "memory/segments/file/part_file.hpp"

namespace heddle::memory {
namespace {

constexpr int kMostOfOneName = 10'000;

class FileSegment final : public Segment {
  public:
    FileSegment(const SegmentPlan& plan, const std::string& folder, bool checksums)
        : self_(plan.self), sizes_(plan.part_sizes), checksums_(checksums), parts_(plan.part_sizes.size()) {
        parts_[self_] =
            create(fmt::format("{}/heddle-segment-{}-{}.{}", folder, ::getpid(), plan.id.value, plan.self));
    }

    std::byte* address() noexcept override { return nullptr; }
    std::string contact() const override { return parts_[self_]->path(); }
    void attach(const std::vector<std::string>& contacts) override {
        for (Rank rank = 0; rank < contacts.size(); ++rank)
            if (rank != self_) parts_[rank] = open(rank, contacts[rank]);
    }
    void seal() override { parts_[self_]->remove_names(); }
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        parts_[rank]->read(offset, to, size);
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        parts_[rank]->write(offset, from, size);
    }
    void prepare_write(Rank rank, uint64_t offset, uint64_t size) override {
        parts_[rank]->prepare_write(offset, size);
    }

  private:
    /// Another process may have had this number and been killed, as where each container has its own first
    /// one, or may have it on another host that sees the folder.
    [[nodiscard]] std::unique_ptr<PartFile> create(const std::string& name) const {
        for (int other = 0;; ++other) {
            const std::string path = other == 0 ? name : fmt::format("{}-{}", name, other);
            try {
                return std::make_unique<PartFile>(PartFile::Access::kCreate, path, sizes_[self_], checksums_);
            } catch (const Error&) {
                const bool is_taken = ::access(path.c_str(), F_OK) == 0 ||
                                      (checksums_ && ::access((path + ".sums").c_str(), F_OK) == 0);
                if (!is_taken || other == kMostOfOneName) throw;
            }
        }
    }
    [[nodiscard]] std::unique_ptr<PartFile> open(Rank rank, const std::string& path) const {
        try {
            return std::make_unique<PartFile>(PartFile::Access::kOpen, path, sizes_[rank], checksums_);
        } catch (const Error& error) {
            throw Error(error.code(),
                        fmt::format("rank {}'s part of a segment: {}; do all ranks see the folder?", rank,
                                    error.what()));
        }
    }

    Rank self_;
    std::vector<uint64_t> sizes_;
    bool checksums_;
    std::vector<std::unique_ptr<PartFile>> parts_;
};

}  // namespace

std::unique_ptr<Segment> create_file_segment(const SegmentPlan& plan) {
    plan.allow_only({"path", "checksums"}, "file");
    const bool checksums = plan.option("checksums", {"none", "crc32c"}) == "crc32c";
    return std::make_unique<FileSegment>(plan, plan.option("path"), checksums);
}

}  // namespace heddle::memory
