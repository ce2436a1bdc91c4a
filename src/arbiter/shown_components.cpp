#include "arbiter/shown_components.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "cores/codec.hpp"

namespace heddle {
namespace {

std::string name_of(const heddle_client_page& page, size_t place) {
    std::array<uint64_t, HEDDLE_COMPONENT_WORDS> words;
    for (size_t i = 0; i < words.size(); ++i)
        words[i] = page.component[place][i].load(std::memory_order_relaxed);
    std::array<char, HEDDLE_COMPONENT_BYTES> text;
    static_assert(sizeof text == sizeof words);
    std::memcpy(text.data(), words.data(), sizeof text);
    return clean_text(text.data(), text.size() - 1);
}

}  // namespace

std::vector<ShownComponent> shown_components(const heddle_client_page& page, const CpuSet& held) {
    std::array<CpuSet, HEDDLE_COMPONENTS> used;
    for (const int cpu : held) {
        if (cpu >= HEDDLE_MAX_CPUS) break;
        // acquire: the name that this number stands for, or a newer one, is there.
        const uint8_t user = page.user[cpu].load(std::memory_order_acquire);
        if (user >= 1 && user <= HEDDLE_COMPONENTS) used[user - 1U].insert(cpu);
    }
    std::vector<ShownComponent> components;
    for (size_t place = 0; place < used.size(); ++place) {
        const WorkCounts work{page.inserted[place].load(std::memory_order_relaxed),
                              page.ended[place].load(std::memory_order_relaxed)};
        if (used[place].empty() && work.inserted == 0) continue;
        if (std::string name = name_of(page, place); !name.empty())
            components.push_back({std::move(name), std::move(used[place]), work});
    }
    return components;
}

bool shows_components(const heddle_client_page& page) noexcept {
    return page.component[0][0].load(std::memory_order_relaxed) != 0;  // places are filled from the first
}

}  // namespace heddle
