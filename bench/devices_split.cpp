// devices.split: tone mapping in 64 parts of rows on two simulated devices, one 3 times faster, over what it
// takes where work could be cut at will; the second run, when costs were learned. On the virtual clock.
//
// devices.split_cpu: the same of one picture on a CPU device of OpenCL that is divided in two, of one compute
// unit each, by their measured speed, beside the device with both of them, in turn. Nothing where there is
// none that has two.
#include <algorithm>
#include <chrono>

#include "figures.hpp"
#include "tonemap/tonemap.hpp"

namespace {

using namespace heddle::bench;
using namespace heddle::devices;

constexpr size_t kWidth = 256, kHeight = 512;
constexpr double kSlower = 3;

/// A row's logarithms take 2 us, its tones 5, the exposure 1.
double cost_us(const std::string& kernel, const LaunchShape& shape) {
    if (kernel == "row_luminance") return 2.0 * static_cast<double>(shape.work.x);
    if (kernel == "map_tones") return 5.0 * static_cast<double>(shape.work.y);
    return 1.0;
}

tonemap::HdrPicture picture_of(size_t width, size_t height) {
    tonemap::HdrPicture picture{width, height, {}};
    picture.pixels.assign(width * height, {0.2f, 0.5f, 1.0f, 0});
    return picture;
}

/// Tone mapping on the devices of OpenCL, each of so many compute units, or whole.
class OnCpu {
  public:
    explicit OnCpu(unsigned compute_units)
        : runtime_({.kinds = {"opencl"}, .compute_units = compute_units}), mapper_(runtime_) {}
    double ms(const tonemap::HdrPicture& picture) {
        const auto start = std::chrono::steady_clock::now();
        (void)mapper_.run(picture, {});
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    [[nodiscard]] size_t devices() const { return runtime_.devices().size(); }
    [[nodiscard]] unsigned units() const { return runtime_.devices()[0].info().units; }

  private:
    DeviceRuntime runtime_;
    tonemap::ToneMapper mapper_;
};

void on_cpu(bool quick) {
    OnCpu whole(0), divided(1);
    if (whole.devices() != 1 || whole.units() != 2 || divided.devices() != 2)
        return print_skipped("devices.split_cpu", "there is no one device of OpenCL with two compute units");
    const tonemap::HdrPicture picture = picture_of(2048, 1024);
    std::vector<double> together, apart;
    for (int round = -3; round < (quick ? 3 : 21); ++round) {  // the first compile, and tell the speeds
        const double both = whole.ms(picture), each = divided.ms(picture);
        if (round < 0) continue;
        together.push_back(both);
        apart.push_back(each);
    }
    print({.name = "devices.split_cpu", .unit = "ms", .values = apart, .peer_median = median(together)});
}

void run(bool quick) {
    SimulatedDevice fast{.name = "fast", .type = DeviceType::kGpu, .cost_us = cost_us};
    SimulatedDevice slow{.name = "slow", .cost_us = [](const std::string& kernel, const LaunchShape& shape) {
                             return kSlower * cost_us(kernel, shape);
                         }};
    DeviceRuntime runtime({.kinds = {}, .simulated = {fast, slow}, .scheduler = make_scheduler("pams")});
    tonemap::ToneMapper mapper(runtime);
    const tonemap::HdrPicture picture = picture_of(kWidth, kHeight);
    double start = 0, end = 0;
    for (int round = 0; round < 2; ++round) {
        start = end;
        (void)mapper.run(picture, {.parts = 64});
        for (const TaskPointer& task : mapper.tasks()) end = std::max(end, task->times().ended_us);
    }
    constexpr double kShare = kSlower / (1 + kSlower);
    constexpr double kBound = kShare * (2.0 + 5.0) * static_cast<double>(kHeight) + 1.0;
    print({.name = "devices.split", .unit = "of bound", .values = {(end - start) / kBound}, .limit = 1.05});
    on_cpu(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
