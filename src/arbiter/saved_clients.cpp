#include "arbiter/saved_clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "cores/codec.hpp"

namespace heddle {

struct SavedClients::Header {
    uint32_t magic;
    uint32_t version;
    std::array<char, 40> boot;
};
struct SavedClients::Place {
    /// Written by this process, read by the next; that one is started after this one's death, so what counts
    /// is the order of the stores alone: release.
    std::atomic<uint32_t> sequence;
    uint32_t before;  // while this one takes its place: the number of another one and 1; else 0
    uint32_t pid;     // 0: free
    uint32_t user;
    uint32_t job;
    uint64_t started;
    uint32_t min;
    uint32_t reserved;
    char name[HEDDLE_NAME_BYTES];
    heddle_mask owned;
    std::array<std::atomic<uint64_t>, HEDDLE_MASK_WORDS> cpus;
};
struct SavedClients::File {
    Header header;
    std::array<Place, kPlaces> places;
};

namespace {

constexpr uint32_t kMagic = 0x56534448;  // "HDSV"
constexpr uint32_t kVersion = 4;

bool is_whole(const std::atomic<uint32_t>& sequence) {
    return sequence.load(std::memory_order_acquire) % 2 == 0;
}

}  // namespace

SavedClients::SavedClients(const std::string& path, Os& os) : os_(os) {
    if (path.empty()) return;
    void* mapping = nullptr;
    if (const int failure = os.map_file(path, sizeof(File), &mapping); failure < 0) {
        problem_ = fmt::format("cannot save who holds what in {}: {}", path, std::strerror(-failure));
        return;
    }
    file_ = static_cast<File*>(mapping);
    Header header{kMagic, kVersion, {}};
    copy_text(header.boot.data(), header.boot.size(), os.boot_id());
    if (std::memcmp(&file_->header, &header, sizeof header) == 0) return;
    std::memset(mapping, 0, sizeof(File));
    file_->header = header;
}

SavedClients::~SavedClients() {
    if (file_ != nullptr) os_.unmap(file_, sizeof(File));
}

/// Of a client that was moving from one place to another, the one that is whole stays.
void SavedClients::settle_moves() {
    for (size_t i = 0; i < kPlaces; ++i) {
        Place& place = file_->places[i];
        const uint32_t before = std::exchange(place.before, 0);
        if (before == 0 || before > kPlaces || before == i + 1) continue;
        if (place.pid != 0 && place.pid == file_->places[before - 1].pid)
            remove(static_cast<int>(is_whole(place.sequence) ? before - 1 : i));
    }
}

std::map<int, SavedClient> SavedClients::left_behind() {
    std::map<int, SavedClient> clients;
    if (file_ == nullptr) return clients;
    settle_moves();
    for (size_t i = 0; i < kPlaces; ++i) {
        Place& place = file_->places[i];
        if (place.pid == 0) {
            remove(static_cast<int>(i));
            continue;
        }
        used_[i] = true;
        if (!is_whole(place.sequence)) {
            place.name[0] = '\0';
            place.min = place.job = 0;
            place.owned = {};
            for (auto& word : place.cpus) word.store(0, std::memory_order_relaxed);
        }
        heddle_mask mask;
        for (size_t word = 0; word < HEDDLE_MASK_WORDS; ++word)
            mask.words[word] = place.cpus[word].load(std::memory_order_relaxed);
        clients[static_cast<int>(i)] = {
            static_cast<pid_t>(place.pid),
            place.user,
            place.started,
            std::string(place.name, ::strnlen(place.name, sizeof place.name)),
            cpus_of(mask),
            {static_cast<int>(std::min(place.min, uint32_t{HEDDLE_MAX_CPUS})), cpus_of(place.owned)},
            JobId{place.job}};
    }
    return clients;
}

std::string SavedClients::saved_name(const std::string& name) {
    return name.substr(0, HEDDLE_NAME_BYTES - 1);
}

int SavedClients::add(const SavedClient& client, int before) {
    const auto free = std::ranges::find(used_, false);
    if (file_ == nullptr || free == used_.end()) {
        remove(before);
        return -1;
    }
    *free = true;
    const auto number = static_cast<size_t>(free - used_.begin());
    Place& place = file_->places[number];
    place.sequence.fetch_or(1);
    place.before = static_cast<uint32_t>(before + 1);
    std::atomic_signal_fence(std::memory_order_release);  // known before the client is
    place.pid = static_cast<uint32_t>(client.pid);
    place.user = client.user;
    place.started = client.started;
    copy_text(place.name, sizeof place.name, client.name);
    place.min = static_cast<uint32_t>(client.reserves.min);
    place.owned = mask_of(client.reserves.owned);
    place.job = client.job.value;
    HEDDLE_FAILPOINT(state_has_a_place);
    update(static_cast<int>(number), client.cpus);
    remove(before);
    std::atomic_signal_fence(std::memory_order_release);
    place.before = 0;
    return static_cast<int>(number);
}

void SavedClients::update(int place, const CpuSet& cpus) {
    if (file_ == nullptr || place < 0) return;
    Place& written = file_->places[static_cast<size_t>(place)];
    const heddle_mask mask = mask_of(cpus);
    HEDDLE_FAILPOINT(state_begins);
    written.sequence.fetch_or(1);
    for (size_t word = 0; word < HEDDLE_MASK_WORDS; ++word) {
        written.cpus[word].store(mask.words[word], std::memory_order_release);
        if (word == 0) HEDDLE_FAILPOINT(state_is_half_done);
    }
    written.sequence.fetch_add(1, std::memory_order_release);
    HEDDLE_FAILPOINT(state_is_written);
}

void SavedClients::remove(int place) {
    if (file_ == nullptr || place < 0) return;
    Place& removed = file_->places[static_cast<size_t>(place)];
    removed.sequence.fetch_or(1);
    removed.pid = 0;
    removed.sequence.fetch_add(1, std::memory_order_release);
    used_[static_cast<size_t>(place)] = false;
    HEDDLE_FAILPOINT(state_is_removed);
}

}  // namespace heddle
