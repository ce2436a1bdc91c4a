// RecordedFiles: a FileSystem made from one text, a file a section that starts with "== PATH".
//
// For tests and fuzzers. Lines before the first section are comments. No locks.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/file_system.hpp"

namespace heddle::test {

class RecordedFiles final : public FileSystem {
  public:
    explicit RecordedFiles(std::string_view text) {
        std::string* content = nullptr;
        while (!text.empty()) {
            const size_t end = std::min(text.find('\n'), text.size());
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            if (line.starts_with("== "))
                content = &files_[std::string(line.substr(3))];
            else if (content != nullptr)
                content->append(line).append("\n");
        }
    }
    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
        const auto found = files_.find(path);
        return found == files_.end() ? std::nullopt : std::optional(found->second);
    }

    [[nodiscard]] const std::map<std::string, std::string>& all() const { return files_; }

  private:
    std::map<std::string, std::string> files_;
};

}  // namespace heddle::test
