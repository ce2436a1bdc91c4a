#include "base/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace heddle {

std::optional<std::string> SystemFiles::read(const std::string& path) const {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    std::string content;
    std::array<char, 4096> block;
    bool readable = true;
    while (content.size() < kMaxBytes) {
        const ssize_t count = ::read(file, block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        readable = count >= 0;
        if (count <= 0) break;
        content.append(block.data(), static_cast<size_t>(count));
    }
    ::close(file);
    if (!readable) return std::nullopt;
    return content;
}

uint64_t SystemFiles::identity(const std::string& path) const {
    struct stat is {};
    if (::stat(path.c_str(), &is) != 0) return 0;
    return (static_cast<uint64_t>(is.st_dev) << 48u) ^ static_cast<uint64_t>(is.st_ino);
}

}  // namespace heddle
