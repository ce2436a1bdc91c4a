#include "cores/component_table.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace heddle {

void ComponentTable::set(int cpu, uint32_t component, std::string_view name) noexcept {
    if (cpu < 0 || cpu >= HEDDLE_MAX_CPUS || abandoned_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock_);
    uint8_t& shown = users_[static_cast<size_t>(cpu)];
    count(shown, -1);  // first: its place may be had then
    const uint8_t user = component == 0 ? kNobody : user_of(component, name);
    count(user, 1);
    if (shown == user) return;
    shown = user;
    // release: who reads this also reads the name that it stands for, or a newer one.
    if (page_ != nullptr) page_->user[cpu].store(user, std::memory_order_release);
}

void ComponentTable::show_work(std::span<const Work> all) noexcept {
    if (abandoned_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock_);
    if (page_ == nullptr) return;
    std::array<WorkCounts, HEDDLE_COMPONENTS> sums{};
    for (const Work& one : all) {
        const uint8_t user = user_of(one.component, one.name);
        if (user == kNobody || user == kNameless) continue;
        sums[user - 1U].inserted += one.counts.inserted;
        sums[user - 1U].ended += one.counts.ended;
    }
    for (size_t place = 0; place < sums.size(); ++place) {
        page_->inserted[place].store(sums[place].inserted, std::memory_order_relaxed);
        page_->ended[place].store(sums[place].ended, std::memory_order_relaxed);
    }
}

void ComponentTable::show_on(heddle_client_page* page) noexcept {
    const std::lock_guard guard(lock_);
    page_ = page;
    if (page == nullptr) return;
    for (size_t place = 0; place < places_.size(); ++place) show_name(place);
    for (size_t cpu = 0; cpu < users_.size(); ++cpu)
        page->user[cpu].store(users_[cpu], std::memory_order_release);
}

uint8_t ComponentTable::user_of(uint32_t component, std::string_view name) noexcept {
    Known& known = known_[component % known_.size()];
    if (known.component == component) return known.user;
    const Name wanted = encode(name);
    const uint8_t user = wanted == Name{} ? kNameless : find_place(wanted);
    // One that found no place may find one the next time.
    if (user != kNameless) known = {component, user};
    return user;
}

uint8_t ComponentTable::find_place(const Name& name) noexcept {
    const auto number = [&](auto place) { return static_cast<uint8_t>(place - places_.begin() + 1); };
    if (const auto same = std::ranges::find(places_, name, &Place::name); same != places_.end())
        return number(same);
    auto place = std::ranges::find(places_, Name{}, &Place::name);
    if (place == places_.end()) {
        place = std::ranges::find(places_, 0, &Place::cpus);
        if (place == places_.end()) return kNameless;
        known_ = {};
    }
    place->name = name;
    show_name(static_cast<size_t>(place - places_.begin()));
    return number(place);
}

void ComponentTable::show_name(size_t place) noexcept {
    if (page_ == nullptr) return;
    page_->inserted[place].store(0, std::memory_order_relaxed);  // of who had the place before
    page_->ended[place].store(0, std::memory_order_relaxed);
    for (size_t word = 0; word < HEDDLE_COMPONENT_WORDS; ++word)
        page_->component[place][word].store(places_[place].name[word], std::memory_order_relaxed);
}

void ComponentTable::count(uint8_t user, int change) noexcept {
    if (user != kNobody && user != kNameless) places_[user - 1U].cpus += change;
}

/// As much of it as fits, in whole characters.
ComponentTable::Name ComponentTable::encode(std::string_view name) noexcept {
    size_t length = std::min(name.size(), size_t{HEDDLE_COMPONENT_BYTES - 1});
    const auto continues = [&](size_t i) {
        return i < name.size() && (static_cast<unsigned char>(name[i]) & 0xc0) == 0x80;
    };
    while (length > 0 && continues(length)) --length;
    Name encoded{};
    std::memcpy(encoded.data(), name.data(), length);
    return encoded;
}

}  // namespace heddle
