#include "devices/buffer_state.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "devices/device_trace.hpp"

namespace heddle::devices {
namespace {

void* map_zeros(size_t bytes, const std::string& name) {
    if (bytes == 0) throw Error(ErrorCode::kInvalidArgument, "a buffer has at least one byte");
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw Error(ErrorCode::kLimit, fmt::format("no memory for the {} bytes of buffer {}", bytes, name));
    return memory;
}

/// Notes a copy. A clock that stands still meanwhile is a virtual one: it takes what it is known to take.
template <class Copy>
void traced(const DeviceDriver& driver, const char* direction, size_t bytes, const Copy& copy) {
    if (driver.trace == nullptr) return copy();
    const double begin_us = driver.now_us();
    copy();
    const double end_us = driver.now_us();
    driver.trace->copied(direction, begin_us, end_us > begin_us ? end_us : begin_us + driver.copy_us(bytes));
}

}  // namespace

BufferState::BufferState(void* memory, size_t bytes, std::string name)
    : size_(bytes),
      name_(std::move(name)),
      host_(memory != nullptr && bytes > 0 ? memory : map_zeros(bytes, name_)),
      own_(memory == nullptr),
      valid_(bytes, kHost),
      uses_(bytes, RangeUse{}) {}

BufferState::~BufferState() {
    copies_.clear();
    if (own_) ::munmap(host_, size_);
}

BufferTraffic BufferState::traffic() const {
    const std::lock_guard guard(mutex_);
    return traffic_;
}

ByteRange BufferState::checked(ByteRange range) const {
    if (range.size == 0 && range.offset == 0) return {0, size_};
    if (range.size == 0 || range.offset >= size_ || range.size > size_ - range.offset)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("bytes {} to {} are not in buffer \"{}\", which has {}", range.offset,
                                range.offset + range.size, name_, size_));
    return range;
}

const BufferState::Copy* BufferState::find(const DeviceDriver& driver) const {
    const auto found = std::find_if(copies_.begin(), copies_.end(),
                                    [&](const Copy& copy) { return copy.driver.get() == &driver; });
    return found == copies_.end() ? nullptr : &*found;
}

BufferState::Copy& BufferState::copy_on(const std::shared_ptr<DeviceDriver>& driver) {
    if (const Copy* const found = find(*driver)) return const_cast<Copy&>(*found);
    Copy copy{driver, driver->allocate(size_, host_), kHost};
    if (!driver->info().shares_host_memory) {
        Places taken = kHost;
        for (const Copy& other : copies_) taken |= other.place;
        if (taken == ~Places{0})
            throw Error(ErrorCode::kLimit,
                        fmt::format("buffer \"{}\" is on {} devices already", name_, kMostCopies));
        copy.place = Places{1} << std::countr_one(taken);
    }
    copies_.push_back(std::move(copy));
    return copies_.back();
}

void BufferState::fetch_to_host(size_t offset, size_t size, Places& valid) {
    if ((valid & kHost) != 0) return;
    const Copy* last = nullptr;
    for (const Copy& copy : copies_) {
        if ((valid & copy.place) == 0) continue;
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
        valid |= kHost;
        return;
    }
    const std::string device = last == nullptr ? "a device" : last->driver->info().name;
    throw SourceError(ErrorCode::kUnavailable, device, true,
                      fmt::format("bytes {} to {} of buffer \"{}\" are lost: only {}, which failed, had them",
                                  offset, offset + size, name_, device));
}

DriverMemory& BufferState::acquire(const std::shared_ptr<DeviceDriver>& driver, ByteRange range, bool fetch) {
    const std::lock_guard guard(mutex_);
    Copy& copy = copy_on(driver);
    if (fetch) {
        valid_.visit(range.offset, range.size, [&](size_t offset, size_t size, Places& valid) {
            if ((valid & copy.place) != 0) return;
            fetch_to_host(offset, size, valid);
            if (copy.place == kHost) return;
            traced(*driver, "to the device", size, [&] {
                driver->write(*copy.memory, offset, size, static_cast<std::byte*>(host_) + offset);
            });
            ++traffic_.to_devices;
            traffic_.bytes += size;
            valid |= copy.place;
        });
        valid_.join(range.offset, range.size);
    }
    return *copy.memory;
}

void BufferState::written(const DeviceDriver& driver, ByteRange range) {
    const std::lock_guard guard(mutex_);
    const Places place = find(driver)->place;
    valid_.visit(range.offset, range.size, [&](size_t, size_t, Places& valid) { valid = place; });
    valid_.join(range.offset, range.size);
}

void BufferState::acquire_host(ByteRange range, bool fetch, bool only) {
    const std::lock_guard guard(mutex_);
    valid_.visit(range.offset, range.size, [&](size_t offset, size_t size, Places& valid) {
        if (fetch) fetch_to_host(offset, size, valid);
        if (only) valid = kHost;
    });
    valid_.join(range.offset, range.size);
}

double BufferState::fetch_us(const DeviceDriver& driver, ByteRange range) {
    const std::lock_guard guard(mutex_);
    const Copy* const copy = find(driver);
    const Places place = copy != nullptr ? copy->place : driver.info().shares_host_memory ? kHost : Places{0};
    double us = 0;
    valid_.visit(range.offset, range.size, [&](size_t, size_t size, Places& valid) {
        if ((valid & place) != 0) return;
        if (place != kHost) us += driver.copy_us(size);
        if ((valid & kHost) != 0) return;
        for (const Copy& source : copies_)
            if ((valid & source.place) != 0) {
                us += source.driver->copy_us(size);
                return;
            }
    });
    return us;
}

}  // namespace heddle::devices
