// devices.unequal: 40 tasks on PoCL and Oclgrind, which is hundreds of times slower, with learned costs, over
// the same first come, first served. Nothing where either is missing.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hpp"
#include "figures.hpp"
#include "heddle/device.hpp"

namespace {

using namespace heddle::bench;
using namespace heddle::devices;

constexpr const char* kOclgrind = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
constexpr const char* kSource = R"(
kernel void steps(global uint* data) {
    uint value = (uint)get_global_id(0);
    for (int i = 0; i < 100; ++i) value = value * 1664525u + 1013904223u;
    data[get_global_id(0)] = value;
})";

class Contestant {
  public:
    Contestant(const std::string& scheduler, const std::string& file)
        : runtime_({.scheduler = make_scheduler(scheduler), .costs_file = file}),
          program_(std::make_shared<Program>(runtime_, ProgramSource{.opencl = kSource})) {}

    double milliseconds() {
        constexpr int kTasks = 40;
        constexpr size_t kItems = 1024;
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < kTasks; ++i) {
            tasks.push_back(std::make_shared<DeviceTask>(program_));
            tasks.back()->add_kernel("steps").arg(0, out(std::make_shared<Buffer>(4 * kItems))).work(kItems);
        }
        const auto start = std::chrono::steady_clock::now();
        runtime_.submit(tasks);
        runtime_.finish();
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }

    [[nodiscard]] size_t devices() const { return runtime_.devices().size(); }

  private:
    DeviceRuntime runtime_;
    std::shared_ptr<Program> program_;
};

void run(bool quick) {
    const std::filesystem::path vendors = "/etc/OpenCL/vendors";
    if (!std::filesystem::exists(kOclgrind) || !std::filesystem::exists(vendors)) return;
    const heddle::TemporaryFolder folder(heddle::TemporaryFolder::place() + "/heddle-bench-");
    std::filesystem::copy(vendors, folder.path());
    std::ofstream(folder.path() + "/oclgrind.icd") << kOclgrind << "\n";
    // The loader reads it at the first call of OpenCL's.
    ::setenv("OCL_ICD_VENDORS", folder.path().c_str(), 1);
    const std::string file = folder.path() + "/costs";
    std::vector<double> fcfs, pams;
    {
        Contestant contestant("fcfs", file);
        if (contestant.devices() < 2) return;
        for (int round = -2; round < (quick ? 3 : 11); ++round)  // the first two compile
            if (const double ms = contestant.milliseconds(); round >= 0) fcfs.push_back(ms);
    }
    Contestant contestant("pams", file);
    for (int round = -2; round < (quick ? 3 : 11); ++round)
        if (const double ms = contestant.milliseconds(); round >= 0) pams.push_back(ms);
    print({.name = "devices.unequal", .unit = "ms", .values = pams, .peer_median = median(fcfs)});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
