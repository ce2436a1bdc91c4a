// The file of a checkpoint (docs/CHECKPOINT.md), written and read once from its begin to its end.
//
// The reader trusts nothing of it: what is cut, altered or of another version is told as kBadInput, with the
// file's name, what is wrong and where. The bytes of all allocations go one after the other, in pieces of any
// multiple of kBlock, but for the end of an allocation. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/new_file.hpp"
#include "base/os.hpp"
#include "heddle/memory_types.hpp"

namespace heddle::memory {

class CheckpointFile {
  public:
    static constexpr uint32_t kVersion = 1;
    static constexpr uint64_t kBlock = 256 << 10;
    /// Far more than a sound one has.
    static constexpr uint64_t kLargestTable = 64 << 20;
};

class CheckpointWriter : CheckpointFile {
  public:
    /// There is nothing under that name before keep(). Throws kSystem, kLimit.
    CheckpointWriter(const std::string& path, const Inventory& table);
    /// The next bytes.
    void write(std::span<const std::byte> piece);
    void keep() { file_.keep(); }

  private:
    NewFile file_;
    uint64_t blocks_ = 0;
};

class CheckpointReader : CheckpointFile {
  public:
    /// Reads and checks all but the bytes of the allocations, for which it looks whether as many are there.
    /// Throws kSystem, kBadInput, kVersionMismatch.
    explicit CheckpointReader(const std::string& path);
    CheckpointReader(Descriptor file, std::string name);

    [[nodiscard]] const Inventory& table() const noexcept { return table_; }
    /// The next bytes. Throws kSystem, kBadInput.
    void read(std::span<std::byte> piece);

  private:
    void take(std::span<std::byte> to, const char* what);
    [[noreturn]] void refuse(const std::string& problem) const;

    Descriptor file_;
    std::string name_;
    Inventory table_;
    uint64_t offset_ = 0;
    uint64_t blocks_ = 0;
};

}  // namespace heddle::memory
