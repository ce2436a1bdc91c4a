// Kind cuda beside CUDA's own calls. devices.cuda_overhead: what a task of one empty kernel takes above a
// launch in a raw stream. devices.cuda_copy: 256 MiB of the caller's memory to the device and back, over the
// same by hand. devices.cuda_overlap: tasks that read 32 MiB each, over what they take where a copy runs
// beside each kernel: c + t + (k - 1) max(c, t).
#include <memory>
#include <vector>

#include "devices/kinds/cuda/cuda_program.hpp"
#include "touch_tasks.hpp"

namespace {

using namespace heddle::bench;
using namespace heddle::devices;

constexpr const char* kSource = R"(
extern "C" __global__ void touch(int* data) { data[0] += 1; }
extern "C" __global__ void compute(const float* from, float* to, int rounds) {
    const unsigned long long i = heddle_global_id(0);
    float x = from[i];
    for (int round = 0; round < rounds; ++round) x = x * 0.999f + 0.001f;
    to[i] = x;
})";
void require(cuda::Result result, const char* call) {
    cuda::check(result, "the device", call);
}

/// A stream as a program that knows CUDA uses it; it lives as long as the process.
class Raw {
  public:
    Raw() {
        require(api_.push_context(session_->context), "cuCtxPushCurrent");
        require(api_.make_stream(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
        const auto compiled = cuda::compile({.cuda = kSource}, "");
        module_ = std::make_unique<cuda::LoadedModule>(session_, compiled.ptx);
        require(api_.function(&touch_, module_->get(), "touch"), "cuModuleGetFunction");
        require(api_.function(&compute_, module_->get(), "compute"), "cuModuleGetFunction");
        for (cuda::Address& buffer : buffers_) require(api_.allocate(&buffer, 64), "cuMemAlloc");
    }

    double us_per_task(int launches) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < launches; ++i) launch(touch_, 1, 1, {&buffers_[i % kBuffers]});
        require(api_.finish_stream(stream_), "cuStreamSynchronize");
        return microseconds_since(start) / launches;
    }

    double there_and_back_us(std::vector<char>& memory) {
        const auto start = std::chrono::steady_clock::now();
        const cuda::Address address = allocated(memory.size());
        require(api_.copy_in(address, memory.data(), memory.size(), stream_), "cuMemcpyHtoDAsync");
        launch(touch_, 1, 1, {&address});
        require(api_.copy_out(memory.data(), address, memory.size(), stream_), "cuMemcpyDtoHAsync");
        require(api_.finish_stream(stream_), "cuStreamSynchronize");
        api_.free(address);
        return microseconds_since(start);
    }

    /// A copy and a kernel, each alone.
    std::pair<double, double> copy_and_compute_us(const std::vector<float>& values, int rounds) {
        const cuda::Address from = allocated(values.size() * sizeof(float)),
                            to = allocated(values.size() * sizeof(float));
        auto start = std::chrono::steady_clock::now();
        require(api_.copy_in(from, values.data(), values.size() * sizeof(float), stream_),
                "cuMemcpyHtoDAsync");
        require(api_.finish_stream(stream_), "cuStreamSynchronize");
        const double copy = microseconds_since(start);
        start = std::chrono::steady_clock::now();
        launch(compute_, static_cast<unsigned>(values.size() / 256), 256, {&from, &to, &rounds});
        require(api_.finish_stream(stream_), "cuStreamSynchronize");
        const double compute = microseconds_since(start);
        api_.free(from);
        api_.free(to);
        return {copy, compute};
    }

  private:
    [[nodiscard]] cuda::Address allocated(size_t bytes) const {
        cuda::Address address = 0;
        require(api_.allocate(&address, bytes), "cuMemAlloc");
        return address;
    }
    void launch(cuda::Function function, unsigned grid, unsigned block, std::vector<const void*> arguments) {
        require(api_.launch(function, grid, 1, 1, block, 1, 1, 0, stream_,
                            const_cast<void**>(arguments.data()), nullptr),
                "cuLaunchKernel");
    }

    const cuda::Driver& api_ = cuda::driver();
    std::shared_ptr<cuda::Session> session_ = std::make_shared<cuda::Session>(0, "the device");
    cuda::Stream stream_ = nullptr;
    std::unique_ptr<cuda::LoadedModule> module_;
    cuda::Function touch_ = nullptr, compute_ = nullptr;
    cuda::Address buffers_[kBuffers] = {};
};

class Ours : public TouchTasks {
  public:
    Ours() : TouchTasks("cuda", {.cuda = kSource}) {}

    double there_and_back_us(std::vector<char>& memory) {
        const auto start = std::chrono::steady_clock::now();
        const auto buffer = std::make_shared<Buffer>(memory.data(), memory.size());
        runtime_.submit(touch(buffer));
        (void)buffer->host();
        return microseconds_since(start);
    }

    double overlapped_us(std::vector<std::vector<float>>& inputs, int rounds) {
        const size_t items = inputs[0].size(), bytes = items * sizeof(float);
        std::vector<TaskPointer> batch;
        for (std::vector<float>& input : inputs) {
            batch.push_back(std::make_shared<DeviceTask>(program_));
            batch.back()
                ->add_kernel("compute")
                .arg(0, in(std::make_shared<Buffer>(input.data(), bytes)))
                .arg(1, out(std::make_shared<Buffer>(bytes)))
                .arg(2, rounds)
                .work(items);
        }
        const auto start = std::chrono::steady_clock::now();
        runtime_.submit(batch);
        runtime_.finish();
        return microseconds_since(start);
    }
};

void measure_copies(Raw& raw, Ours& ours) {
    std::vector<char> memory(size_t{256} << 20, 1);
    std::vector<double> own, theirs;
    for (int round = -1; round < 7; ++round) {
        const double us = ours.there_and_back_us(memory), by_hand = raw.there_and_back_us(memory);
        if (round < 0) continue;
        own.push_back(us);
        theirs.push_back(by_hand);
    }
    print({.name = "devices.cuda_copy", .unit = "us", .values = own, .peer_median = median(theirs)});
}

void measure_overlap(Raw& raw, Ours& ours) {
    constexpr size_t kTasks = 16, kItems = size_t{8} << 20;
    std::vector<std::vector<float>> inputs(kTasks, std::vector<float>(kItems, 1.0f));
    for (const int rounds : {1000, 20'000}) {
        std::vector<double> own, bounds, one_by_one;
        for (int round = -1; round < 7; ++round) {
            const auto [copy, compute] = raw.copy_and_compute_us(inputs[0], rounds);
            const double us = ours.overlapped_us(inputs, rounds);
            if (round < 0) continue;
            own.push_back(us);
            bounds.push_back(copy + compute + (kTasks - 1) * std::max(copy, compute));
            one_by_one.push_back(kTasks * (copy + compute));
        }
        print({.name = rounds == 1000 ? "devices.cuda_overlap" : "devices.cuda_overlap_long",
               .unit = "us",
               .values = own,
               .peer_median = median(bounds),
               .more = {{"one_by_one", median(one_by_one)}}});
    }
}

void run(bool quick) {
    for (const std::string& problem : {cuda::driver().problem, cuda::compiler().problem})
        if (!problem.empty()) {
            for (const char* name : {"devices.cuda_overhead", "devices.cuda_copy", "devices.cuda_overlap",
                                     "devices.cuda_overlap_long"})
                print_skipped(name, problem);
            return;
        }
    Raw raw;
    Ours ours;
    print_added("devices.cuda_overhead", quick, raw, ours);
    measure_copies(raw, ours);
    measure_overlap(raw, ours);
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
