// Independent tasks on two simulated devices that differ in what they are good at, and what a scheduler makes
// of them: the makespan on the virtual clock over the bound of tasks that could be cut at will.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "heddle/device.hpp"

namespace heddle::bench {

/// What a task takes on the CPU and on the GPU, in microseconds.
struct MixCost {
    double cpu = 0;
    double gpu = 0;
};

/// Half of the tasks 10 times faster on the GPU, half 2 times faster on the CPU.
[[nodiscard]] inline std::vector<MixCost> unequal_mix(unsigned seed, size_t tasks) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> length(100, 1000);
    std::vector<MixCost> mix;
    for (size_t i = 0; i < tasks; ++i) {
        const double us = length(random);
        mix.push_back(random() % 2 == 0 ? MixCost{10 * us, us} : MixCost{us, 2 * us});
    }
    return mix;
}

/// The CPU is 100 times slower at everything.
[[nodiscard]] inline std::vector<MixCost> slow_mix(unsigned seed, size_t tasks) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> length(100, 1000);
    std::vector<MixCost> mix(tasks);
    for (MixCost& cost : mix) {
        cost.gpu = length(random);
        cost.cpu = 100 * cost.gpu;
    }
    return mix;
}

/// Each cost wrong by up to half of it, up or down.
[[nodiscard]] inline std::vector<MixCost> noisy(std::vector<MixCost> mix, unsigned seed) {
    std::mt19937 random(seed + 1'000'000);
    std::uniform_real_distribution<double> error(0.5, 1.5);
    for (MixCost& cost : mix) cost = {cost.cpu * error(random), cost.gpu * error(random)};
    return mix;
}

/// The least makespan of two devices if tasks could be cut: sorted by advantage, with one task cut.
[[nodiscard]] inline double fractional_bound(std::vector<MixCost> mix) {
    std::sort(mix.begin(), mix.end(),
              [](const MixCost& a, const MixCost& b) { return a.gpu * b.cpu > b.gpu * a.cpu; });
    double cpu = 0, gpu = 0;
    for (const MixCost& cost : mix) gpu += cost.gpu;
    for (const MixCost& cost : mix) {
        const double part = (gpu - cpu) / (cost.cpu + cost.gpu);
        if (part <= 1) return std::max(cpu + part * cost.cpu, gpu - part * cost.gpu);
        cpu += cost.cpu;
        gpu -= cost.gpu;
    }
    return cpu;
}

/// The makespan of the tasks, in microseconds, where the scheduler knows the estimates and the devices take
/// the costs.
[[nodiscard]] inline double makespan(const std::string& scheduler, const std::vector<MixCost>& costs,
                                     const std::vector<MixCost>& estimates) {
    using namespace heddle::devices;
    // The offset says which task it is.
    SimulatedDevice cpu{.name = "cpu", .type = DeviceType::kCpu};
    cpu.cost_us = [&](const std::string&, const LaunchShape& shape) { return costs[shape.offset.x].cpu; };
    SimulatedDevice gpu{.name = "gpu", .type = DeviceType::kGpu};
    gpu.cost_us = [&](const std::string&, const LaunchShape& shape) { return costs[shape.offset.x].gpu; };
    DeviceRuntime runtime(
        {.kinds = {}, .simulated = {cpu, gpu}, .scheduler = make_scheduler(scheduler), .learn = false});
    ProgramSource source;
    source.host["nothing"] = [](const HostArguments&, const LaunchShape&) {};
    const auto program = std::make_shared<Program>(runtime, source);
    std::vector<TaskPointer> tasks;
    for (size_t i = 0; i < costs.size(); ++i) {
        tasks.push_back(std::make_shared<DeviceTask>(program, Score{estimates[i].cpu, estimates[i].gpu}));
        tasks.back()->add_kernel("nothing").work(1).offset(i);
    }
    runtime.submit(tasks);
    runtime.finish();
    double end = 0;
    for (const TaskPointer& task : tasks) end = std::max(end, task->times().ended_us);
    return end;
}

/// Eight kinds of tasks, eight of each, half of the kinds better on either device. Nobody gives estimates:
/// what runs took is kept in the file.
[[nodiscard]] inline double learned_makespan(const std::string& scheduler, const std::vector<MixCost>& kinds,
                                             bool know_costs, const std::string& file) {
    using namespace heddle::devices;
    // The work says which kind it is.
    SimulatedDevice cpu{.name = "cpu", .type = DeviceType::kCpu};
    cpu.cost_us = [&](const std::string&, const LaunchShape& shape) { return kinds[shape.work.x - 1].cpu; };
    SimulatedDevice gpu{.name = "gpu", .type = DeviceType::kGpu};
    gpu.cost_us = [&](const std::string&, const LaunchShape& shape) { return kinds[shape.work.x - 1].gpu; };
    DeviceRuntime runtime({.kinds = {},
                           .simulated = {cpu, gpu},
                           .scheduler = make_scheduler(scheduler),
                           .learn = !know_costs,
                           .costs_file = file});
    ProgramSource source;
    source.host["nothing"] = [](const HostArguments&, const LaunchShape&) {};
    const auto program = std::make_shared<Program>(runtime, source);
    std::vector<TaskPointer> tasks;
    for (size_t i = 0; i < 8 * kinds.size(); ++i) {
        const size_t kind = i % kinds.size();
        const Score score = know_costs ? Score{kinds[kind].cpu, kinds[kind].gpu} : Score{};
        tasks.push_back(std::make_shared<DeviceTask>(program, score));
        tasks.back()->add_kernel("nothing").work(kind + 1);
    }
    runtime.submit(tasks);
    runtime.finish();
    double end = 0;
    for (const TaskPointer& task : tasks) end = std::max(end, task->times().ended_us);
    return end;
}

}  // namespace heddle::bench
