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

ToneMapper::ToneMapper(DeviceRuntime& runtime)
    : runtime_(runtime),
      program_(std::make_shared<Program>(runtime, ProgramSource{.opencl = kOpenCl,
                                                                .options = "",
                                                                .host = {{"row_luminance", row_luminance},
                                                                         {"exposure", exposure},
                                                                         {"map_tones", map_tones}}})) {}

Picture ToneMapper::run(const HdrPicture& picture, const Settings& settings) {
    const size_t width = picture.width, height = picture.height;
    const auto pixels = std::make_shared<Buffer>(const_cast<Light*>(picture.pixels.data()),
                                                 width * height * sizeof(Light), "the picture");
    Picture result{width, height, std::vector<std::array<uint8_t, 4>>(width * height)};
    const auto rows = std::make_shared<Buffer>(height * sizeof(Row), "rows");
    const auto exposed = std::make_shared<Buffer>(sizeof(Row), "exposure");
    const auto shown_pixels =
        std::make_shared<Buffer>(result.pixels.data(), width * height * 4, "the result");
    const size_t parts = std::clamp<size_t>(settings.parts, 1, height);
    const auto first_row = [&](size_t part) { return part * height / parts; };
    const auto columns = static_cast<int>(width), lines = static_cast<int>(height);

    tasks_.clear();
    for (size_t part = 0; part < parts; ++part) {
        const size_t first = first_row(part), count = first_row(part + 1) - first;
        tasks_.push_back(std::make_shared<DeviceTask>(program_, Score{}, "luminance"));
        tasks_.back()
            ->add_kernel("row_luminance")
            .arg(0, in(pixels, {first * width * sizeof(Light), count * width * sizeof(Light)}))
            .arg(1, columns)
            .arg(2, out(rows, {first * sizeof(Row), count * sizeof(Row)}))
            .work(count)
            .offset(first);
    }
    tasks_.push_back(std::make_shared<DeviceTask>(program_, Score{}, "exposure"));
    tasks_.back()
        ->add_kernel("exposure")
        .arg(0, in(rows))
        .arg(1, lines)
        .arg(2, columns)
        .arg(3, settings.key)
        .arg(4, out(exposed))
        .work(1);
    for (size_t part = 0; part < parts; ++part) {
        const size_t first = first_row(part), count = first_row(part + 1) - first;
        tasks_.push_back(std::make_shared<DeviceTask>(program_, Score{}, "tones"));
        tasks_.back()
            ->add_kernel("map_tones")
            .arg(0, in(pixels, {first * width * sizeof(Light), count * width * sizeof(Light)}))
            .arg(1, columns)
            .arg(2, in(exposed))
            .arg(3, settings.gamma)
            .arg(4, out(shown_pixels, {first * width * 4, count * width * 4}))
            .work(width, count)
            .offset(0, first);
    }
    runtime_.submit(tasks_);
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
