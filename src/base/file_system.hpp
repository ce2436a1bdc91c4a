// FileSystem: reading small files of the system (/proc, /sys), so that tests can put recorded ones in place.
//
// No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle {

class FileSystem {
  public:
    virtual ~FileSystem() = default;
    /// The content of a file, cut at kMaxBytes, or nothing where it is missing or may not be read.
    [[nodiscard]] virtual std::optional<std::string> read(const std::string& path) const = 0;

    /// A number that another file or folder of the system hardly has while this one is there; 0 where it is
    /// missing.
    [[nodiscard]] virtual uint64_t identity(const std::string& /*path*/) const { return 0; }

    static constexpr size_t kMaxBytes = size_t{4} << 20;
};

class SystemFiles final : public FileSystem {
  public:
    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override;
    [[nodiscard]] uint64_t identity(const std::string& path) const override;
};

}  // namespace heddle
