#include "streams/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "heddle/error.hpp"

namespace heddle::streams {
namespace {

class Names {
  public:
    static Names& process() {
        static auto* names = new Names;
        return *names;
    }
    uint32_t number(std::string_view name) {
        {
            const std::shared_lock guard(mutex_);
            const auto known = numbers_.find(name);
            if (known != numbers_.end()) return known->second;
        }
        const std::unique_lock guard(mutex_);
        const auto known = numbers_.find(name);
        if (known != numbers_.end()) return known->second;
        if (names_.size() == kMost || name.size() > kMostBytes - bytes_)
            throw Error(ErrorCode::kLimit,
                        "there are more than 2^20 names of labels, or they are longer than 64 MiB together: "
                        "they are never forgotten, so let values be fields or tags");
        bytes_ += name.size();
        const std::string& kept = names_.emplace_back(name);
        const auto number = static_cast<uint32_t>(names_.size() - 1);
        numbers_.emplace(kept, number);
        return number;
    }
    const std::string& name(uint32_t number) {
        const std::shared_lock guard(mutex_);
        return names_[number];
    }

  private:
    static constexpr size_t kMost = size_t{1} << 20,
                            kMostBytes = size_t{64} << 20;  // records may come from anybody
    std::shared_mutex mutex_;
    std::deque<std::string> names_;  // which stay where they are
    size_t bytes_ = 0;               // of all of them
    std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace

Label::Label(LabelKind kind, std::string_view name)
    : code_(Names::process().number(name) << 2 | static_cast<uint32_t>(kind)) {}

const std::string& Label::name() const {
    return Names::process().name(code_ >> 2);
}

std::string Label::text() const {
    switch (kind()) {
        case LabelKind::kField:
            return name();
        case LabelKind::kTag:
            return fmt::format("<{}>", name());
        default:
            return fmt::format("<#{}>", name());
    }
}

bool is_label_name(std::string_view name) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), fits);
}

}  // namespace heddle::streams
