// The public classes, each a thin shell around its state.
#include <fmt/format.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "devices/buffer_state.hpp"
#include "devices/runtime_state.hpp"

namespace heddle::devices {

DeviceRuntime::DeviceRuntime(const DeviceOptions& options)
    : state_(std::make_unique<RuntimeState>(options)) {}
/// A callback of its last task may have had the last reference to it: a worker, which cannot wait for itself,
/// leaves the end to another thread.
DeviceRuntime::~DeviceRuntime() {
    if (!RuntimeState::in_worker()) return;
    RuntimeState* const state = state_.release();
    try {
        std::thread([state] { delete state; }).detach();
    } catch (const std::system_error&) {
        // It stays for good.
    }
}

std::span<const Device> DeviceRuntime::devices() const noexcept {
    return state_->handles();
}
void DeviceRuntime::submit(TaskPointer task) {
    state_->submit({&task, 1});
}
void DeviceRuntime::submit(std::span<const TaskPointer> batch) {
    state_->submit(batch);
}
void DeviceRuntime::finish() {
    state_->finish();
}

const std::vector<std::string>& DeviceRuntime::warnings() const noexcept {
    return state_->warnings();
}

const DeviceInfo& Device::info() const noexcept {
    return state_->driver->info();
}
unsigned Device::index() const noexcept {
    return state_->index;
}
bool Device::alive() const noexcept {
    return !state_->driver->dead;
}
bool Device::busy() const noexcept {
    return state_->busy;
}
double Device::busy_us() const {
    return std::max(0.0, state_->free_at_us - state_->driver->now_us());
}
uint64_t Device::tasks_run() const noexcept {
    return state_->tasks_run;
}

// Program.

namespace {

void build_on(DeviceDriver& driver, const ProgramSource& source, std::shared_ptr<DriverProgram>& built,
              std::string& log) {
    try {
        built = driver.build(source);
        if (built != nullptr) log = built->log();
    } catch (const BuildError& error) {
        log = error.log();
    } catch (const std::exception& error) {
        log = error.what();
    }
}

}  // namespace

Program::Program(DeviceRuntime& runtime, const ProgramSource& source)
    : state_(std::make_shared<ProgramState>()) {
    for (const auto& [name, function] : source.host)
        if (function == nullptr)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("the function for the host of kernel \"{}\" is empty", name));
    state_->runtime = runtime.state_->number();
    state_->source = source;
    state_->hash = std::hash<std::string>()(source.opencl + '\0' + source.cuda + '\0' + source.options);
    for (const auto& [name, function] : source.host) mix(state_->hash, std::hash<std::string>()(name));
    auto& devices = runtime.state_->devices();
    state_->built.resize(devices.size());
    state_->logs.resize(devices.size());
    {
        std::vector<std::jthread> builders;
        for (size_t i = 1; i < devices.size(); ++i)
            builders.emplace_back(
                [&, i] { build_on(*devices[i]->driver, source, state_->built[i], state_->logs[i]); });
        build_on(*devices[0]->driver, source, state_->built[0], state_->logs[0]);
    }
    std::string message = "no device has built the program:", first_device, first_log;
    bool built = false;
    std::vector<std::vector<std::string>> kernels_on(devices.size());
    for (size_t i = 0; i < devices.size(); ++i) {
        if (state_->built[i] != nullptr) {
            built = true;
            kernels_on[i] = state_->built[i]->kernels();
            for (const std::string& name : kernels_on[i]) state_->kernels[name];
            continue;
        }
        const std::string& name = devices[i]->driver->info().name;
        if (first_log.empty()) first_device = name, first_log = state_->logs[i];
        message +=
            fmt::format("\n{}: {}", name,
                        state_->logs[i].empty() ? "the program has no source for its kind" : state_->logs[i]);
    }
    if (!built) throw BuildError(first_device, first_log, message);
    for (auto& [name, lacking] : state_->kernels)
        for (unsigned i = 0; i < devices.size(); ++i)
            if (state_->built[i] != nullptr && !state_->built[i]->may_have(name) &&
                std::find(kernels_on[i].begin(), kernels_on[i].end(), name) == kernels_on[i].end())
                lacking.push_back(i);
}

Program::~Program() = default;

bool Program::built_on(const Device& device) const {
    return state_->built.at(device.index()) != nullptr;
}
const std::string& Program::log(const Device& device) const {
    return state_->logs.at(device.index());
}

// Buffer.

namespace {

/// The tasks that wrote a range last, and with `for_writing` those that read it, have ended; not so for a
/// task's own callbacks, which run between its kernels and its end.
void wait_for_users(BufferState& buffer, ByteRange range, bool for_writing) {
    if (task_in_callback() != nullptr) return;
    std::vector<std::pair<RuntimeState*, std::shared_ptr<TaskState>>> users;
    {
        const std::lock_guard guard(graph_mutex());
        const auto add = [&](const std::shared_ptr<TaskState>& user) {
            if (user != nullptr && !user->has_left_graph()) users.emplace_back(user->runtime, user);
        };
        buffer.uses().visit(range.offset, range.size, [&](size_t, size_t, RangeUse& use) {
            add(use.writer);
            if (for_writing)
                for (const auto& reader : use.readers) add(reader);
        });
        buffer.uses().join(range.offset, range.size);
    }
    for (const auto& [runtime, user] : users) runtime->wait(*user);
}

/// The same, and the range is the caller's to fill, also where a task has failed to.
void wait_to_write(BufferState& buffer, ByteRange range) {
    wait_for_users(buffer, range, true);
    const std::lock_guard guard(graph_mutex());
    buffer.uses().visit(range.offset, range.size, [](size_t, size_t, RangeUse& use) {
        if (use.writer != nullptr && use.writer->has_left_graph()) use.writer = nullptr;
    });
    buffer.uses().join(range.offset, range.size);
}

/// `memory` is the caller's.
ByteRange exact(const BufferState& buffer, size_t offset, size_t bytes, const void* memory) {
    if (memory == nullptr && bytes != 0)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("{} bytes of buffer \"{}\" are copied from or to no memory", bytes, buffer.name()));
    if (bytes == 0 && offset <= buffer.size()) return {offset, 0};
    return buffer.checked({offset, bytes == 0 ? buffer.size() + 1 : bytes});
}

}  // namespace

Buffer::Buffer(size_t bytes, std::string name)
    : state_(std::make_unique<BufferState>(nullptr, bytes, std::move(name))) {}

Buffer::Buffer(void* memory, size_t bytes, std::string name) {
    if (memory == nullptr || bytes == 0)
        throw Error(ErrorCode::kInvalidArgument, "a buffer of the caller's memory needs memory");
    state_ = std::make_unique<BufferState>(memory, bytes, std::move(name));
}

Buffer::Buffer(const ImageShape& shape, std::string name)
    : state_(std::make_unique<BufferState>(nullptr, shape.bytes(), std::move(name), shape)) {}

Buffer::Buffer(void* memory, const ImageShape& shape, std::string name) {
    if (memory == nullptr)
        throw Error(ErrorCode::kInvalidArgument, "an image of the caller's memory needs memory");
    state_ = std::make_unique<BufferState>(memory, shape.bytes(), std::move(name), shape);
}

Buffer::~Buffer() = default;

size_t Buffer::size() const noexcept {
    return state_->size();
}
const std::string& Buffer::name() const noexcept {
    return state_->name();
}
const ImageShape* Buffer::image() const noexcept {
    return state_->image();
}
BufferTraffic Buffer::traffic() const {
    return state_->traffic();
}

void Buffer::write(const void* from, size_t bytes, size_t offset) {
    const ByteRange range = exact(*state_, offset, bytes, from);
    if (range.size == 0) return;
    wait_to_write(*state_, range);
    state_->acquire_host(range, false, true);
    std::memcpy(static_cast<std::byte*>(state_->host_memory()) + offset, from, bytes);
}

void Buffer::read(void* to, size_t bytes, size_t offset) {
    const ByteRange range = exact(*state_, offset, bytes, to);
    if (range.size == 0) return;
    wait_for_users(*state_, range, false);
    state_->acquire_host(range, true, false);
    std::memcpy(to, static_cast<std::byte*>(state_->host_memory()) + offset, bytes);
}

void* Buffer::host(bool for_writing) {
    const ByteRange all{0, state_->size()};
    if (for_writing)
        wait_to_write(*state_, all);
    else
        wait_for_users(*state_, all, false);
    state_->acquire_host(all, true, for_writing);
    return state_->host_memory();
}

// DeviceTask.

DeviceTask::DeviceTask(std::shared_ptr<Program> program, Score score, std::string name)
    : state_(std::make_shared<TaskState>(std::move(program), score, std::move(name))) {}
DeviceTask::~DeviceTask() = default;

Kernel& DeviceTask::add_kernel(const std::string& name) {
    return state_->add_kernel(name);
}
Kernel& DeviceTask::kernel(const std::string& name) {
    return state_->kernel(name);
}
void DeviceTask::on_configure(Callback callback) {
    state_->configure = std::move(callback);
}
void DeviceTask::on_finish(Callback callback) {
    state_->finish = std::move(callback);
}
void DeviceTask::priority(int value) {
    state_->priority = value;
}
void DeviceTask::only_on(const Device& device) {
    if (TaskState::of(device).runtime != TaskState::of(*state_->program).runtime)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("task \"{}\" cannot be for {}: that is another runtime's", name(),
                                device.info().name));
    state_->only_device = static_cast<int>(device.index());
}
const std::string& DeviceTask::name() const noexcept {
    return state_->name;
}
int DeviceTask::priority() const noexcept {
    return state_->priority;
}
const Score& DeviceTask::score() const noexcept {
    return state_->score;
}
TaskStatus DeviceTask::status() const {
    const std::lock_guard guard(graph_mutex());
    return state_->status;
}

void DeviceTask::wait() {
    RuntimeState* runtime = nullptr;
    {
        const std::lock_guard guard(graph_mutex());
        if (state_->status == TaskStatus::kBuilt)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("task \"{}\" is waited for, and was not submitted", name()));
        if (!TaskState::ended(state_->status) || state_->handle != nullptr) runtime = state_->runtime;
    }
    if (runtime != nullptr) runtime->wait(*state_);
    const std::lock_guard guard(graph_mutex());
    if (state_->error != nullptr) {
        if (state_->failure != nullptr) state_->failure->told = true;
        std::rethrow_exception(state_->error);
    }
    if (state_->status == TaskStatus::kCancelled)
        throw Error(ErrorCode::kInvalidArgument, fmt::format("task \"{}\" was cancelled", name()));
}

bool DeviceTask::cancel() {
    RuntimeState* runtime = nullptr;
    {
        const std::lock_guard guard(graph_mutex());
        if (state_->status == TaskStatus::kWaiting || state_->status == TaskStatus::kReady)
            runtime = state_->runtime;
    }
    return runtime != nullptr && runtime->cancel(*state_);
}

int DeviceTask::device() const {
    return state_->ran_on;
}
TaskTimes DeviceTask::times() const {
    const std::lock_guard guard(graph_mutex());
    return TaskState::ended(state_->status) ? state_->times : TaskTimes{};
}
bool DeviceTask::runs_on(const Device& device) const {
    return state_->runs_on(TaskState::of(device));
}
uint64_t DeviceTask::signature() const noexcept {
    return state_->signature();
}
bool DeviceTask::unknown_on(const Device& device) const {
    const DeviceCosts* const costs = TaskState::of(device).costs;
    return costs != nullptr && state_->score == Score{} && !costs->estimate_us(state_->signature());
}
double DeviceTask::estimate_us(const Device& device) const {
    return state_->estimate_us(TaskState::of(device));
}
double DeviceTask::transfer_us(const Device& device) const {
    TaskState::Writes coming;
    {
        const std::lock_guard guard(graph_mutex());
        coming = state_->coming();
    }
    return state_->transfer_us(TaskState::of(device), coming);
}

namespace {

double copy_us(size_t bytes, const Device& from, const Device& to) {
    const DeviceState &a = TaskState::of(from), &b = TaskState::of(to);
    return bytes == 0 || &a == &b ? 0 : copy_us(*a.driver, *b.driver, bytes);
}

}  // namespace

double DeviceTask::exchange_us(const DeviceTask& predecessor, const Device& from, const Device& to) const {
    return copy_us(state_->bytes_read_of(*predecessor.state_), from, to);
}

double DeviceTask::arrives_in_us(const DeviceTask& predecessor, const Device& device) const {
    const TaskState& before = *predecessor.state_;
    const size_t bytes = state_->bytes_read_of(before);
    const std::lock_guard guard(graph_mutex());
    const int taken_by = before.taken_by;
    if (taken_by < 0 || before.handle == nullptr) return 0;
    const Device& its = before.runtime->handles()[static_cast<size_t>(taken_by)];
    return its.busy_us() + copy_us(bytes, its, device);
}

std::vector<TaskPointer> DeviceTask::follows() const {
    std::vector<TaskPointer> all;
    const std::lock_guard guard(graph_mutex());
    for (const auto& weak : state_->predecessors)
        if (const auto task = weak.lock(); task != nullptr && task->handle != nullptr)
            all.push_back(task->handle);
    return all;
}

}  // namespace heddle::devices
