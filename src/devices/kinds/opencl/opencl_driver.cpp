// A context and a queue for each device, and another queue for copies where it has memory of its own. The
// queue of a CPU is one without order, where it has such: a kernel of one group keeps one core busy, and
// tasks that are there at once need no order.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/kinds/opencl/opencl_driver.hpp"
#include "devices/kinds/opencl/opencl_program.hpp"

namespace heddle::devices::opencl {
namespace {

cl_int status(cl_event event) {
    cl_int now = CL_QUEUED;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof now, &now, nullptr);
    return now;
}

/// CL_COMPLETE, or why it failed.
cl_int outcome(cl_event event) {
    const cl_int now = status(event);
    if (now <= CL_COMPLETE) return now;
    const cl_int code = clWaitForEvents(1, &event);
    return code == CL_SUCCESS ? CL_COMPLETE : status(event) < CL_COMPLETE ? status(event) : code;
}

constexpr size_t kFirstPixel[3] = {0, 0, 0};

/// All of an image.
struct Region {
    explicit Region(const ImageShape& shape) : pixels{shape.width, shape.height, 1} {}
    const size_t pixels[3];
};

cl_image_format format_of(const ImageShape& shape) {
    constexpr cl_channel_order kOrders[] = {CL_R, CL_RG, CL_RGBA, CL_BGRA};
    constexpr cl_channel_type kTypes[] = {
        CL_UNORM_INT8,    CL_UNORM_INT16,    CL_SIGNED_INT8,    CL_SIGNED_INT16, CL_SIGNED_INT32,
        CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_UNSIGNED_INT32, CL_HALF_FLOAT,   CL_FLOAT};
    return {kOrders[static_cast<size_t>(shape.channels)], kTypes[static_cast<size_t>(shape.type)]};
}

/// Oclgrind keeps the commands of all queues in one map without a lock, though OpenCL's functions may be
/// called by any thread: its queues and events are used in turn. Null: not so.
std::mutex* turns_of(const std::string& platform) {
    static std::mutex oclgrind;
    return platform == "Oclgrind" ? &oclgrind : nullptr;
}
std::unique_lock<std::mutex> take(std::mutex* turns) {
    return turns == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*turns);
}

class OpenClCopy final : public DriverCopy {
  public:
    /// Within a turn.
    OpenClCopy(cl_event event, std::mutex* turns) : event_(event), turns_(turns) { clRetainEvent(event); }
    ~OpenClCopy() override {
        const auto turn = take(turns_);
        event_.reset();
    }
    [[nodiscard]] bool has_ended() override {
        const auto turn = take(turns_);
        return status(event_.get()) <= CL_COMPLETE;
    }
    [[nodiscard]] bool finish() override {
        const auto turn = take(turns_);
        return outcome(event_.get()) == CL_COMPLETE;
    }

  private:
    Event event_;
    std::mutex* const turns_;
};

class OpenClDriver final : public DeviceDriver {
  public:
    OpenClDriver(cl_platform_id platform, cl_device_id device) : device_(device) {
        info_.name = device_text(device, CL_DEVICE_NAME);
        info_.kind = "opencl";
        info_.available = true;
        info_.version = device_text(device, CL_DRIVER_VERSION);
        info_.platform = platform_text(platform, CL_PLATFORM_NAME);
        turns_ = turns_of(info_.platform);
        info_.type = type_of(device_value<cl_device_type>(device, CL_DEVICE_TYPE));
        info_.units = device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
        if (device_value<cl_device_id>(device, CL_DEVICE_PARENT_DEVICE) != nullptr)
            info_.name += fmt::format(", {} of its compute units", info_.units);
        info_.memory_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
        cl_int code = CL_SUCCESS;
        context_.reset(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code), Releaser());
        check(code, info_.name, "clCreateContext");
        queue_ = make_queue();
        info_.shares_host_memory = info_.type == DeviceType::kCpu &&
                                   device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE &&
                                   works_in_host_memory();
        constexpr cl_command_queue_properties kUnordered = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        is_unordered_ =
            info_.shares_host_memory &&
            (device_value<cl_command_queue_properties>(device, CL_DEVICE_QUEUE_PROPERTIES) & kUnordered) != 0;
        if (is_unordered_) queue_ = make_queue(kUnordered);
        find_images();
        if (!info_.shares_host_memory || info_.has_images) copies_ = make_queue();
    }

    ~OpenClDriver() override {
        const auto turn = take(turns_);
        if (copies_ != nullptr) clFinish(copies_.get());
        clFinish(queue_.get());
        written_.clear();
        last_ = {};
        marks_.clear();
    }

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }

    [[nodiscard]] std::shared_ptr<DriverProgram> build(const ProgramSource& source) override {
        if (source.opencl.empty()) return nullptr;
        return std::make_shared<OpenClProgram>(context_, device_, info_.name, source);
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate(size_t bytes, void* host) override {
        auto memory = std::make_unique<OpenClMemory>();
        memory->context = context_;
        memory->object = buffer(bytes, info_.shares_host_memory ? host : nullptr);
        return memory;
    }

    [[nodiscard]] std::string image_problem(const ImageShape& shape) const override {
        if (!info_.has_images) return "it has no images";
        if (shape.width > most_width_ || shape.height > most_height_)
            return fmt::format("its images have at most {} x {} pixels", most_width_, most_height_);
        const cl_image_format wanted = format_of(shape);
        for (const cl_image_format& format : formats_)
            if (format.image_channel_order == wanted.image_channel_order &&
                format.image_channel_data_type == wanted.image_channel_data_type)
                return "";
        return "it has no images of such pixels";
    }

    [[nodiscard]] std::unique_ptr<DriverMemory> allocate_image(const ImageShape& shape) override {
        if (!image_problem(shape).empty()) return DeviceDriver::allocate_image(shape);
        const cl_image_format format = format_of(shape);
        cl_image_desc layout{};
        layout.image_type = CL_MEM_OBJECT_IMAGE2D;
        layout.image_width = shape.width;
        layout.image_height = shape.height;
        auto memory = std::make_unique<OpenClMemory>();
        memory->context = context_;
        memory->image = shape;
        cl_int code = CL_SUCCESS;
        memory->object.reset(
            clCreateImage(context_.get(), CL_MEM_READ_WRITE, &format, &layout, nullptr, &code));
        check(code, info_.name, "clCreateImage");
        return memory;
    }

    [[nodiscard]] std::unique_ptr<DriverCopy> write(DriverMemory& memory, size_t offset, size_t bytes,
                                                    const void* from) override {
        const auto& to = static_cast<OpenClMemory&>(memory);
        const auto turn = take(turns_);
        cl_event event = nullptr;
        if (to.image)
            check(clEnqueueWriteImage(copies_.get(), to.object.get(), CL_FALSE, kFirstPixel,
                                      Region(*to.image).pixels, 0, 0, from, 0, nullptr, &event),
                  info_.name, "clEnqueueWriteImage");
        else
            check(clEnqueueWriteBuffer(copies_.get(), to.object.get(), CL_FALSE, offset, bytes, from, 0,
                                       nullptr, &event),
                  info_.name, "clEnqueueWriteBuffer");
        written_.emplace_back(event);
        clFlush(copies_.get());
        return std::make_unique<OpenClCopy>(event, turns_);
    }

    void read(DriverMemory& memory, size_t offset, size_t bytes, void* to) override {
        const auto& from = static_cast<OpenClMemory&>(memory);
        const auto turn = take(turns_);
        if (from.image)
            check(clEnqueueReadImage(copies_.get(), from.object.get(), CL_TRUE, kFirstPixel,
                                     Region(*from.image).pixels, 0, 0, to, 0, nullptr, nullptr),
                  info_.name, "clEnqueueReadImage");
        else
            check(clEnqueueReadBuffer(copies_.get(), from.object.get(), CL_TRUE, offset, bytes, to, 0,
                                      nullptr, nullptr),
                  info_.name, "clEnqueueReadBuffer");
    }

    void launch(DriverProgram& program, const std::string& kernel, std::span<const DriverArgument> arguments,
                const LaunchShape& shape) override {
        cl_kernel const prepared = static_cast<OpenClProgram&>(program).prepared(kernel, arguments);
        const auto turn = take(turns_);
        cl_event event = nullptr;
        if (is_unordered_ && !written_.empty()) add_barrier(written_events());
        const std::vector<cl_event> after = is_unordered_ ? std::exchange(followed_, {}) : written_events();
        enqueue(queue_.get(), prepared, kernel, info_.name, shape, after, &event);
        if (is_unordered_) followed_.push_back(event);
        last_.event.reset(event);
        note_written();
    }

    void follow(Mark mark) override {
        if (is_unordered_) followed_.push_back(marks_[mark - first_mark_].event.get());
    }

    [[nodiscard]] Mark mark() override {
        const auto turn = take(turns_);
        followed_.clear();
        if (last_.event == nullptr || !written_.empty()) {
            std::vector<cl_event> before = written_events();
            if (is_unordered_ && last_.event != nullptr) before.push_back(last_.event.get());
            cl_event event = nullptr;
            check(clEnqueueMarkerWithWaitList(queue_.get(), static_cast<cl_uint>(before.size()),
                                              before.empty() ? nullptr : before.data(), &event),
                  info_.name, "clEnqueueMarkerWithWaitList");
            last_.event.reset(event);
            note_written();
        }
        marks_.push_back(std::exchange(last_, {}));
        // So that the device begins while its worker prepares others.
        constexpr size_t kUnflushed = 8;
        if (++unflushed_ == kUnflushed || marks_.size() == 1) {
            clFlush(queue_.get());  // wait() tells what went wrong
            unflushed_ = 0;
        }
        return first_mark_ + marks_.size() - 1;
    }

    void sleep_until_passed(Mark mark) override {
        const auto turn = take(turns_);
        cl_event const object = marks_[mark - first_mark_].event.get();
        if (status(object) > CL_COMPLETE) clWaitForEvents(1, &object);
        unflushed_ = 0;
    }

    void drain() noexcept override {
        const auto turn = take(turns_);
        if (copies_ != nullptr) clFinish(copies_.get());
        clFinish(queue_.get());
    }
    void wait(Mark) override {
        const auto turn = take(turns_);
        unflushed_ = 0;  // OpenCL's waits flush
        const Marked marked = std::move(marks_.front());
        marks_.pop_front();
        ++first_mark_;
        const cl_int code = outcome(marked.event.get());
        if (code == CL_COMPLETE) return;
        for (const Event& copy : marked.after) check(outcome(copy.get()), info_.name, "a copy to it");
        check(code, info_.name, "a kernel");
    }

    [[nodiscard]] double now_us() const override {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    [[nodiscard]] double copy_us(size_t bytes) const override {
        // Of a bus of 5 GB/s, as nobody has measured it yet.
        constexpr double kStartUs = 10, kUsPerByte = 2e-4;
        return kStartUs + kUsPerByte * static_cast<double>(bytes);
    }

  private:
    /// The last command before a mark, and the copies that it and those since the last mark waited for.
    struct Marked {
        Event event;
        std::vector<Event> after;
    };

    [[nodiscard]] Queue make_queue(cl_command_queue_properties properties = 0) const {
        cl_int code = CL_SUCCESS;
        Queue queue(clCreateCommandQueue(context_.get(), device_, properties, &code));
        check(code, info_.name, "clCreateCommandQueue");
        return queue;
    }

    [[nodiscard]] std::vector<cl_event> written_events() const {
        std::vector<cl_event> events;
        for (const Event& event : written_) events.push_back(event.get());
        return events;
    }
    /// What comes now waits for these.
    void add_barrier(const std::vector<cl_event>& after) {
        check(clEnqueueBarrierWithWaitList(queue_.get(), static_cast<cl_uint>(after.size()),
                                           after.empty() ? nullptr : after.data(), nullptr),
              info_.name, "clEnqueueBarrierWithWaitList");
    }
    /// A command waits for what was written so far, and so do those behind it.
    void note_written() {
        for (Event& event : written_) last_.after.push_back(std::move(event));
        written_.clear();
    }

    void find_images() {
        if (device_value<cl_bool>(device_, CL_DEVICE_IMAGE_SUPPORT) != CL_TRUE) return;
        cl_uint count = 0;
        clGetSupportedImageFormats(context_.get(), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr,
                                   &count);
        formats_.resize(count);
        clGetSupportedImageFormats(context_.get(), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, count,
                                   formats_.data(), nullptr);
        most_width_ = device_value<size_t>(device_, CL_DEVICE_IMAGE2D_MAX_WIDTH);
        most_height_ = device_value<size_t>(device_, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
        info_.has_images = count > 0;
    }

    [[nodiscard]] Memory buffer(size_t bytes, void* host) {
        cl_int code = CL_SUCCESS;
        const cl_mem_flags flags =
            CL_MEM_READ_WRITE | (host != nullptr ? cl_mem_flags{CL_MEM_USE_HOST_PTR} : 0);
        Memory object(clCreateBuffer(context_.get(), flags, bytes, host, &code));
        check(code, info_.name, "clCreateBuffer");
        return object;
    }

    /// What the device writes to a buffer over the host's memory is there without a copy, and what the host
    /// writes there the device sees.
    bool works_in_host_memory() {
        alignas(4096) char bytes[4096] = {};
        constexpr char kDevices = 1, kHosts = 2;
        const Memory object = buffer(sizeof bytes, bytes);
        if (clEnqueueFillBuffer(queue_.get(), object.get(), &kDevices, 1, 0, sizeof bytes, 0, nullptr,
                                nullptr) != CL_SUCCESS ||
            clFinish(queue_.get()) != CL_SUCCESS || bytes[0] != kDevices ||
            bytes[sizeof bytes - 1] != kDevices)
            return false;
        char copied[sizeof bytes];
        std::memset(bytes, kHosts, sizeof bytes);
        return clEnqueueReadBuffer(queue_.get(), object.get(), CL_TRUE, 0, sizeof bytes, copied, 0, nullptr,
                                   nullptr) == CL_SUCCESS &&
               std::memcmp(bytes, copied, sizeof bytes) == 0;
    }

    cl_device_id device_;
    DeviceInfo info_;
    std::mutex* turns_ = nullptr;
    std::shared_ptr<std::remove_pointer_t<cl_context>> context_;
    Queue queue_;
    bool is_unordered_ = false;
    Queue copies_;  // null where nothing is copied: it works in the host's memory and has no images
    std::vector<cl_image_format> formats_;  // of images that kernels read and write
    size_t most_width_ = 0, most_height_ = 0;
    // The worker's.
    std::vector<Event> written_;      // those that no command waits for yet
    std::vector<cl_event> followed_;  // by the next launch, where the queue has no order; others own them
    Marked last_;
    std::deque<Marked> marks_;  // those not waited for
    Mark first_mark_ = 1;       // the first of them
    size_t unflushed_ = 0;
};

}  // namespace

std::shared_ptr<DeviceDriver> make_driver(cl_platform_id platform, cl_device_id device) {
    return std::make_shared<OpenClDriver>(platform, device);
}

}  // namespace heddle::devices::opencl
