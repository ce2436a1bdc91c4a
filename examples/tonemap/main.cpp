// tonemap: makes a picture for a screen of one that holds light, on any mix of devices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tonemap/compare.hpp"
#include "tonemap/tonemap.hpp"

namespace {

/// Those of this machine's devices; "all" are those that are there.
std::vector<std::string> kinds_of(const std::string& devices) {
    if (devices == "simulated") return {};
    if (devices != "all") return {devices};
    std::set<std::string> kinds;
    for (const heddle::devices::DeviceInfo& info : heddle::devices::list_devices())
        if (info.available) kinds.insert(info.kind);
    return {kinds.begin(), kinds.end()};
}

}  // namespace

int main(int argc, char** argv) {
    using namespace heddle::devices;
    CLI::App app{"Tone mapping of Radiance .hdr and OpenEXR .exr pictures on the devices of this machine"};
    std::string from, to, scheduler = "fcfs", devices = "opencl", comparison;
    tonemap::Settings settings;
    bool check = false;
    app.add_option("FROM", from, "a picture, .hdr or .exr")->required();
    app.add_option("TO.png", to, "what is written")->required();
    app.add_option("--devices", devices, "opencl, cuda, simulated (two, 3 to 1), or all")
        ->check(CLI::IsMember({"opencl", "cuda", "simulated", "all"}));
    unsigned units = 0;
    app.add_option("--units", units, "compute units of each device that CPUs are divided into by OpenCL");
    app.add_option("--scheduler", scheduler, "fcfs, heft or pams");
    app.add_option("--parts", settings.parts,
                   "of the rows, each for any device; without it devices share them by measured speed")
        ->check(CLI::Range(1, 4096));
    app.add_option("--key", settings.key, "the grey that the average becomes")
        ->check([](const std::string& text) {  // a Range lets through what is no number
            const double key = std::strtod(text.c_str(), nullptr);
            return key >= 1e-6 && key <= 1e6 ? std::string() : text + " is not between 1e-6 and 1e6";
        });
    app.add_flag("--check", check, "compare with a plain loop; ends with 1 where more than 1 of 255 differs");
    app.add_option("--compare", comparison, "an .html file with the pictures, and what each device did when");
    CLI11_PARSE(app, argc, argv);
    try {
        const tonemap::HdrPicture picture = tonemap::read_hdr_picture(from);
        if (picture.mended > 0) fmt::print("{} values were negative or no numbers\n", picture.mended);
        DeviceOptions options;
        options.scheduler = make_scheduler(scheduler);
        options.kinds = kinds_of(devices);
        options.compute_units = units;
        if (devices == "simulated" || devices == "all")
            options.simulated = {
                {.name = "simulated gpu", .type = DeviceType::kGpu},
                {.name = "simulated cpu", .cost_us = [](const std::string&, const LaunchShape& shape) {
                     return 3e-3 * static_cast<double>(shape.work.count());
                 }}};
        DeviceRuntime runtime(options);
        tonemap::ToneMapper mapper(runtime);
        const auto start = std::chrono::steady_clock::now();
        const tonemap::Picture result = mapper.run(picture, settings);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        tonemap::write_png(to, result);
        fmt::print("{} x {} pixels in {:.1f} ms\n", picture.width, picture.height, took.count());
        for (const Device& device : runtime.devices())
            fmt::print("{:>4} tasks on {}\n", device.tasks_run(), device.info().name);
        if (!check && comparison.empty()) return 0;
        const tonemap::Picture plain = tonemap::reference(picture, settings);
        if (!comparison.empty())
            tonemap::write_comparison(comparison, picture, plain, result, mapper.tasks(), runtime.devices());
        if (!check) return 0;
        const int difference = tonemap::greatest_difference(result, plain);
        fmt::print("greatest difference to a plain loop: {} of 255\n", difference);
        return difference <= 1 ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "tonemap: {}\n", error.what());
        return 1;
    }
}
