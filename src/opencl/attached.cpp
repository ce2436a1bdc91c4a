#include "opencl/attached.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "opencl/sub_devices.hpp"

namespace heddle::opencl {
namespace {

/// Sub-devices that something keeps.
class Kept {
  public:
    explicit Kept(std::span<const cl_device_id> devices) {
        for (cl_device_id device : devices)
            if (std::shared_ptr<SubDevice> sub = SubDevice::of(device)) {
                devices_.push_back(std::move(sub));
                devices_.back()->attach();
            }
    }
    Kept(Kept&& other) noexcept = default;
    Kept& operator=(Kept&&) = delete;
    ~Kept() {
        for (const auto& device : devices_) device->detach();
    }
    [[nodiscard]] bool empty() const noexcept { return devices_.empty(); }

  private:
    std::vector<std::shared_ptr<SubDevice>> devices_;
};

/// By the driver's contexts and queues, with the program's references. Never destroyed: they may be used
/// while the process ends.
class Attachments {
  public:
    void enter(void* object, Kept kept) {
        if (object == nullptr || kept.empty()) return;
        const std::lock_guard guard(mutex_);
        objects_.emplace(object, Attached{std::move(kept), 1});
    }
    void retain(void* object) {
        const std::lock_guard guard(mutex_);
        if (const auto found = objects_.find(object); found != objects_.end()) ++found->second.references;
    }
    /// What it kept, where this was the last reference.
    [[nodiscard]] Kept release(void* object) {
        const std::lock_guard guard(mutex_);
        const auto found = objects_.find(object);
        if (found == objects_.end() || --found->second.references > 0)
            return Kept(std::span<const cl_device_id>());
        Kept kept = std::move(found->second.kept);
        objects_.erase(found);
        return kept;
    }

  private:
    struct Attached {
        Kept kept;
        cl_uint references;
    };
    std::mutex mutex_;
    std::unordered_map<void*, Attached> objects_;
};

Attachments& attachments() {
    static auto* const all = new Attachments;
    return *all;
}

/// What `create` makes keeps these.
template <class Create>
auto keeping(std::span<const cl_device_id> devices, const Create& create) {
    Kept kept(devices);
    const auto made = create();
    attachments().enter(made, std::move(kept));
    return made;
}

}  // namespace

void intercept_contexts_and_queues(cl_icd_dispatch& table) {
    table.clCreateContext =
        [](const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
           void(CL_CALLBACK * notify)(const char*, const void*, size_t, void*), void* data, cl_int* code) {
            return keeping({devices, devices == nullptr ? 0 : count}, [&] {
                return next().clCreateContext(properties, count, devices, notify, data, code);
            });
        };
    table.clCreateCommandQueue = [](cl_context context, cl_device_id device,
                                    cl_command_queue_properties properties, cl_int* code) {
        return keeping({&device, 1},
                       [&] { return next().clCreateCommandQueue(context, device, properties, code); });
    };
    table.clCreateCommandQueueWithProperties = [](cl_context context, cl_device_id device,
                                                  const cl_queue_properties* properties, cl_int* code) {
        return keeping({&device, 1}, [&] {
            return next().clCreateCommandQueueWithProperties(context, device, properties, code);
        });
    };
    table.clRetainContext = [](cl_context context) {
        attachments().retain(context);
        return next().clRetainContext(context);
    };
    table.clReleaseContext = [](cl_context context) {
        const Kept kept = attachments().release(context);
        return next().clReleaseContext(context);
    };
    table.clRetainCommandQueue = [](cl_command_queue queue) {
        attachments().retain(queue);
        return next().clRetainCommandQueue(queue);
    };
    table.clReleaseCommandQueue = [](cl_command_queue queue) {
        const Kept kept = attachments().release(queue);
        return next().clReleaseCommandQueue(queue);
    };
}

}  // namespace heddle::opencl
