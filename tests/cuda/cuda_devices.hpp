// Devices of kind cuda for tests: NVIDIA's, or one of a pretended driver (fake_cuda.cpp), whichever
// LD_LIBRARY_PATH has first.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/kinds/cuda/cuda_api.hpp"
#include "heddle/device.hpp"
#include "support/device_programs.hpp"

namespace heddle::devices::test {

/// integer_program() for CUDA too, and kernels that only the pretended driver takes long for, and that fail.
inline ProgramSource cuda_program() {
    ProgramSource source = integer_program();
    source.cuda =
        R"(extern "C" __global__ void add(unsigned* data, int by) { data[heddle_global_id(0)] += by; }
extern "C" __global__ void multiply(unsigned* data, int by) { data[heddle_global_id(0)] *= by; }
extern "C" __global__ void fill(unsigned* data, int value) { data[heddle_global_id(0)] = value; }
extern "C" __global__ void copy(const unsigned* from, unsigned* to) { to[heddle_global_id(0)] = from[heddle_global_id(0)]; }
extern "C" __global__ void late(unsigned* data) {}
extern "C" __global__ void crash(unsigned* data) { data[1ull << 40] = 0; }
)";
    source.host["crash"] = [](const HostArguments&, const LaunchShape&) {};
    return source;
}

/// Of libcuda.so.1, whoever's it is.
template <class Function>
Function* of_cuda_driver(const char* name) {
    static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    return driver == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(driver, name));
}

/// Runs with any device of the kind.
class CudaDevices : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const std::string& problem : {cuda::driver().problem, cuda::compiler().problem})
            if (!problem.empty()) GTEST_SKIP() << "skipped: " << problem;
        options_.kinds = {"cuda"};
        options_.learn = false;
    }
    void TearDown() override {
        if (!pretended()) return;
        EXPECT_EQ(of_cuda_driver<int()>("fake_cuda_live")(), 0) << "something was not given back";
        of_cuda_driver<void()>("fake_cuda_repair")();
    }
    [[nodiscard]] static bool pretended() { return of_cuda_driver<int()>("fake_cuda_live") != nullptr; }
    /// Of the first device.
    [[nodiscard]] static DeviceInfo listed() {
        for (const DeviceInfo& info : list_devices())
            if (info.kind == "cuda") return info;
        return {};
    }

    DeviceOptions options_;
};

}  // namespace heddle::devices::test
