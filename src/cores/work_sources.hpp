// WorkSources: whom to ask what the components of a process, and parts of them, have done, when somebody
// looks.
//
// Thread-safe. A source is asked under the lock, by one thread at a time; once its component was taken out it
// is not asked any more. It must not call anything that attaches or detaches components.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/cores.hpp"

namespace heddle {

class WorkSources {
  public:
    using Source = std::function<WorkCounts()>;

    /// Puts it in the place of the component's last one; an empty source is none. `name_of` gives the name of
    /// a component that is attached, and nothing else: false then, and nothing is put.
    template <class NameOf>
    [[nodiscard]] bool set(uint32_t component, Source source, NameOf&& name_of) {
        const std::lock_guard guard(mutex_);
        std::optional<std::string> name = name_of();
        if (!name) return false;
        take_out(component);
        if (source) entries_.push_back({component, std::move(*name), std::move(source)});
        return true;
    }
    /// For a part of a component, which has no CPUs of its own: the name is shown beside the components'.
    /// Returns the number to erase it by.
    [[nodiscard]] uint32_t add_part(std::string name, Source source) {
        const std::lock_guard guard(mutex_);
        const uint32_t number = kParts | next_part_++;
        entries_.push_back({number, std::move(name), std::move(source)});
        return number;
    }
    void erase(uint32_t component) {
        const std::lock_guard guard(mutex_);
        take_out(component);
    }
    /// Calls with each component, its name, and its counts.
    template <class Visit>
    void ask(Visit&& visit) const {
        const std::lock_guard guard(mutex_);
        for (const Entry& entry : entries_) visit(entry.component, entry.name, entry.source());
    }

  private:
    struct Entry {
        uint32_t component;
        std::string name;
        Source source;
    };
    void take_out(uint32_t component) {
        std::erase_if(entries_, [&](const Entry& entry) { return entry.component == component; });
    }

    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
    static constexpr uint32_t kParts = 1U << 31;  ///< no component has such a number
    uint32_t next_part_ = 0;
};

}  // namespace heddle
