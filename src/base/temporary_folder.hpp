// TemporaryFolder: a new, empty folder that nobody else has, with all that is in it gone with its owner.
//
// For one thread. A process that is killed leaves the folder behind.
#pragma once

#include <string>
#include <utility>

namespace heddle {

class TemporaryFolder {
  public:
    /// A path that begins with `stem`, to which six characters are added. Throws kSystem where none can be
    /// made; where that is in place() it tells of TMPDIR.
    explicit TemporaryFolder(const std::string& stem);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    /// Where temporary files go, there or not: TMPDIR, or /tmp.
    [[nodiscard]] static std::string place();

  protected:
    struct Made {
        std::string path;
    };
    static Made make(const std::string& stem);
    explicit TemporaryFolder(Made made) : path_(std::move(made.path)) {}

  private:
    std::string path_;
};

}  // namespace heddle
