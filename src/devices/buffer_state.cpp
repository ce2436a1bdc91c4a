#include "devices/buffer_state.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "devices/device_trace.hpp"

namespace heddle::devices {
namespace {

/// Pages of a small buffer, once used, are cheaper from the heap than anew from the system.
constexpr size_t kMostOfHeap = size_t{64} << 10;
/// As drivers want it of memory that their devices share.
constexpr size_t kAlignment = 4096, kGranularity = 64;

void* allocate_zeros(size_t bytes, const std::string& name) {
    if (bytes == 0) throw Error(ErrorCode::kInvalidArgument, "a buffer has at least one byte");
    void* memory = nullptr;
    if (bytes <= kMostOfHeap) {
        const size_t whole = (bytes + kGranularity - 1) / kGranularity * kGranularity;
        if (::posix_memalign(&memory, kAlignment, whole) == 0) std::memset(memory, 0, whole);
    } else {
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) memory = nullptr;
    }
    if (memory == nullptr)
        throw Error(ErrorCode::kLimit, fmt::format("no memory for the {} bytes of buffer {}", bytes, name));
    return memory;
}

void free_zeros(void* memory, size_t bytes) {
    if (bytes <= kMostOfHeap)
        std::free(memory);
    else
        ::munmap(memory, bytes);
}

/// Notes a copy. A clock that stands still meanwhile is a virtual one: it takes what it is known to take,
/// after those before it.
template <class Copy>
void traced(const DeviceDriver& driver, const char* direction, size_t bytes, const Copy& copy) {
    if (driver.trace == nullptr) return copy();
    const double begin_us = driver.now_us();
    copy();
    const double end_us = driver.now_us();
    if (end_us > begin_us) return driver.trace->copied(direction, begin_us, end_us);
    const double free_us = std::max(begin_us, driver.trace->copied_until_us());
    driver.trace->copied(direction, free_us, free_us + driver.copy_us(bytes));
}

}  // namespace

BufferState::BufferState(void* memory, size_t bytes, std::string name, std::optional<ImageShape> image)
    : size_(bytes),
      name_(std::move(name)),
      host_(memory != nullptr && bytes > 0 ? memory : allocate_zeros(bytes, name_)),
      own_(memory == nullptr),
      image_(image),
      valid_(bytes, Validity{kHost, 0}),
      uses_(bytes, RangeUse{}) {}

BufferState::~BufferState() {
    settle_uploads({0, size_}, kAll);
    copies_.clear();
    if (own_) free_zeros(host_, size_);
}

BufferTraffic BufferState::traffic() const {
    const std::lock_guard guard(mutex_);
    return traffic_;
}

ByteRange BufferState::checked(ByteRange range) const {
    if (range.size == 0 && range.offset == 0) return {0, size_};
    if (range.size == 0 || range.offset >= size_ || range.size > size_ - range.offset) {
        const size_t end = range.size > SIZE_MAX - range.offset ? SIZE_MAX : range.offset + range.size;
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("bytes {} to {} are not in buffer \"{}\", which has {}", range.offset, end,
                                name_, size_));
    }
    return range;
}

ByteRange BufferState::checked_for_kernel(ByteRange range) const {
    range = checked(range);
    if (image_ && range.size < size_)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("buffer \"{}\" is an image, and kernels use all of it", name_));
    return range;
}

const BufferState::Copy* BufferState::find(const DeviceDriver& driver) const {
    const auto found = std::find_if(copies_.begin(), copies_.end(),
                                    [&](const Copy& copy) { return copy.driver.get() == &driver; });
    return found == copies_.end() ? nullptr : &*found;
}

BufferState::Copy& BufferState::copy_on(const std::shared_ptr<DeviceDriver>& driver) {
    if (const Copy* const found = find(*driver)) return const_cast<Copy&>(*found);
    drop_retired();
    Copy copy{driver, image_ ? driver->allocate_image(*image_) : driver->allocate(size_, host_), kHost};
    if (!is_in_place_on(driver->info())) {
        Places taken = kHost;
        for (const Copy& other : copies_) taken |= other.place;
        if (taken == kAll)
            throw Error(ErrorCode::kLimit,
                        fmt::format("buffer \"{}\" is on {} devices already", name_, kMostCopies));
        copy.place = Places{1} << std::countr_one(taken);
    }
    copies_.push_back(std::move(copy));
    return copies_.back();
}

void BufferState::drop_retired() {
    // Decided once: others may retire meanwhile, and nothing of theirs is fetched here.
    Places retired = 0;
    std::vector<const DeviceDriver*> gone;
    for (const Copy& copy : copies_)
        if (copy.driver->retired) {
            retired |= copy.place;
            gone.push_back(copy.driver.get());
        }
    if (gone.empty()) return;
    settle_uploads({0, size_}, kAll);
    Places stay = kHost;
    valid_.visit(0, size_, [&](size_t offset, size_t size, Validity& validity) {
        if ((validity.valid & ~retired) != 0) return;
        if (validity.changing) {
            stay |= validity.valid;
            return;
        }
        try {
            fetch_to_host(offset, size, validity);
        } catch (const Error&) {
            stay |= validity.valid;
        }
    });
    valid_.visit(0, size_, [&](size_t, size_t, Validity& validity) { validity.valid &= ~(retired & ~stay); });
    valid_.join(0, size_);
    std::erase_if(copies_, [&](const Copy& copy) {
        return std::ranges::find(gone, copy.driver.get()) != gone.end() &&
               (copy.place == kHost || (copy.place & stay) == 0);
    });
}

void BufferState::fetch_to_host(size_t offset, size_t size, Validity& validity) {
    if ((validity.valid & kHost) != 0) return;
    const Copy* last = nullptr;
    for (const Copy& copy : copies_) {
        if ((validity.valid & copy.place) == 0) continue;
        last = &copy;
        if (copy.driver->dead) continue;
        try {
            traced(*copy.driver, "from the device", size, [&] {
                copy.driver->read(*copy.memory, offset, size, static_cast<std::byte*>(host_) + offset);
            });
        } catch (const DeviceError& error) {
            throw SourceError(error.code(), error.device(), error.lost(), error.what());
        }
        ++traffic_.from_devices;
        traffic_.bytes += size;
        validity.valid |= kHost;
        return;
    }
    const std::string device = last == nullptr ? "a device" : last->driver->info().name;
    throw SourceError(ErrorCode::kUnavailable, device, true,
                      fmt::format("bytes {} to {} of buffer \"{}\" are lost: only {}, which failed, had them",
                                  offset, offset + size, name_, device));
}

void BufferState::send(const Copy& to, ByteRange range) {
    const size_t offset = range.offset, size = range.size;
    uploads_.reserve(uploads_.size() + 1);  // what is under way is known here, whatever happens
    std::unique_ptr<DriverCopy> copy;
    traced(*to.driver, "to the device", size, [&] {
        copy = to.driver->write(*to.memory, offset, size, static_cast<std::byte*>(host_) + offset);
    });
    ++traffic_.to_devices;
    note_upload(to, kHost, range, std::move(copy));
}

bool BufferState::send_across(const Copy& to, const Copy& from, ByteRange range) {
    uploads_.reserve(uploads_.size() + 1);
    std::unique_ptr<DriverCopy> copy;
    try {
        traced(*to.driver, "from another device", range.size, [&] {
            copy = to.driver->copy(*to.memory, range.offset, range.size, *from.driver, *from.memory);
        });
    } catch (const DeviceError&) {
        return false;  // by the host it is seen whose fault that was
    }
    ++traffic_.between_devices;
    note_upload(to, from.place, range, std::move(copy));
    return true;
}

void BufferState::note_upload(const Copy& to, Places from, ByteRange range,
                              std::unique_ptr<DriverCopy> copy) {
    traffic_.bytes += range.size;
    const bool there = copy == nullptr;
    if (!there) uploads_.push_back({to.place, from, range, std::move(copy)});
    valid_.visit(range.offset, range.size, [&](size_t, size_t, Validity& validity) {
        (there ? validity.valid : validity.coming) |= to.place;
    });
}

const BufferState::Copy* BufferState::peer_with(const Validity& validity, const DeviceDriver& to) const {
    if (image_ || is_in_place_on(to.info()) || (validity.valid & kHost) != 0) return nullptr;
    const auto found = std::ranges::find_if(copies_, [&](const Copy& copy) {
        return (validity.valid & copy.place) != 0 && !copy.driver->dead && to.copies_from(*copy.driver);
    });
    return found == copies_.end() ? nullptr : &*found;
}

void BufferState::settle_uploads(ByteRange range, Places wait_for) {
    std::erase_if(uploads_, [&](const Upload& upload) {
        const auto& [offset, size] = upload.range;
        if (offset >= range.offset + range.size || range.offset >= offset + size) return false;
        if ((upload.from & wait_for) == 0 && !upload.copy->has_ended()) return false;
        const bool there = upload.copy->finish();
        valid_.visit(offset, size, [&](size_t, size_t, Validity& validity) {
            validity.coming &= ~upload.place;
            if (there) validity.valid |= upload.place;
        });
        valid_.join(offset, size);
        return true;
    });
}

void BufferState::finish_uploads(ByteRange range) {
    const std::lock_guard guard(mutex_);
    settle_uploads(range, kAll);
}

DriverMemory& BufferState::acquire(const std::shared_ptr<DeviceDriver>& driver, ByteRange range, bool fetch,
                                   bool change) {
    const std::lock_guard guard(mutex_);
    const Copy& copy = copy_on(driver);
    settle_uploads(range, change ? copy.place : 0);
    if (fetch) {
        std::vector<ByteRange> lacking;  // what the host has; neighbours as one
        valid_.visit(range.offset, range.size, [&](size_t offset, size_t size, Validity& validity) {
            if (((validity.valid | validity.coming) & copy.place) != 0) return;
            const bool from_device = (validity.valid & kHost) == 0;
            const Copy* const peer = peer_with(validity, *driver);
            if (peer != nullptr && send_across(copy, *peer, {offset, size})) return;
            fetch_to_host(offset, size, validity);
            if (copy.place == kHost) return;
            if (from_device)
                send(copy, {offset, size});  // on its way while the next piece is fetched
            else if (!lacking.empty() && lacking.back().offset + lacking.back().size == offset)
                lacking.back().size += size;
            else
                lacking.push_back({offset, size});
        });
        for (const ByteRange& one : lacking) send(copy, one);
    }
    if (change && copy.place == kHost)
        valid_.visit(range.offset, range.size,
                     [](size_t, size_t, Validity& validity) { validity.changing = true; });
    if (fetch || change) valid_.join(range.offset, range.size);
    return *copy.memory;
}

void BufferState::written(const DeviceDriver& driver, ByteRange range) {
    const std::lock_guard guard(mutex_);
    settle_uploads(range, kAll);
    const Places place = find(driver)->place;
    valid_.visit(range.offset, range.size,
                 [&](size_t, size_t, Validity& validity) { validity = {.valid = place}; });
    valid_.join(range.offset, range.size);
}

void BufferState::acquire_host(ByteRange range, bool fetch, bool only) {
    const std::lock_guard guard(mutex_);
    if (image_ && range.size < size_) {
        range = {0, size_};
        fetch = true;
    }
    if (only) settle_uploads(range, kAll);
    valid_.visit(range.offset, range.size, [&](size_t offset, size_t size, Validity& validity) {
        if (fetch) fetch_to_host(offset, size, validity);
        if (only) validity = {.valid = kHost};
    });
    valid_.join(range.offset, range.size);
}

double BufferState::fetch_us(const DeviceDriver& driver, ByteRange range) {
    const std::lock_guard guard(mutex_);
    const Copy* const copy = find(driver);
    const Places place = copy != nullptr ? copy->place : is_in_place_on(driver.info()) ? kHost : Places{0};
    double us = 0;
    valid_.visit(range.offset, range.size, [&](size_t, size_t size, const Validity& validity) {
        if (((validity.valid | validity.coming) & place) != 0) return;
        if (const Copy* const peer = peer_with(validity, driver)) {
            us += copy_us(*peer->driver, driver, size);
            return;
        }
        if (place != kHost) us += driver.copy_us(size);
        if ((validity.valid & kHost) != 0) return;
        for (const Copy& source : copies_)
            if ((validity.valid & source.place) != 0) {
                us += source.driver->copy_us(size);
                return;
            }
    });
    return us;
}

bool BufferState::is_lost(ByteRange range) {
    const std::lock_guard guard(mutex_);
    Places living = kHost;
    for (const Copy& copy : copies_)
        if (!copy.driver->dead) living |= copy.place;
    bool lost = false;
    valid_.visit(range.offset, range.size,
                 [&](size_t, size_t, const Validity& validity) { lost |= (validity.valid & living) == 0; });
    valid_.join(range.offset, range.size);
    return lost;
}

}  // namespace heddle::devices
