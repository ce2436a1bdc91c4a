#include "opencl/thread_pool.hpp"

#include <sched.h>
#include <unistd.h>

#include <map>
#include <string>

#include "heddle/machine.hpp"

namespace heddle::opencl {
namespace {

bool is_pocl(cl_device_id device) {
    const auto platform = device_value<cl_platform_id>(device, CL_DEVICE_PLATFORM);
    char name[128] = "";
    next().clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
    return std::string(name) == "Portable Computing Language";
}

int units_of(cl_device_id device) {
    return static_cast<int>(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
}

CpuSet first_of(const CpuSet& cpus, int count) {
    CpuSet first;
    for (int cpu = cpus.first(); cpu >= 0 && first.count() < count; cpu = cpus.next(cpu)) first.insert(cpu);
    return first;
}

}  // namespace

const CpuSet& process_cpus() {
    static const CpuSet cpus = allowance(Machine::detect()).usable;
    return cpus;
}

ThreadPool::ThreadPool(cl_device_id device)
    : device_(device),
      cpus_(first_of(process_cpus(), units_of(device))),
      places_(units_of(device), cpus_),
      threads_(static_cast<size_t>(units_of(device))),
      synthetic_(Machine::detect().synthetic()) {}

std::shared_ptr<ThreadPool> ThreadPool::of(cl_device_id device) {
    static auto& mutex = *new std::mutex;
    static auto& pools = *new std::map<cl_device_id, std::shared_ptr<ThreadPool>>;
    const std::lock_guard guard(mutex);
    const auto found = pools.find(device);
    if (found != pools.end()) return found->second;
    // A device of one unit that cannot be divided is a range of its one thread.
    const bool can = is_pocl(device) &&
                     device_value<cl_uint>(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) > 1 &&
                     units_of(device) > 0;
    return pools.emplace(device, can ? std::make_shared<ThreadPool>(device) : nullptr).first->second;
}

cl_device_id ThreadPool::device_of(const ThreadRange& range) {
    const std::lock_guard guard(mutex_);
    for (const Known& known : devices_)
        if (known.range == range) return known.device;
    // The driver numbers the threads of a partition from 0.
    std::vector<cl_device_partition_property> properties{CL_DEVICE_PARTITION_BY_COUNTS};
    if (range.first > 0) properties.push_back(range.first);
    properties.insert(properties.end(), {range.count, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
    cl_device_id made[2] = {};
    const cl_uint count = range.first > 0 ? 2 : 1;
    if (next().clCreateSubDevices(device_, properties.data(), count, made, nullptr) != CL_SUCCESS)
        return nullptr;
    devices_.push_back({range, made[count - 1]});
    return made[count - 1];
}

void ThreadPool::find_thread(int index) {
    const std::lock_guard guard(finding_);
    std::atomic<pid_t>& known = threads_[static_cast<size_t>(index)];
    cl_device_id alone = device_of({index, 1});
    if (known != 0 || alone == nullptr) return;
    cl_int code = CL_SUCCESS;
    cl_context context = next().clCreateContext(nullptr, 1, &alone, nullptr, nullptr, &code);
    if (code != CL_SUCCESS) return;
    cl_command_queue queue = next().clCreateCommandQueue(context, alone, 0, &code);
    if (code != CL_SUCCESS) return;
    std::atomic<pid_t>* place = &known;
    code = next().clEnqueueNativeKernel(
        queue, [](void* args) { **static_cast<std::atomic<pid_t>**>(args) = ::gettid(); },
        static_cast<void*>(&place), sizeof place, 0, nullptr, nullptr, 0, nullptr, nullptr);
    if (code == CL_SUCCESS) next().clFinish(queue);
    // Queue and context stay, as the sub-device does.
}

void ThreadPool::bind(const ThreadRange& range, const CpuSet& usable) {
    if (synthetic_) return;
    for (int i = range.first; i < range.first + range.count; ++i) {
        const CpuSet cpus = places_.cpus_of(i) & usable;
        const pid_t id = threads_[static_cast<size_t>(i)];
        if (id == 0 || cpus.empty()) continue;
        const std::vector<unsigned long> words = cpus.to_native();
        ::sched_setaffinity(id, words.size() * sizeof words[0],
                            reinterpret_cast<const cpu_set_t*>(words.data()));
    }
}

std::optional<ThreadRange> ThreadPool::claim(const CpuSet& cpus) {
    std::optional<ThreadRange> range;
    {
        const std::lock_guard guard(mutex_);
        range = places_.claim(cpus);
    }
    if (!range) return range;
    for (int i = range->first; i < range->first + range->count; ++i) find_thread(i);
    const std::lock_guard guard(mutex_);
    bind(*range, cpus_);
    return range;
}

void ThreadPool::release(const ThreadRange& range, const CpuSet& cpus) {
    const std::lock_guard guard(mutex_);
    places_.release(range, cpus);
    bind(range, cpus_);
    ++released_;
    was_released_.notify_all();
}

uint64_t ThreadPool::released() const {
    const std::lock_guard guard(mutex_);
    return released_;
}

bool ThreadPool::wait_for_release(uint64_t released, std::chrono::steady_clock::time_point latest) {
    std::unique_lock lock(mutex_);
    return was_released_.wait_until(lock, latest, [&] { return released_ != released; });
}

void ThreadPool::confine(const ThreadRange& range, const CpuSet& usable) {
    const std::lock_guard guard(mutex_);
    bind(range, usable);
}

}  // namespace heddle::opencl
