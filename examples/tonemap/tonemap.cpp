#include "tonemap/tonemap.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tonemap {
namespace {

using namespace heddle::devices;

// For OpenCL, and for the host below: a sum of logarithms and the greatest luminance of each row, the key's
// scale and the white of the picture, the pixels. Sums are compensated (Kahan), so that rows of any length
// keep their digits.
constexpr const char* kOpenCl = R"(
#pragma OPENCL FP_CONTRACT OFF
float luminance(float4 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }

kernel void row_luminance(global const float4* pixels, int width, global float2* rows) {
    size_t y = get_global_id(0);
    float sum = 0.0f, lost = 0.0f, most = 0.0f;
    for (int x = 0; x < width; ++x) {
        float one = luminance(pixels[y * width + x]);
        float term = log(1e-5f + one) - lost;
        float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
        most = fmax(most, one);
    }
    rows[y] = (float2)(sum, most);
}

kernel void exposure(global const float2* rows, int height, int width, float key, global float2* result) {
    float sum = 0.0f, lost = 0.0f, most = 0.0f;
    for (int y = 0; y < height; ++y) {
        float term = rows[y].x - lost;
        float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
        most = fmax(most, rows[y].y);
    }
    float scale = key / exp(sum / ((float)height * (float)width));
    result[0] = (float2)(scale, fmax(most * scale, 1e-9f));
}

kernel void map_tones(global const float4* pixels, int width, global const float2* exposure, float gamma,
                      global uchar4* result) {
    size_t i = get_global_id(1) * width + get_global_id(0);
    float4 c = pixels[i];
    float scaled = luminance(c) * exposure[0].x, white = exposure[0].y;
    float shown = (1.0f + scaled / (white * white)) / (1.0f + scaled);
    float4 light = clamp(c * (exposure[0].x * shown), 0.0f, 1.0f);
    float4 screen = pow(light, (float4)(1.0f / gamma));
    result[i] = (uchar4)((uchar)(255.0f * screen.x + 0.5f), (uchar)(255.0f * screen.y + 0.5f),
                         (uchar)(255.0f * screen.z + 0.5f), 255);
}
)";

// The same in CUDA.
constexpr const char* kCuda = R"(
static __device__ float luminance(float4 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }

static __device__ void add(float& sum, float& lost, float value) {
    float term = __fsub_rn(value, lost), next = __fadd_rn(sum, term);
    lost = __fsub_rn(__fsub_rn(next, sum), term);
    sum = next;
}

extern "C" __global__ void row_luminance(const float4* pixels, int width, float2* rows) {
    size_t y = heddle_global_id(0);
    float sum = 0.0f, lost = 0.0f, most = 0.0f;
    for (int x = 0; x < width; ++x) {
        float one = luminance(pixels[y * width + x]);
        add(sum, lost, logf(1e-5f + one));
        most = fmaxf(most, one);
    }
    rows[y] = make_float2(sum, most);
}

extern "C" __global__ void exposure(const float2* rows, int height, int width, float key, float2* result) {
    float sum = 0.0f, lost = 0.0f, most = 0.0f;
    for (int y = 0; y < height; ++y) {
        add(sum, lost, rows[y].x);
        most = fmaxf(most, rows[y].y);
    }
    float scale = key / expf(sum / ((float)height * (float)width));
    result[0] = make_float2(scale, fmaxf(most * scale, 1e-9f));
}

static __device__ unsigned char shown(float light, float gamma) {
    return (unsigned char)(255.0f * powf(fminf(fmaxf(light, 0.0f), 1.0f), 1.0f / gamma) + 0.5f);
}

extern "C" __global__ void map_tones(const float4* pixels, int width, const float2* exposure, float gamma,
                                     uchar4* result) {
    size_t i = heddle_global_id(1) * width + heddle_global_id(0);
    float4 c = pixels[i];
    float scaled = luminance(c) * exposure[0].x, white = exposure[0].y;
    float factor = exposure[0].x * ((1.0f + scaled / (white * white)) / (1.0f + scaled));
    result[i] = make_uchar4(shown(c.x * factor, gamma), shown(c.y * factor, gamma), shown(c.z * factor, gamma), 255);
}
)";

using Light = std::array<float, 4>;

template <class Real>
Real luminance(const Light& c) {
    return Real(0.2126) * Real(c[0]) + Real(0.7152) * Real(c[1]) + Real(0.0722) * Real(c[2]);
}

/// Compensated.
template <class Real>
struct Sum {
    Real sum = 0, lost = 0;
    void add(Real value) {
        const Real term = value - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
};

template <class Real>
std::array<uint8_t, 4> shown(const Light& c, Real scale, Real white, Real gamma) {
    const Real scaled = luminance<Real>(c) * scale;
    const Real factor = scale * (1 + scaled / (white * white)) / (1 + scaled);
    std::array<uint8_t, 4> pixel{0, 0, 0, 255};
    for (size_t i = 0; i < 3; ++i) {
        const Real light = std::clamp(Real(c[i]) * factor, Real(0), Real(1));
        pixel[i] = static_cast<uint8_t>(255 * std::pow(light, 1 / gamma) + Real(0.5));
    }
    return pixel;
}

struct Row {
    float sum, most;
};

void row_luminance(const HostArguments& arguments, const LaunchShape& shape) {
    const Light* const pixels = arguments.buffer<Light>(0);
    const auto width = static_cast<size_t>(arguments.value<int>(1));
    for (size_t y = shape.offset.x; y < shape.offset.x + shape.work.x; ++y) {
        Sum<float> sum;
        float most = 0;
        for (size_t x = 0; x < width; ++x) {
            const float one = luminance<float>(pixels[y * width + x]);
            sum.add(std::log(1e-5f + one));
            most = std::max(most, one);
        }
        arguments.buffer<Row>(2)[y] = {sum.sum, most};
    }
}

void exposure(const HostArguments& arguments, const LaunchShape&) {
    const Row* const rows = arguments.buffer<Row>(0);
    const auto height = static_cast<size_t>(arguments.value<int>(1));
    Sum<float> sum;
    float most = 0;
    for (size_t y = 0; y < height; ++y) {
        sum.add(rows[y].sum);
        most = std::max(most, rows[y].most);
    }
    const float count = static_cast<float>(height) * static_cast<float>(arguments.value<int>(2));
    const float scale = arguments.value<float>(3) / std::exp(sum.sum / count);
    arguments.buffer<Row>(4)[0] = {scale, std::max(most * scale, 1e-9f)};
}

void map_tones(const HostArguments& arguments, const LaunchShape& shape) {
    const auto width = static_cast<size_t>(arguments.value<int>(1));
    const Row& settings = *arguments.buffer<Row>(2);
    for (size_t y = shape.offset.y; y < shape.offset.y + shape.work.y; ++y)
        for (size_t x = 0; x < width; ++x)
            arguments.buffer<std::array<uint8_t, 4>>(4)[y * width + x] =
                shown<float>(arguments.buffer<Light>(0)[y * width + x], settings.sum, settings.most,
                             arguments.value<float>(3));
}

}  // namespace

Picture reference(const HdrPicture& picture, const Settings& settings) {
    double sum = 0, most = 0;
    for (const Light& pixel : picture.pixels) {
        const double one = luminance<double>(pixel);
        sum += std::log(1e-5 + one);
        most = std::max(most, one);
    }
    const double scale = settings.key / std::exp(sum / static_cast<double>(picture.pixels.size()));
    const double white = std::max(most * scale, 1e-9);
    Picture result{picture.width, picture.height, {}};
    for (const Light& pixel : picture.pixels)
        result.pixels.push_back(shown<double>(pixel, scale, white, settings.gamma));
    return result;
}

heddle::devices::ProgramSource ToneMapper::source() {
    return {.opencl = kOpenCl,
            .cuda = kCuda,
            .options = "",
            .host = {{"row_luminance", row_luminance}, {"exposure", exposure}, {"map_tones", map_tones}}};
}

ToneMapper::ToneMapper(DeviceRuntime& runtime)
    : runtime_(runtime),
      program_(std::make_shared<Program>(runtime, source())),
      luminance_split_(runtime),
      tones_split_(runtime) {}

Picture ToneMapper::run(const HdrPicture& picture, const Settings& settings) {
    const size_t width = picture.width, height = picture.height;
    const auto pixels = std::make_shared<Buffer>(const_cast<Light*>(picture.pixels.data()),
                                                 width * height * sizeof(Light), "the picture");
    Picture result{width, height, std::vector<std::array<uint8_t, 4>>(width * height)};
    const auto rows = std::make_shared<Buffer>(height * sizeof(Row), "rows");
    const auto exposed = std::make_shared<Buffer>(sizeof(Row), "exposure");
    const auto shown_pixels =
        std::make_shared<Buffer>(result.pixels.data(), width * height * 4, "the result");
    const auto columns = static_cast<int>(width), lines = static_cast<int>(height);
    const auto light_of = [&](size_t first, size_t count) {
        return in(pixels, {first * width * sizeof(Light), count * width * sizeof(Light)});
    };

    const auto luminance = [&](size_t first, size_t count) {
        auto task = std::make_shared<DeviceTask>(program_, Score{}, "luminance");
        task->add_kernel("row_luminance")
            .arg(0, light_of(first, count))
            .arg(1, columns)
            .arg(2, out(rows, {first * sizeof(Row), count * sizeof(Row)}))
            .work(count)
            .offset(first);
        return task;
    };
    const auto expose = [&](size_t, size_t) {
        auto task = std::make_shared<DeviceTask>(program_, Score{}, "exposure");
        task->add_kernel("exposure")
            .arg(0, in(rows))
            .arg(1, lines)
            .arg(2, columns)
            .arg(3, settings.key)
            .arg(4, out(exposed))
            .work(1);
        return task;
    };
    const auto tones = [&](size_t first, size_t count) {
        auto task = std::make_shared<DeviceTask>(program_, Score{}, "tones");
        task->add_kernel("map_tones")
            .arg(0, light_of(first, count))
            .arg(1, columns)
            .arg(2, in(exposed))
            .arg(3, settings.gamma)
            .arg(4, out(shown_pixels, {first * width * 4, count * width * 4}))
            .work(width, count)
            .offset(0, first);
        return task;
    };

    tasks_.clear();
    if (settings.parts == 0) {
        const auto run_all = [&](DeviceSplit& split, const DeviceSplit::Part& part) {
            const std::vector<TaskPointer> done = split.run(height, part);
            tasks_.insert(tasks_.end(), done.begin(), done.end());
        };
        run_all(luminance_split_, luminance);
        tasks_.push_back(expose(0, 1));
        runtime_.submit(tasks_.back());
        run_all(tones_split_, tones);
    } else {
        const size_t parts = std::min(settings.parts, height);
        const auto add = [&](const DeviceSplit::Part& part) {
            for (size_t i = 0; i < parts; ++i) {
                const size_t first = i * height / parts;
                tasks_.push_back(part(first, (i + 1) * height / parts - first));
            }
        };
        add(luminance);
        tasks_.push_back(expose(0, 1));
        add(tones);
        runtime_.submit(tasks_);
    }
    runtime_.finish();
    (void)shown_pixels->host();
    return result;
}

int greatest_difference(const Picture& a, const Picture& b) {
    int greatest = 0;
    for (size_t i = 0; i < a.pixels.size(); ++i)
        for (size_t channel = 0; channel < 3; ++channel)
            greatest = std::max(greatest, std::abs(int{a.pixels[i][channel]} - int{b.pixels[i][channel]}));
    return greatest;
}

}  // namespace tonemap
