// TemporaryFolder: a new, empty folder with a short path, for sockets and files; gone with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace heddle::test {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        char pattern[] = "/tmp/heddle-test-XXXXXX";
        if (::mkdtemp(pattern) == nullptr) throw std::runtime_error("no folder can be made in /tmp");
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace heddle::test
