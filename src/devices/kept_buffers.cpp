#include "devices/kept_buffers.hpp"

#include <algorithm>
#include <exception>

#include "heddle/error.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::devices {
namespace {

/// Where a device does not tell how much memory it has.
constexpr size_t kSupposedMemory = size_t{1} << 30;

bool all_in_place(std::span<const Device> devices) {
    return std::ranges::all_of(devices, [](const Device& one) { return one.info().shares_host_memory; });
}

size_t half_of_the_smallest(std::span<const Device> devices) {
    size_t smallest = SIZE_MAX;
    for (const Device& device : devices)
        if (const DeviceInfo& info = device.info(); !info.shares_host_memory)
            smallest = std::min<size_t>(
                smallest, info.memory_bytes == 0 ? kSupposedMemory : static_cast<size_t>(info.memory_bytes));
    return smallest / 2;
}

std::shared_ptr<Buffer> buffer_of(const heddle::detail::DataView& view) {
    return std::make_shared<Buffer>(view.address, bytes_without_gap(view), "data of a task");
}

void bring(Buffer& buffer, bool fetch, bool only) {
    BufferState::of(buffer).acquire_host({0, buffer.size()}, fetch, only);
}

}  // namespace

size_t bytes_without_gap(const heddle::detail::DataView& view) {
    if (view.columns > 1 && view.leading != view.rows)
        throw Error(ErrorCode::kInvalidArgument,
                    "a matrix for a kernel has columns that follow each other without a gap");
    return view.rows * view.columns * view.element_bytes;
}

KeptBuffers::KeptBuffers(std::span<const Device> devices)
    : all_in_place_(all_in_place(devices)), most_bytes_(half_of_the_smallest(devices)) {}

KeptBuffers::~KeptBuffers() {
    let_all_go();
}

std::shared_ptr<Buffer> KeptBuffers::begin(DataState& data, AccessMode how) {
    if (all_in_place_) return buffer_of(data);
    std::shared_ptr<Buffer> buffer;
    data.runtime.kept.keep(data, *this, [&] {
        const std::lock_guard lock(mutex_);
        const auto place = kept_.find(&data);
        if (place != kept_.end()) buffer = place->second.buffer;
        const bool is_new = buffer == nullptr;
        if (is_new) buffer = buffer_of(data);
        Kept& kept = place == kept_.end() ? kept_[&data] : place->second;
        if (is_new) bytes_ += buffer->size();
        kept.buffer = buffer;
        ++kept.users;
        if (how != AccessMode::kIn) ++kept.writers;
        kept.last_use = ++uses_;
    });
    if (how == AccessMode::kIn) return buffer;
    // What is copied into its memory right now was asked for before, and must not overwrite what comes.
    std::unique_lock lock(mutex_);
    home_.wait(lock, [&] {
        const auto place = kept_.find(&data);
        return place == kept_.end() || place->second.coming_home == 0;
    });
    return buffer;
}

void KeptBuffers::end(DataState& data, AccessMode how, bool failed) noexcept {
    if (all_in_place_) return;
    {
        const std::lock_guard lock(mutex_);
        const auto place = kept_.find(&data);
        if (place == kept_.end()) return;  // it has gone, or is another keeper's
        Kept& kept = place->second;
        if (kept.users > 0) --kept.users;  // another keeper may have had it meanwhile
        if (how != AccessMode::kIn) {
            if (kept.writers > 0) --kept.writers;
            if (failed) drop(kept);
        }
    }
    make_room();
}

void KeptBuffers::bring_home(DataState& data, heddle::AccessMode how) {
    std::shared_ptr<Buffer> buffer;
    {
        const std::lock_guard lock(mutex_);
        const auto place = kept_.find(&data);
        if (place == kept_.end() || place->second.writers > 0) return;
        buffer = place->second.buffer;
        if (buffer == nullptr) return;
        ++place->second.coming_home;
    }
    const ComingHome until_end(*this, data);
    bring(*buffer, how != heddle::AccessMode::kOut, how != heddle::AccessMode::kIn);
}

KeptBuffers::ComingHome::~ComingHome() {
    {
        const std::lock_guard lock(keeper_.mutex_);
        if (const auto place = keeper_.kept_.find(&data_); place != keeper_.kept_.end())
            --place->second.coming_home;
    }
    keeper_.home_.notify_all();
}

void KeptBuffers::forget(DataState& data) noexcept {
    const std::lock_guard lock(mutex_);
    const auto place = kept_.find(&data);
    if (place == kept_.end()) return;
    drop(place->second);
    kept_.erase(place);
}

void KeptBuffers::drop(Kept& kept) noexcept {
    if (kept.buffer == nullptr) return;
    bytes_ -= kept.buffer->size();
    kept.buffer = nullptr;
}

void KeptBuffers::make_room() noexcept {
    const std::lock_guard lock(mutex_);
    while (bytes_ > most_bytes_) {
        Kept* oldest = nullptr;
        for (auto& [data, kept] : kept_)
            if (kept.buffer != nullptr && kept.users == 0 &&
                (oldest == nullptr || kept.last_use < oldest->last_use))
                oldest = &kept;
        if (oldest == nullptr) return;
        try {
            bring(*oldest->buffer, true, true);
        } catch (const std::exception&) {
            return;  // who needs it is told
        }
        drop(*oldest);
    }
}

}  // namespace heddle::devices
