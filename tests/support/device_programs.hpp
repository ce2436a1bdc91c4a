// Programs for devices of each kind, and devices, that several tests use.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/device_variant.hpp"
#include "heddle/error.hpp"

namespace heddle::devices::test {

/// Kernels over 32-bit integers: add(data, by), multiply(data, by), fill(data, value), copy(from, to).
inline ProgramSource integer_program() {
    const auto each = [](const LaunchShape& shape, const auto& act) {
        for (size_t i = shape.offset.x; i < shape.offset.x + shape.work.x; ++i) act(i);
    };
    ProgramSource source;
    source.opencl = R"(
        kernel void add(global int* data, int by) { data[get_global_id(0)] += by; }
        kernel void multiply(global int* data, int by) { data[get_global_id(0)] *= by; }
        kernel void fill(global int* data, int value) { data[get_global_id(0)] = value; }
        kernel void copy(global const int* from, global int* to) { to[get_global_id(0)] = from[get_global_id(0)]; }
    )";
    source.host["add"] = [each](const HostArguments& arguments, const LaunchShape& shape) {
        each(shape, [&](size_t i) { arguments.buffer<unsigned>(0)[i] += arguments.value<unsigned>(1); });
    };
    source.host["multiply"] = [each](const HostArguments& arguments, const LaunchShape& shape) {
        each(shape, [&](size_t i) { arguments.buffer<unsigned>(0)[i] *= arguments.value<unsigned>(1); });
    };
    source.host["fill"] = [each](const HostArguments& arguments, const LaunchShape& shape) {
        each(shape, [&](size_t i) { arguments.buffer<unsigned>(0)[i] = arguments.value<unsigned>(1); });
    };
    source.host["copy"] = [each](const HostArguments& arguments, const LaunchShape& shape) {
        each(shape, [&](size_t i) { arguments.buffer<int>(1)[i] = arguments.buffer<int>(0)[i]; });
    };
    return source;
}

/// With memory of their own.
inline std::vector<SimulatedDevice> two_simulated() {
    return {{.name = "simulated cpu", .type = DeviceType::kCpu, .us_per_byte = 1e-4},
            {.name = "simulated gpu", .type = DeviceType::kGpu, .us_per_byte = 1e-4}};
}

/// These alone.
inline DeviceOptions simulated(std::vector<SimulatedDevice> devices, const std::string& scheduler = "fcfs") {
    DeviceOptions options;
    options.kinds = {};
    options.simulated = std::move(devices);
    options.scheduler = make_scheduler(scheduler);
    return options;
}

/// As the kernel of that name, on the CPU.
inline void add(std::span<int> data, int by) {
    for (int& one : data) one += by;
}

constexpr Keeping kBothKeepings[] = {Keeping::kCopies, Keeping::kResults};

/// What is said of it.
inline std::string failure(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace heddle::devices::test
