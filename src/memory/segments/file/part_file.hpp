// PartFile: one rank's part of a file segment, as a file, perhaps with a checksum for each block in a second
// file, NAME.sums.
//
// Any thread. With checksums, threads of a process take turns, and processes lock the blocks that they read
// or write, since two ranges may lie in one block. A process that is killed while it writes leaves blocks
// whose checksum is wrong: who reads them is told, and a put of a whole block mends it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/os.hpp"

namespace heddle::memory {

class PartFile {
  public:
    static constexpr uint64_t kBlock = 16 * 1024;
    enum class Access { kCreate, kOpen };

    /// Throws Error kSystem.
    PartFile(Access access, std::string path, uint64_t size, bool checksums);
    /// As remove_names().
    ~PartFile();
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;

    /// Both throw Error kSystem: with a full disk before anything is written, and where a block is not what
    /// was written there.
    void read(uint64_t offset, std::byte* to, uint64_t size);
    void write(uint64_t offset, const std::byte* from, uint64_t size);
    /// Throws where a write there would, but for what fails while it writes.
    void prepare_write(uint64_t offset, uint64_t size);

    /// Nobody opens the files that it has created any more, which stay for those who have them open.
    void remove_names() noexcept;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    class BlockLock;

    [[nodiscard]] uint64_t length_of(uint64_t block) const;
    /// A block of zeros, which is what a file has where nobody has written, has the sum 0.
    [[nodiscard]] uint32_t sum_of(uint64_t block, const std::byte* content) const;
    [[nodiscard]] std::vector<uint32_t> read_sums(uint64_t first, uint64_t count) const;
    void check(uint64_t block, const std::byte* content, uint32_t sum) const;
    /// Into scratch_, and checked.
    void read_block(uint64_t block, uint32_t sum);
    void read_checked(uint64_t offset, std::byte* to, uint64_t size);
    void write_checked(uint64_t offset, const std::byte* from, uint64_t size);

    std::string path_;
    uint64_t size_;
    bool has_names_;          ///< that it has made
    Descriptor file_, sums_;  // sums_ is none without checksums
    uint32_t sum_of_zeros_ = 0, sum_of_last_zeros_ = 0;
    std::mutex mutex_;
    std::vector<std::byte> scratch_;
};

}  // namespace heddle::memory
