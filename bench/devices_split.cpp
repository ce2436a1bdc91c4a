// devices.split: tone mapping in 64 parts of rows on two simulated devices, one 3 times faster, over what it
// takes where work could be cut at will; the second run, when costs were learned. On the virtual clock.
#include <algorithm>

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

void run(bool) {
    SimulatedDevice fast{.name = "fast", .type = DeviceType::kGpu, .cost_us = cost_us};
    SimulatedDevice slow{.name = "slow", .cost_us = [](const std::string& kernel, const LaunchShape& shape) {
                             return kSlower * cost_us(kernel, shape);
                         }};
    DeviceRuntime runtime({.kinds = {}, .simulated = {fast, slow}, .scheduler = make_scheduler("pams")});
    tonemap::ToneMapper mapper(runtime);
    tonemap::HdrPicture picture{kWidth, kHeight, {}};
    picture.pixels.assign(kWidth * kHeight, {0.2f, 0.5f, 1.0f, 0});
    double start = 0, end = 0;
    for (int round = 0; round < 2; ++round) {
        start = end;
        (void)mapper.run(picture, {.parts = 64});
        for (const TaskPointer& task : mapper.tasks()) end = std::max(end, task->times().ended_us);
    }
    constexpr double kShare = kSlower / (1 + kSlower);
    constexpr double kBound = kShare * (2.0 + 5.0) * static_cast<double>(kHeight) + 1.0;
    print({.name = "devices.split", .unit = "of bound", .values = {(end - start) / kBound}, .limit = 1.05});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
