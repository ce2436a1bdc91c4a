// A libcuda.so.1 for machines without one: a device that runs the kernels of cuda_test on the host, later and
// in another thread, as a device does, and is as strict as the driver's reference says: a context must be
// current in the calling thread, an error of a kernel's stays, what is freed was allocated.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Result = int;
using Address = unsigned long long;
constexpr Result kInvalidValue = 1, kInvalidContext = 201, kNotFound = 500, kNotReady = 600,
                 kIllegalAddress = 700;

struct Launch {
    unsigned items = 0;
    unsigned long long offset = 0;
    std::vector<std::vector<char>> arguments;
    template <class T>
    [[nodiscard]] T value(size_t index) const {
        T value;
        std::memcpy(&value, arguments[index].data(), sizeof value);
        return value;
    }
    [[nodiscard]] unsigned* data(size_t index) const {
        return reinterpret_cast<unsigned*>(value<Address>(index));
    }
};

struct Kernel {
    std::vector<size_t> parameters;
    std::function<void(const Launch&)> run;
};

template <class Act>
void each(const Launch& launch, const Act& act) {
    for (unsigned long long i = launch.offset; i < launch.offset + launch.items; ++i) act(i);
}

std::atomic<Result> broken{0};  // what a kernel has left to the context

const std::map<std::string, Kernel>& kernels() {
    static const std::map<std::string, Kernel> all{
        {"add",
         {{8, 4}, [](const Launch& l) { each(l, [&](auto i) { l.data(0)[i] += l.value<unsigned>(1); }); }}},
        {"multiply",
         {{8, 4}, [](const Launch& l) { each(l, [&](auto i) { l.data(0)[i] *= l.value<unsigned>(1); }); }}},
        {"fill",
         {{8, 4}, [](const Launch& l) { each(l, [&](auto i) { l.data(0)[i] = l.value<unsigned>(1); }); }}},
        {"copy", {{8, 8}, [](const Launch& l) { each(l, [&](auto i) { l.data(1)[i] = l.data(0)[i]; }); }}},
        {"late", {{8}, [](const Launch&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }}},
        {"crash", {{8}, [](const Launch&) { broken = kIllegalAddress; }}},
    };
    return all;
}

struct Context {};
constexpr int kMostDevices = 2;
Context of_device[kMostDevices], programs_context;
thread_local std::vector<Context*> entered;  // the last one is current

/// What the next call of a name answers.
std::mutex answers_mutex;
std::map<std::string, Result> answers;
Result answer_of(const char* call) {
    const std::lock_guard guard(answers_mutex);
    const auto found = answers.find(call);
    if (found == answers.end()) return 0;
    const Result result = found->second;
    answers.erase(found);
    return result;
}
std::atomic<int> devices{1}, usable_devices{1};  // the others refuse a context
std::atomic<unsigned> kernels_run{0}, running_kernels{0}, copies_beside_kernels{0}, copies_across{0};
std::atomic<int> copy_ms{0};  // that a copy to the device takes

struct Stream {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> commands;
    bool busy = false, ends = false;
    std::thread thread{[this] { run(); }};

    void run() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return ends || !commands.empty(); });
            if (commands.empty()) return;
            const auto command = std::move(commands.front());
            commands.pop_front();
            busy = true;
            lock.unlock();
            if (broken == 0) command();
            lock.lock();
            busy = false;
            changed.notify_all();
        }
    }
    void give(std::function<void()> command) {
        const std::lock_guard guard(mutex);
        commands.push_back(std::move(command));
        changed.notify_all();
    }
    void finish() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return commands.empty() && !busy; });
    }
    ~Stream() {
        {
            const std::lock_guard guard(mutex);
            ends = true;
            changed.notify_all();
        }
        thread.join();
    }
};

/// That a stream comes to where an event was recorded.
class Passing {
  public:
    void pass() {
        const std::lock_guard guard(mutex_);
        passed_ = true;
        changed_.notify_all();
    }
    /// Or to an error that stays.
    void wait() {
        std::unique_lock lock(mutex_);
        while (!passed_ && broken == 0) changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    [[nodiscard]] bool passed() {
        const std::lock_guard guard(mutex_);
        return passed_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool passed_ = false;
};

struct Event {
    std::shared_ptr<Passing> last;  // null: it was not recorded
};

struct Module;
struct Function {
    Module* module = nullptr;
    const Kernel* kernel = nullptr;
};
struct Module {
    unsigned long long offset[3] = {};
    std::map<std::string, Function> functions;
};

std::mutex books;
std::map<Address, Context*> allocations;
std::atomic<int> modules{0}, streams{0}, events{0}, contexts{0};

bool is_entered() {
    return !entered.empty() && entered.back() != &programs_context;
}

Result usable() {
    if (!is_entered()) return kInvalidContext;
    return broken;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int fake_cuda_live() {
    const std::lock_guard guard(books);
    return static_cast<int>(allocations.size()) + modules + streams + events + contexts;
}
FAKE void fake_cuda_repair() {
    broken = 0;
    copy_ms = 0;
    devices = usable_devices = 1;
}
FAKE void fake_cuda_answer(const char* call, Result result) {
    const std::lock_guard guard(answers_mutex);
    answers[call] = result;
}
FAKE void fake_cuda_devices(int count) {
    devices = count;
}
FAKE void fake_cuda_usable_devices(int count) {
    devices = usable_devices = count;
}
FAKE unsigned fake_cuda_copies_across() {
    return copies_across;
}
FAKE unsigned fake_cuda_kernels_run() {
    return kernels_run;
}
FAKE unsigned fake_cuda_copies_beside_kernels() {
    return copies_beside_kernels;
}
FAKE void fake_cuda_copy_ms(int ms) {
    copy_ms = ms;
}
/// As a program does that uses CUDA itself.
FAKE void fake_cuda_enter_own() {
    entered.push_back(&programs_context);
}
/// Whether that is current; then it is left.
FAKE bool fake_cuda_leave_own() {
    const bool current = entered.size() == 1 && entered.back() == &programs_context;
    entered.clear();
    return current;
}

FAKE Result cuInit(unsigned) {
    return 0;
}
FAKE Result cuDriverGetVersion(int* version) {
    return *version = 12040, 0;
}
FAKE Result cuDeviceGetCount(int* count) {
    return *count = devices, 0;
}
FAKE Result cuDeviceGet(int* device, int index) {
    return *device = index, index < devices ? 0 : 101;
}
FAKE Result cuDeviceGetName(char* name, int size, int) {
    return std::strncpy(name, "pretended device", static_cast<size_t>(size)), 0;
}
FAKE Result cuDeviceTotalMem_v2(size_t* bytes, int) {
    return *bytes = size_t{1} << 30, 0;
}
FAKE Result cuDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == 16 ? 12 : 9;  // multiprocessors; compute capability 9.9
    return 0;
}
FAKE Result cuDevicePrimaryCtxRetain(Context** context, int device) {
    if (device >= usable_devices) return 46;  // another process has it for itself
    ++contexts;
    return *context = &of_device[device], 0;
}
FAKE Result cuDevicePrimaryCtxRelease_v2(int) {
    return --contexts, 0;
}
FAKE Result cuCtxPushCurrent_v2(Context* context) {
    return entered.push_back(context), 0;
}
FAKE Result cuCtxPopCurrent_v2(Context** context) {
    if (entered.empty()) return kInvalidContext;
    *context = entered.back();
    return entered.pop_back(), 0;
}
FAKE Result cuStreamCreate(Stream** stream, unsigned) {
    if (const Result result = usable(); result != 0) return result;
    ++streams;
    return *stream = new Stream, 0;
}
FAKE Result cuStreamDestroy_v2(Stream* stream) {
    --streams;
    delete stream;
    return 0;
}
FAKE Result cuStreamSynchronize(Stream* stream) {
    if (!is_entered()) return kInvalidContext;
    stream->finish();
    return broken;
}
FAKE Result cuMemAlloc_v2(Address* address, size_t bytes) {
    if (const Result result = usable(); result != 0) return result;
    if (bytes == 0) return kInvalidValue;
    if (bytes > size_t{1} << 30) return 2;
    *address = reinterpret_cast<Address>(new char[bytes]);
    const std::lock_guard guard(books);
    allocations[*address] = entered.back();
    return 0;
}
FAKE Result cuMemFree_v2(Address address) {
    if (!is_entered()) return kInvalidContext;
    const std::lock_guard guard(books);
    if (allocations.erase(address) == 0) return kInvalidValue;
    delete[] reinterpret_cast<char*>(address);
    return 0;
}
FAKE Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
    if (const Result result = usable(); result != 0) return result;
    std::vector<char> staged(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    stream->give([to, staged = std::move(staged)] {
        if (copy_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(copy_ms));
        if (running_kernels > 0) ++copies_beside_kernels;
        std::memcpy(reinterpret_cast<void*>(to), staged.data(), staged.size());
    });
    return 0;
}
FAKE Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
    if (const Result result = usable(); result != 0) return result;
    stream->give([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
    return 0;
}
/// Both addresses lie in what was allocated in these contexts.
FAKE Result cuMemcpyPeerAsync(Address to, Context* to_context, Address from, Context* from_context,
                              size_t bytes, Stream* stream) {
    if (const Result result = usable(); result != 0) return result;
    if (const Result answer = answer_of("cuMemcpyPeerAsync"); answer != 0) return answer;
    const std::lock_guard guard(books);
    const auto context_of = [](Address address) {
        const auto after = allocations.upper_bound(address);
        return after == allocations.begin() ? nullptr : std::prev(after)->second;
    };
    if (context_of(to) != to_context || context_of(from) != from_context) return kInvalidValue;
    stream->give([=] {
        ++copies_across;
        std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
    return 0;
}
FAKE Result cuModuleLoadData(Module** module, const void* text) {
    if (const Result result = usable(); result != 0) return result;
    if (std::strstr(static_cast<const char*>(text), ".version") == nullptr) return 218;  // invalid PTX
    ++modules;
    return *module = new Module, 0;
}
FAKE Result cuModuleUnload(Module* module) {
    --modules;
    delete module;
    return 0;
}
FAKE Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
    const auto kernel = kernels().find(name);
    if (kernel == kernels().end()) return kNotFound;
    *function = &(module->functions[name] = {module, &kernel->second});
    return 0;
}
FAKE Result cuModuleGetGlobal_v2(Address* address, size_t* bytes, Module* module, const char* name) {
    if (std::strcmp(name, "heddle_offset") != 0) return kNotFound;
    *address = reinterpret_cast<Address>(module->offset);
    *bytes = sizeof module->offset;
    return 0;
}
FAKE Result cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned, Stream* stream,
                           void** parameters, void**) {
    if (const Result result = usable(); result != 0) return result;
    const unsigned long long items = 1ULL * block_x * block_y * block_z;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || items == 0 || items > 1024) return kInvalidValue;
    if (grid_y > 65535 || grid_z > 65535 || block_z > 64) return kInvalidValue;
    if (const Result answer = answer_of("cuLaunchKernel"); answer != 0) return answer;
    Launch launch;
    launch.items = grid_x * block_x;
    for (size_t i = 0; i < function->kernel->parameters.size(); ++i) {
        const char* const begin = static_cast<const char*>(parameters[i]);
        launch.arguments.emplace_back(begin, begin + function->kernel->parameters[i]);
    }
    stream->give([function, launch = std::move(launch)]() mutable {
        launch.offset = function->module->offset[0];
        ++running_kernels;
        function->kernel->run(launch);
        --running_kernels;
        ++kernels_run;
    });
    return 0;
}
FAKE Result cuEventCreate(Event** event, unsigned) {
    ++events;
    return *event = new Event, 0;
}
FAKE Result cuEventRecord(Event* event, Stream* stream) {
    if (const Result result = usable(); result != 0) return result;
    if (const Result answer = answer_of("cuEventRecord"); answer != 0) return answer;
    event->last = std::make_shared<Passing>();
    stream->give([passing = event->last] { passing->pass(); });
    return 0;
}
FAKE Result cuEventSynchronize(Event* event) {
    if (!is_entered()) return kInvalidContext;
    if (event->last != nullptr) event->last->wait();
    return broken;
}
FAKE Result cuEventQuery(Event* event) {
    if (!is_entered()) return kInvalidContext;
    if (broken != 0) return broken;
    return event->last == nullptr || event->last->passed() ? 0 : kNotReady;
}
FAKE Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
    if (const Result result = usable(); result != 0) return result;
    // The event may be destroyed before this stream comes to it.
    const std::shared_ptr<Passing> passing = event->last;
    if (passing != nullptr) stream->give([passing] { passing->wait(); });
    return 0;
}
FAKE Result cuEventDestroy_v2(Event* event) {
    --events;
    delete event;
    return 0;
}
FAKE Result cuGetErrorName(Result result, const char** name) {
    static const std::map<Result, const char*> names{{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                     {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
                                                     {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
    const auto found = names.find(result);
    return *name = found == names.end() ? nullptr : found->second, found == names.end() ? kInvalidValue : 0;
}
