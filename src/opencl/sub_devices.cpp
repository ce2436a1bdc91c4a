#include "opencl/sub_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/error.hpp"
#include "opencl/partition.hpp"
#include "opencl/thread_pool.hpp"

namespace heddle::opencl {
namespace {

/// By the driver's devices. Never destroyed: queues may be used while the process ends.
struct DeviceRegistry {
    std::mutex mutex;
    std::map<cl_device_id, std::shared_ptr<SubDevice>> devices;
};
DeviceRegistry& device_registry() {
    static auto* const all = new DeviceRegistry;
    return *all;
}

}  // namespace

SubDevice::SubDevice(cl_device_id driver, std::shared_ptr<ThreadPool> pool, const CpuSet& cpus,
                     ThreadRange range)
    : id_(driver), pool_(std::move(pool)), cpus_(cpus), range_(range) {}

std::shared_ptr<SubDevice> SubDevice::of(cl_device_id device) {
    DeviceRegistry& all = device_registry();
    const std::lock_guard guard(all.mutex);
    const auto found = all.devices.find(device);
    return found == all.devices.end() ? nullptr : found->second;
}

/// What is not to be had it borrows; without a place in the ledger it computes all the same.
void SubDevice::join_ledger() {
    const std::string name = fmt::format("opencl {}", cpus_.to_list());
    try {
        component_.emplace(name, cpus_);
    } catch (const Error&) {
        try {
            component_.emplace(name, CpuSet{});
        } catch (const Error&) {
            return;
        }
    }
    // Its own callbacks run as long as it is there.
    (void)component_->on_disable_cpu([this](int cpu) {
        pool_->confine(range_, component_->usable());
        (void)component_->return_cpu(cpu);
    });
    (void)component_->on_set_active_mask([this](const CpuSet& usable) { pool_->confine(range_, usable); });
    (void)component_->lend();
}

/// Callbacks of any component may run in the thread that changes its own, and use this device: no lock is
/// held then, and one thread changes at a time, for all.
void SubDevice::follow(std::unique_lock<std::mutex>& lock) {
    if (changing_) return;
    changing_ = true;
    changer_ = std::this_thread::get_id();
    while (const Change change = next_change()) {
        lock.unlock();
        try {
            (this->*change)();
        } catch (...) {
            // Of a callback of another component, or there is no memory: OpenCL's caller can be told neither,
            // and the device is used with the CPUs that it has.
        }
        lock.lock();
    }
    changing_ = false;
    changed_.notify_all();
}

SubDevice::Change SubDevice::next_change() {
    const bool is_wanted = is_kept();
    if (is_wanted && !was_wanted_) {
        was_wanted_ = true;
        uses_ = false;
        return &SubDevice::join_ledger;
    }
    if (!is_wanted && was_wanted_) {
        was_wanted_ = false;
        return &SubDevice::leave_ledger;
    }
    if (!is_wanted && has_range_) {
        has_range_ = false;
        return &SubDevice::give_threads_back;
    }
    const bool uses = commands_ > 0 && natives_ == 0;
    if (!is_wanted || uses == uses_) return nullptr;
    uses_ = uses;
    return uses ? &SubDevice::take_cpus : &SubDevice::lend_cpus;
}

void SubDevice::leave_ledger() {
    component_.reset();
}
void SubDevice::give_threads_back() {
    pool_->release(range_, cpus_);
}
void SubDevice::take_cpus() {
    if (!component_) return;
    (void)component_->reclaim();
    (void)component_->borrow_cpu_mask(cpus_);
}
void SubDevice::lend_cpus() {
    if (component_) (void)component_->lend();
}

std::shared_ptr<void> SubDevice::kept_for_command(cl_device_id device) {
    std::shared_ptr<SubDevice> sub = of(device);
    if (sub == nullptr) return nullptr;
    const std::lock_guard guard(sub->mutex_);
    ++sub->held_commands_;
    SubDevice* const kept = sub.get();
    return {kept, [sub = std::move(sub)](void*) {
                std::unique_lock lock(sub->mutex_);
                --sub->held_commands_;
                sub->follow(lock);
            }};
}

void SubDevice::begins() {
    std::unique_lock lock(mutex_);
    ++commands_;
    follow(lock);
}
void SubDevice::ended() {
    std::unique_lock lock(mutex_);
    --commands_;
    follow(lock);
}
void SubDevice::native_begins() {
    std::unique_lock lock(mutex_);
    ++natives_;
    follow(lock);
}
void SubDevice::native_ended() {
    std::unique_lock lock(mutex_);
    --natives_;
    follow(lock);
}

bool SubDevice::retain_again(cl_device_id parent, std::vector<cl_device_partition_property> how) {
    const std::lock_guard guard(mutex_);
    if (!is_kept() || !has_range_) return false;
    parent_ = parent;
    how_ = std::move(how);
    ++references_;
    return true;
}

void SubDevice::retain_first(cl_device_id parent, std::vector<cl_device_partition_property> how) {
    const std::lock_guard guard(mutex_);
    parent_ = parent;
    how_ = std::move(how);
    ++references_;
    has_range_ = true;
}

bool SubDevice::is_going() const {
    const std::lock_guard guard(mutex_);
    return references_ == 0 && attached_ == 0 && (has_range_ || changing_);
}

void SubDevice::follow_references() {
    std::unique_lock lock(mutex_);
    follow(lock);
}

void SubDevice::retain() {
    const std::lock_guard guard(mutex_);
    ++references_;
}

void SubDevice::release() {
    std::unique_lock lock(mutex_);
    if (references_ == 0) return;
    --references_;
    free_if_unused(lock);
}

void SubDevice::attach() {
    const std::lock_guard guard(mutex_);
    ++attached_;
}

void SubDevice::detach() {
    std::unique_lock lock(mutex_);
    --attached_;
    free_if_unused(lock);
}

void SubDevice::free_if_unused(std::unique_lock<std::mutex>& lock) {
    if (is_kept()) return;
    follow(lock);
    // Afterwards its CPUs may be another's.
    changed_.wait(lock, [this] { return !changing_ || changer_ == std::this_thread::get_id(); });
}

cl_device_id SubDevice::parent() const {
    const std::lock_guard guard(mutex_);
    return parent_;
}
std::vector<cl_device_partition_property> SubDevice::how() const {
    const std::lock_guard guard(mutex_);
    return how_;
}
cl_uint SubDevice::references() const {
    const std::lock_guard guard(mutex_);
    return references_;
}

CpuSet cpus_of_device(cl_device_id device) {
    if (const std::shared_ptr<SubDevice> sub = SubDevice::of(device)) return sub->cpus();
    if (const std::shared_ptr<ThreadPool> pool = ThreadPool::of(device)) return pool->cpus();
    return process_cpus();
}

bool partitions(cl_device_id device) {
    return SubDevice::of(device) != nullptr || ThreadPool::of(device) != nullptr;
}

/// One that is there, retained; null: there is none.
static std::shared_ptr<SubDevice> retained(const std::shared_ptr<ThreadPool>& pool, const CpuSet& cpus,
                                           cl_device_id parent,
                                           const std::vector<cl_device_partition_property>& how) {
    DeviceRegistry& all = device_registry();
    const std::lock_guard guard(all.mutex);
    for (const auto& [id, device] : all.devices)
        if (device->pool() == pool && device->cpus() == cpus && device->retain_again(parent, how))
            return device;
    return nullptr;
}

/// Threads for a set of CPUs. What the program has released it gives free when its commands have ended, of
/// which the driver may tell a moment after it has told the program.
static std::optional<ThreadRange> claim(const std::shared_ptr<ThreadPool>& pool, const CpuSet& cpus) {
    constexpr auto kToldWithin = std::chrono::seconds(1);
    const auto latest = std::chrono::steady_clock::now() + kToldWithin;
    const auto some_is_going = [&] {
        DeviceRegistry& all = device_registry();
        const std::lock_guard guard(all.mutex);
        return std::ranges::any_of(all.devices, [&](const auto& one) {
            return one.second->pool() == pool && one.second->is_going();
        });
    };
    while (true) {
        const uint64_t released = pool->released();
        if (std::optional<ThreadRange> range = pool->claim(cpus)) return range;
        if (!some_is_going() && released == pool->released()) return {};
        if (!pool->wait_for_release(released, latest)) return {};
    }
}

/// One of these CPUs, retained; it may be there from before.
static std::shared_ptr<SubDevice> sub_device(const std::shared_ptr<ThreadPool>& pool, const CpuSet& cpus,
                                             cl_device_id parent,
                                             const std::vector<cl_device_partition_property>& how) {
    // One is made at a time. The driver's threads, which that waits for, may look for devices meanwhile.
    static auto& making = *new std::mutex;
    const std::lock_guard alone(making);
    if (std::shared_ptr<SubDevice> one = retained(pool, cpus, parent, how)) return one;
    const std::optional<ThreadRange> range = claim(pool, cpus);
    if (!range) return nullptr;
    cl_device_id const id = pool->device_of(*range);
    if (id == nullptr) {
        pool->release(*range, cpus);
        return nullptr;
    }
    DeviceRegistry& all = device_registry();
    const std::lock_guard guard(all.mutex);
    auto& place = all.devices[id];
    if (place == nullptr || place->cpus() != cpus)
        place = std::make_shared<SubDevice>(id, pool, cpus, *range);
    place->retain_first(parent, how);
    return place;
}

/// Of a list that partition() took; lists of units may have a 0 before their end.
static size_t length_of(const cl_device_partition_property* properties) {
    const bool has_list = properties[0] == CL_DEVICE_PARTITION_BY_COUNTS ||
                          properties[0] == CL_DEVICE_PARTITION_BY_NAMES_HEDDLE;
    const auto end_of_list = properties[0] == CL_DEVICE_PARTITION_BY_COUNTS
                                 ? cl_device_partition_property{CL_DEVICE_PARTITION_BY_COUNTS_LIST_END}
                                 : CL_PARTITION_BY_NAMES_LIST_END_HEDDLE;
    size_t length = 1;
    while (properties[length] != (has_list ? end_of_list : 0)) ++length;
    return length + 1;
}

cl_int create_sub_devices(cl_device_id device, const cl_device_partition_property* properties, cl_uint room,
                          cl_device_id* devices, cl_uint* count) {
    const std::shared_ptr<SubDevice> from = SubDevice::of(device);
    const std::shared_ptr<ThreadPool> pool = from != nullptr ? from->pool() : ThreadPool::of(device);
    if (properties == nullptr || (devices == nullptr && room > 0)) return CL_INVALID_VALUE;
    static const Machine machine = Machine::detect();
    const auto [code, parts] = partition(cpus_of_device(device), machine, properties);
    if (code != CL_SUCCESS) return code;
    if (count != nullptr) *count = static_cast<cl_uint>(parts.size());
    if (devices == nullptr) return CL_SUCCESS;
    if (room < parts.size()) return CL_INVALID_VALUE;
    // All of a sub-device is that one, which cannot be its own parent.
    if (from != nullptr && parts.front() == from->cpus()) return CL_DEVICE_PARTITION_FAILED;
    const std::vector how(properties, properties + length_of(properties));
    std::vector<std::shared_ptr<SubDevice>> made;
    for (const CpuSet& part : parts) {
        std::shared_ptr<SubDevice> one = sub_device(pool, part, device, how);
        if (one == nullptr) {
            for (const auto& other : made) other->release();
            return CL_DEVICE_PARTITION_FAILED;
        }
        one->follow_references();
        made.push_back(std::move(one));
    }
    for (size_t i = 0; i < made.size(); ++i) devices[i] = made[i]->id();
    return CL_SUCCESS;
}

}  // namespace heddle::opencl
