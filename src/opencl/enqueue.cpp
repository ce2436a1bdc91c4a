// Each command of a queue goes through here for two reasons. One that waits for a held command (a kernel of
// another runtime) must not run before it, and not at all where that fails: the most frequent kinds are held
// then, too, with copies of what they were given; the others wait here. A sub-device uses its CPUs as long as
// the driver has commands for it. And a command that blocks pauses the task that it is called in.
#include "opencl/enqueue.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "heddle/in_task.hpp"
#include "opencl/barriers.hpp"
#include "opencl/command_checks.hpp"
#include "opencl/event_ends.hpp"
#include "opencl/held_command.hpp"
#include "opencl/kernel_arguments.hpp"
#include "opencl/sub_devices.hpp"
#include "opencl/waits.hpp"

namespace heddle::opencl {
namespace {

/// A command with what it needs, without queue, wait list and event.
using Command = std::function<cl_int(cl_command_queue, cl_event*)>;

std::span<const cl_event> events_of(cl_uint count, const cl_event* list) {
    return {list, list == nullptr ? 0 : count};
}

bool is_without_order(cl_command_queue queue) {
    return (queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES) &
            CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

/// Tells the sub-device when the command has ended.
class BusyScope {
  public:
    explicit BusyScope(cl_command_queue queue)
        : device_(SubDevice::of(queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE))) {
        if (device_ != nullptr) device_->begins();
    }
    /// Where the event of the command is to be written.
    [[nodiscard]] cl_event* place(cl_event* wanted) {
        return device_ == nullptr || wanted != nullptr ? wanted : own_.place();
    }
    void enqueued(bool well, const cl_event* wanted) {
        if (device_ == nullptr) return;
        cl_event const event = wanted != nullptr ? *wanted : own_.get();
        if (!well || !when_over(event, [device = device_](cl_int) { device->ended(); })) device_->ended();
    }

  private:
    std::shared_ptr<SubDevice> device_;
    OwnedEvent own_;
};

/// Into a queue of the command's own when it may run; it ends with the driver's command.
cl_int hold_command(cl_command_queue queue, cl_command_type type, std::span<const cl_event> after,
                    Command command, cl_event* event) {
    const auto begin = [queue, command = std::move(command)](const std::shared_ptr<HeldCommand>& held) {
        cl_int code = CL_SUCCESS;
        CommandTimes* const times = held->times();
        cl_command_queue side = next().clCreateCommandQueue(
            queue_value<cl_context>(queue, CL_QUEUE_CONTEXT),
            queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE),
            times != nullptr ? CL_QUEUE_PROFILING_ENABLE : cl_command_queue_properties{0}, &code);
        if (code != CL_SUCCESS) {
            held->end(code);
            return;
        }
        OwnedEvent done;
        BusyScope busy(queue);
        code = command(side, done.place());
        busy.enqueued(code == CL_SUCCESS, done.place());
        if (code == CL_SUCCESS && times != nullptr) times->run_as(done.get());
        if (code == CL_SUCCESS && !when_over(done.get(), [held](cl_int status) { held->end(status); }))
            code = CL_OUT_OF_RESOURCES;
        next().clFlush(side);
        if (code != CL_SUCCESS) held->end(code);
        next().clReleaseCommandQueue(side);
    };
    return HeldCommand::hold(queue, type, after, begin, event);
}

template <auto A, auto B>
constexpr bool kSame =
    std::is_same_v<std::integral_constant<decltype(A), A>, std::integral_constant<decltype(B), B>>;

// Copies of commands, by kind; none for the others.

template <auto Member, class... Args>
Command copied(Args...) {
    return nullptr;
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueNDRangeKernel>) Command
    copied(cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* work,
           const size_t* group) {
    constexpr cl_uint kMost = 3;
    cl_int code = CL_SUCCESS;
    cl_kernel clone = next().clCloneKernel(kernel, &code);
    if (code != CL_SUCCESS) return nullptr;
    const std::shared_ptr<std::remove_pointer_t<cl_kernel>> own(
        clone, [](cl_kernel object) { next().clReleaseKernel(object); });
    struct Shape {
        bool given = false;
        std::array<size_t, kMost> values{};
        [[nodiscard]] const size_t* get() const { return given ? values.data() : nullptr; }
    };
    const auto shape = [&](const size_t* values) {
        Shape copy{values != nullptr, {}};
        if (values != nullptr) std::copy_n(values, dimensions, copy.values.begin());
        return copy;
    };
    return [own, arguments = kept_arguments(kernel), dimensions, offset = shape(offset), work = shape(work),
            group = shape(group)](cl_command_queue queue, cl_event* event) {
        return next().clEnqueueNDRangeKernel(queue, own.get(), dimensions, offset.get(), work.get(),
                                             group.get(), 0, nullptr, event);
    };
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueReadBuffer>) Command
    copied(cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void* to) {
    if (blocking != CL_FALSE) return nullptr;
    return [=, buffer = kept(buffer)](cl_command_queue queue, cl_event* event) {
        return next().clEnqueueReadBuffer(queue, buffer.get(), CL_FALSE, offset, size, to, 0, nullptr, event);
    };
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueWriteBuffer>) Command
    copied(cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void* from) {
    if (blocking != CL_FALSE) return nullptr;
    return [=, buffer = kept(buffer)](cl_command_queue queue, cl_event* event) {
        return next().clEnqueueWriteBuffer(queue, buffer.get(), CL_FALSE, offset, size, from, 0, nullptr,
                                           event);
    };
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueCopyBuffer>) Command
    copied(cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size) {
    return [=, from = kept(from), to = kept(to)](cl_command_queue queue, cl_event* event) {
        return next().clEnqueueCopyBuffer(queue, from.get(), to.get(), from_offset, to_offset, size, 0,
                                          nullptr, event);
    };
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueMarkerWithWaitList> ||
         kSame<Member, &cl_icd_dispatch::clEnqueueBarrierWithWaitList>) Command copied() {
    return [](cl_command_queue queue, cl_event* event) {
        return next().clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
    };
}

// What is refused of them before they are copied.

template <auto Member, class... Args>
cl_int checked(cl_command_queue, Args...) {
    return CL_SUCCESS;
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueNDRangeKernel>) cl_int
    checked(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t*, const size_t* work,
            const size_t* group) {
    return check_kernel(queue, kernel, dimensions, work, group);
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueReadBuffer>) cl_int
    checked(cl_command_queue queue, cl_mem buffer, cl_bool, size_t offset, size_t size, void* to) {
    return check_transfer(queue, buffer, CL_MEM_HOST_WRITE_ONLY, offset, size, to);
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueWriteBuffer>) cl_int
    checked(cl_command_queue queue, cl_mem buffer, cl_bool, size_t offset, size_t size, const void* from) {
    return check_transfer(queue, buffer, CL_MEM_HOST_READ_ONLY, offset, size, from);
}

template <auto Member>
requires(kSame<Member, &cl_icd_dispatch::clEnqueueCopyBuffer>) cl_int
    checked(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
            size_t size) {
    return check_copy(queue, from, to, from_offset, to_offset, size);
}

template <auto Member>
constexpr cl_command_type type_of() {
    if (kSame<Member, &cl_icd_dispatch::clEnqueueReadBuffer>) return CL_COMMAND_READ_BUFFER;
    if (kSame<Member, &cl_icd_dispatch::clEnqueueWriteBuffer>) return CL_COMMAND_WRITE_BUFFER;
    if (kSame<Member, &cl_icd_dispatch::clEnqueueCopyBuffer>) return CL_COMMAND_COPY_BUFFER;
    if (kSame<Member, &cl_icd_dispatch::clEnqueueMarkerWithWaitList>) return CL_COMMAND_MARKER;
    if (kSame<Member, &cl_icd_dispatch::clEnqueueBarrierWithWaitList>) return CL_COMMAND_BARRIER;
    return CL_COMMAND_NDRANGE_KERNEL;
}

/// Which parameter behind the queue says whether it blocks.
template <auto Member>
constexpr std::optional<size_t> blocking_at() {
    using T = cl_icd_dispatch;
    if (kSame<Member, &T::clEnqueueSVMMemcpy> || kSame<Member, &T::clEnqueueSVMMap>) return 0;
    if (kSame<Member, &T::clEnqueueReadBuffer> || kSame<Member, &T::clEnqueueReadBufferRect> ||
        kSame<Member, &T::clEnqueueReadImage> || kSame<Member, &T::clEnqueueWriteBuffer> ||
        kSame<Member, &T::clEnqueueWriteBufferRect> || kSame<Member, &T::clEnqueueWriteImage> ||
        kSame<Member, &T::clEnqueueMapBuffer> || kSame<Member, &T::clEnqueueMapImage>)
        return 1;
    return std::nullopt;
}

/// A function of the table, whose last parameters, before `Behind` others, are the wait list and the event.
/// Enqueues without blocking where a task would wait in it, and then pauses that.
template <auto Member, size_t Behind, class... Args, class Enqueue>
cl_int pausing(std::tuple<Args&...> all, Enqueue enqueue) {
    if constexpr (blocking_at<Member>().has_value()) {
        constexpr size_t kEvent = sizeof...(Args) - 1 - Behind;
        cl_bool& blocking = std::get<*blocking_at<Member>()>(all);
        if (blocking != CL_FALSE && in_task()) {
            blocking = CL_FALSE;
            cl_event own = nullptr;
            cl_event* const wanted = std::exchange(std::get<kEvent>(all), &own);
            const cl_int code = enqueue();
            return code != CL_SUCCESS
                       ? code
                       : end_of_blocking(own, events_of(std::get<kEvent - 2>(all), std::get<kEvent - 1>(all)),
                                         wanted);
        }
    }
    return enqueue();
}

template <class Function>
struct Wrapped;

template <class... Args>
struct Wrapped<cl_int(CL_API_CALL*)(cl_command_queue, Args...)> {
    static constexpr size_t kBefore = sizeof...(Args) - 3;

    template <auto Member>
    static cl_int CL_API_CALL call(cl_command_queue queue, Args... args) {
        return pausing<Member, 0>(std::tie(args...), [&] { return enqueue<Member>(queue, args...); });
    }

    template <auto Member>
    static cl_int enqueue(cl_command_queue queue, Args... args) {
        auto all = std::tie(args...);
        const auto after = events_of(std::get<kBefore>(all), std::get<kBefore + 1>(all));
        cl_event*& event = std::get<kBefore + 2>(all);
        if (!HeldWaits(after).empty()) {
            if (const cl_int code = check<Member>(queue, after, all, std::make_index_sequence<kBefore>());
                code != CL_SUCCESS)
                return code;
            Command command = copy_of<Member>(all, std::make_index_sequence<kBefore>());
            if (command != nullptr) return hold_command(queue, type_of<Member>(), after, command, event);
            if (const cl_int code = wait_for(after); code != CL_SUCCESS) return code;
        }
        constexpr bool kIsBarrier = kSame<Member, &cl_icd_dispatch::clEnqueueBarrierWithWaitList>;
        OwnedEvent barrier;
        if (kIsBarrier && event == nullptr) event = barrier.place();
        BusyScope busy(queue);
        event = busy.place(event);
        const cl_int code = (next().*Member)(queue, args...);
        busy.enqueued(code == CL_SUCCESS, event);
        if (kIsBarrier && code == CL_SUCCESS && is_without_order(queue)) Barriers::note(queue, *event);
        return code;
    }

    template <auto Member, class Tuple, size_t... Index>
    static cl_int check(cl_command_queue queue, std::span<const cl_event> after, const Tuple& all,
                        std::index_sequence<Index...>) {
        const auto context = queue_value<cl_context>(queue, CL_QUEUE_CONTEXT);
        if (context == nullptr) return CL_INVALID_COMMAND_QUEUE;
        const cl_int code = check_events(after, context);
        return code == CL_SUCCESS ? checked<Member>(queue, std::get<Index>(all)...) : code;
    }

    template <auto Member, class Tuple, size_t... Index>
    static Command copy_of(const Tuple& all, std::index_sequence<Index...>) {
        return copied<Member>(std::get<Index>(all)...);
    }
};

/// The same for those that answer with a pointer, and the status behind the event.
template <class... Args>
struct Wrapped<void*(CL_API_CALL*)(cl_command_queue, Args...)> {
    static constexpr size_t kBefore = sizeof...(Args) - 4;

    template <auto Member>
    static void* CL_API_CALL call(cl_command_queue queue, Args... args) {
        auto all = std::tie(args...);
        cl_int status = CL_SUCCESS;
        cl_int* const wanted = std::exchange(std::get<kBefore + 3>(all), &status);
        void* result = nullptr;
        const cl_int code = pausing<Member, 1>(all, [&] {
            result = enqueue<Member>(queue, args...);
            return status;
        });
        if (wanted != nullptr) *wanted = code;
        return code == CL_SUCCESS ? result : nullptr;
    }

    template <auto Member>
    static void* enqueue(cl_command_queue queue, Args... args) {
        auto all = std::tie(args...);
        const auto after = events_of(std::get<kBefore>(all), std::get<kBefore + 1>(all));
        cl_event*& event = std::get<kBefore + 2>(all);
        if (!HeldWaits(after).empty()) {
            if (const cl_int code = wait_for(after); code != CL_SUCCESS) {
                *std::get<kBefore + 3>(all) = code;
                return nullptr;
            }
        }
        BusyScope busy(queue);
        event = busy.place(event);
        void* const result = (next().*Member)(queue, args...);
        busy.enqueued(*std::get<kBefore + 3>(all) == CL_SUCCESS, event);
        return result;
    }
};

template <auto Member>
void wrap(cl_icd_dispatch& table) {
    using Function = std::remove_reference_t<decltype(table.*Member)>;
    table.*Member = Wrapped<Function>::template call<Member>;
}

}  // namespace

void intercept_commands(cl_icd_dispatch& table) {
    using T = cl_icd_dispatch;
    wrap<&T::clEnqueueNDRangeKernel>(table);
    wrap<&T::clEnqueueTask>(table);
    wrap<&T::clEnqueueNativeKernel>(table);
    wrap<&T::clEnqueueReadBuffer>(table);
    wrap<&T::clEnqueueReadBufferRect>(table);
    wrap<&T::clEnqueueWriteBuffer>(table);
    wrap<&T::clEnqueueWriteBufferRect>(table);
    wrap<&T::clEnqueueCopyBuffer>(table);
    wrap<&T::clEnqueueCopyBufferRect>(table);
    wrap<&T::clEnqueueFillBuffer>(table);
    wrap<&T::clEnqueueReadImage>(table);
    wrap<&T::clEnqueueWriteImage>(table);
    wrap<&T::clEnqueueCopyImage>(table);
    wrap<&T::clEnqueueCopyImageToBuffer>(table);
    wrap<&T::clEnqueueCopyBufferToImage>(table);
    wrap<&T::clEnqueueFillImage>(table);
    wrap<&T::clEnqueueMapBuffer>(table);
    wrap<&T::clEnqueueMapImage>(table);
    wrap<&T::clEnqueueUnmapMemObject>(table);
    wrap<&T::clEnqueueMigrateMemObjects>(table);
    wrap<&T::clEnqueueMarkerWithWaitList>(table);
    wrap<&T::clEnqueueBarrierWithWaitList>(table);
    wrap<&T::clEnqueueSVMFree>(table);
    wrap<&T::clEnqueueSVMMigrateMem>(table);
    wrap<&T::clEnqueueSVMMemcpy>(table);
    wrap<&T::clEnqueueSVMMemFill>(table);
    wrap<&T::clEnqueueSVMMap>(table);
    wrap<&T::clEnqueueSVMUnmap>(table);
    table.clEnqueueBarrier = [](cl_command_queue queue) -> cl_int {
        return Wrapped<decltype(T::clEnqueueBarrierWithWaitList)>::call<&T::clEnqueueBarrierWithWaitList>(
            queue, 0, nullptr, nullptr);
    };
    table.clEnqueueWaitForEvents = [](cl_command_queue queue, cl_uint count, const cl_event* list) -> cl_int {
        if (count == 0 || list == nullptr) return CL_INVALID_VALUE;
        const cl_int answer =
            Wrapped<decltype(T::clEnqueueBarrierWithWaitList)>::call<&T::clEnqueueBarrierWithWaitList>(
                queue, count, list, nullptr);
        return answer == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : answer;
    };
}

}  // namespace heddle::opencl
