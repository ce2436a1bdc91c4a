#include "devices/kinds/cuda/cuda_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <sstream>

namespace heddle::devices::cuda {
namespace {

constexpr const char* kPrelude = R"(extern "C" { __constant__ unsigned long long heddle_offset[3]; }
static __device__ inline unsigned long long heddle_global_id(int dimension) {
    if (dimension == 0) return heddle_offset[0] + (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (dimension == 1) return heddle_offset[1] + (unsigned long long)blockIdx.y * blockDim.y + threadIdx.y;
    return heddle_offset[2] + (unsigned long long)blockIdx.z * blockDim.z + threadIdx.z;
}
#line 1 "program.cu"
)";

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

/// 0 where there is none.
size_t number_at(const std::string& text, size_t at) {
    size_t number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    return number;
}

/// Of ".param .u64 .ptr .align 1 name", ".param .align 8 .b8 name[24]".
size_t parameter_bytes(const std::string& text) {
    size_t bytes = 0;
    for (const std::string& word : words_of(text)) {
        if (word.size() >= 3 && word[0] == '.' && std::string("usfb").find(word[1]) != std::string::npos &&
            std::isdigit(static_cast<unsigned char>(word[2])) != 0)
            bytes = number_at(word, 2) / 8;
    }
    const size_t open = text.find('[');
    return open == std::string::npos ? bytes : bytes * number_at(text, open + 1);
}

std::string text_of(Result (*size_of)(CompilerProgram, size_t*), Result (*get)(CompilerProgram, char*),
                    CompilerProgram program) {
    size_t size = 0;
    if (size_of(program, &size) != kSuccess || size == 0) return "";
    std::string text(size, '\0');
    if (get(program, text.data()) != kSuccess) return "";
    text.resize(text.find_last_not_of(std::string("\0\n ", 3)) + 1);
    return text;
}

constexpr Extent kMostBlocks{0x7fffffff, 65535, 65535}, kMostInBlock{1024, 1024, 64};
constexpr size_t kMostItemsInBlock = 1024;

/// A block must not reach beyond the work.
size_t largest_divisor(size_t work, size_t most) {
    size_t block = std::min(most, work);
    while (work % block != 0) --block;
    return block;
}

/// As many as it takes for the grid to have no more than so many blocks, where that can be.
size_t smallest_divisor(size_t work, size_t most_blocks, size_t most) {
    for (size_t block = 1; block <= most; ++block)
        if (work % block == 0 && work / block <= most_blocks) return block;
    return 1;
}

/// Where the caller leaves it to the device.
Extent own_block(const Extent& work) {
    constexpr size_t kMost = 256;
    Extent block{1, 1, 1};
    block.z = smallest_divisor(work.z, kMostBlocks.z, kMostInBlock.z);
    block.y = smallest_divisor(work.y, kMostBlocks.y, kMostItemsInBlock / block.z);
    block.x = largest_divisor(work.x, std::min(kMost, kMostItemsInBlock / (block.y * block.z)));
    return block;
}

bool fits(const Extent& extent, const Extent& most) {
    return extent.x >= 1 && extent.y >= 1 && extent.z >= 1 && extent.x <= most.x && extent.y <= most.y &&
           extent.z <= most.z;
}

}  // namespace

Session::Session(DeviceNumber number, std::string device_name)
    : device(number), name(std::move(device_name)) {
    check(driver().retain_context(&context, device), name, "cuDevicePrimaryCtxRetain");
    driver().device_attribute(&major, kComputeMajor, device);
    driver().device_attribute(&minor, kComputeMinor, device);
}

Session::~Session() {
    driver().release_context(device);
}

Entered::Entered(const Session& session) : Entered(session, std::nothrow) {
    check(result_, session.name, "cuCtxPushCurrent");
}

Entered::Entered(const Session& session, std::nothrow_t) noexcept
    : result_(driver().push_context(session.context)) {}

Entered::~Entered() {
    Context own = nullptr;
    if (in()) driver().pop_context(&own);
}

CudaMemory::~CudaMemory() {
    if (address == 0) return;
    const Entered entered(*session, std::nothrow);
    if (entered.in()) driver().free(address);
}

LoadedModule::LoadedModule(std::shared_ptr<Session> session, const std::string& ptx)
    : session_(std::move(session)) {
    const Entered entered(*session_);
    check(driver().load_module(&module_, ptx.c_str()), session_->name, "cuModuleLoadData");
}

LoadedModule::~LoadedModule() {
    const Entered entered(*session_, std::nothrow);
    if (entered.in()) driver().unload_module(module_);
}

Layout layout_of(const std::string& kernel, const LaunchShape& shape) {
    const Extent& work = shape.work;
    const Extent block = shape.group.x == 0 ? own_block(work) : shape.group;
    const auto refuse = [&](const char* why) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} x {} x {} items of kernel \"{}\" {} groups of {} x {} x {}", work.x,
                                work.y, work.z, kernel, why, block.x, block.y, block.z));
    };
    if (!fits(block, kMostInBlock) || block.count() > kMostItemsInBlock) refuse("cannot be in");
    if (work.x % block.x != 0 || work.y % block.y != 0 || work.z % block.z != 0) refuse("are no whole");
    const Extent grid{work.x / block.x, work.y / block.y, work.z / block.z};
    if (!fits(grid, kMostBlocks)) refuse("are too many");
    return {grid, block};
}

std::string with_prelude(const std::string& source) {
    return kPrelude + source;
}

Compiled compile(const ProgramSource& source, const std::string& architecture) {
    const Compiler& nvrtc = compiler();
    if (!nvrtc.problem.empty()) return {.ptx = {}, .problem = nvrtc.problem, .log = {}};
    const std::string text = with_prelude(source.cuda);
    CompilerProgram program = nullptr;
    if (const Result made = nvrtc.create(&program, text.c_str(), "program.cu", 0, nullptr, nullptr);
        made != kSuccess)
        return {.ptx = {}, .problem = nvrtc.error_text(made), .log = {}};
    std::vector<std::string> words = words_of(source.options);
    if (!architecture.empty()) words.push_back("--gpu-architecture=" + architecture);
    std::vector<const char*> options;
    for (const std::string& word : words) options.push_back(word.c_str());
    const Result result = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
    Compiled compiled;
    compiled.log = text_of(nvrtc.log_size, nvrtc.log, program);
    if (result == kSuccess)
        compiled.ptx = text_of(nvrtc.ptx_size, nvrtc.ptx, program);
    else
        compiled.problem = nvrtc.error_text(result);
    nvrtc.destroy(&program);
    // A compiler that is older than the device makes what the driver translates for it.
    constexpr Result kInvalidOption = 5;
    if (result == kInvalidOption && !architecture.empty()) return compile(source, "");
    return compiled;
}

std::map<std::string, std::vector<size_t>> entries_of(const std::string& ptx) {
    std::map<std::string, std::vector<size_t>> entries;
    const std::string mark = ".entry ";
    for (size_t at = ptx.find(mark); at != std::string::npos; at = ptx.find(mark, at)) {
        at += mark.size();
        const size_t open = ptx.find('(', at), close = ptx.find(')', at);
        if (close == std::string::npos) break;
        const std::vector<std::string> name = words_of(ptx.substr(at, open - at));
        if (name.empty()) continue;
        std::vector<size_t>& parameters = entries[name.front()];
        std::istringstream list(ptx.substr(open + 1, close - open - 1));
        for (std::string parameter; std::getline(list, parameter, ',');)
            if (parameter.find(".param") != std::string::npos)
                parameters.push_back(parameter_bytes(parameter));
    }
    return entries;
}

CudaProgram::CudaProgram(std::shared_ptr<Session> session, const ProgramSource& source)
    : session_(std::move(session)) {
    const Compiled compiled = compile(source, fmt::format("compute_{}{}", session_->major, session_->minor));
    log_ = compiled.log.empty() ? compiled.problem : compiled.log;
    if (compiled.ptx.empty())
        throw BuildError(
            session_->name, log_,
            fmt::format("{} does not build the program ({}):\n{}", session_->name, compiled.problem, log_));
    const Entered entered(*session_);
    module_ = std::make_unique<LoadedModule>(session_, compiled.ptx);
    for (const auto& [name, parameters] : entries_of(compiled.ptx)) {
        Entry entry{.function = nullptr, .parameters = parameters};
        check(driver().function(&entry.function, module_->get(), name.c_str()), session_->name,
              "cuModuleGetFunction");
        entries_.emplace(name, entry);
    }
    size_t size = 0;
    if (driver().global(&offset_, &size, module_->get(), "heddle_offset") != kSuccess) offset_ = 0;
}

std::vector<std::string> CudaProgram::kernels() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
}

void CudaProgram::set_offset(const Extent& offset, Stream stream) {
    if (offset.x == offset_now_.x && offset.y == offset_now_.y && offset.z == offset_now_.z) return;
    if (offset_ == 0)
        throw Error(
            ErrorCode::kInvalidArgument,
            "no kernel of this program asks for heddle_global_id(), so none can begin elsewhere than at 0");
    const std::array<unsigned long long, 3> values{offset.x, offset.y, offset.z};
    // Memory that is not pinned has been read when this returns.
    check(driver().copy_in(offset_, values.data(), sizeof values, stream), session_->name,
          "cuMemcpyHtoDAsync");
    offset_now_ = offset;
}

void CudaProgram::launch(const std::string& name, std::span<const DriverArgument> arguments,
                         const LaunchShape& shape, Stream stream) {
    const Entry& entry = entries_.at(name);
    std::vector<Address> addresses(arguments.size());
    std::vector<void*> parameters;
    unsigned shared_bytes = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const DriverArgument& argument = arguments[i];
        if (argument.memory == nullptr && argument.value == nullptr) {
            // The kernel's "extern __shared__".
            if (argument.bytes > std::numeric_limits<unsigned>::max() - shared_bytes)
                throw Error(ErrorCode::kLimit,
                            fmt::format("kernel \"{}\" asks for {} bytes of local memory, which no "
                                        "device has",
                                        name, argument.bytes));
            shared_bytes += static_cast<unsigned>(argument.bytes);
            continue;
        }
        const size_t place = parameters.size();
        const size_t bytes = argument.memory != nullptr ? sizeof(Address) : argument.bytes;
        if (place < entry.parameters.size() && entry.parameters[place] != bytes)
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("argument {} of kernel \"{}\" takes {} bytes and cannot be {} on {}", i,
                                    name, entry.parameters[place],
                                    argument.memory != nullptr ? "a buffer"
                                                               : fmt::format("a value of {} bytes", bytes),
                                    session_->name));
        if (argument.memory != nullptr) {
            addresses[i] = static_cast<CudaMemory*>(argument.memory)->address;
            parameters.push_back(&addresses[i]);
        } else {
            parameters.push_back(const_cast<void*>(argument.value));
        }
    }
    if (parameters.size() != entry.parameters.size())
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("kernel \"{}\" has {} arguments, and {} were set", name,
                                entry.parameters.size(), parameters.size()));
    const auto [grid, block] = layout_of(name, shape);
    set_offset(shape.offset, stream);
    const auto narrow = [](size_t value) { return static_cast<unsigned>(value); };
    check(driver().launch(entry.function, narrow(grid.x), narrow(grid.y), narrow(grid.z), narrow(block.x),
                          narrow(block.y), narrow(block.z), shared_bytes, stream, parameters.data(), nullptr),
          session_->name, fmt::format("cuLaunchKernel of \"{}\"", name).c_str());
}

}  // namespace heddle::devices::cuda
