#include "tonemap/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>

#include "tonemap/tonemap.hpp"

namespace tonemap {
namespace {

using heddle::devices::Device;
using heddle::devices::TaskPointer;

std::string base64(const std::string& bytes) {
    constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t three = 0;
        const size_t there = std::min<size_t>(3, bytes.size() - i);
        for (size_t k = 0; k < 3; ++k)
            three = three << 8 | (k < there ? static_cast<uint8_t>(bytes[i + k]) : 0u);
        for (size_t k = 0; k < 4; ++k) text += k <= there ? kLetters[three >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

/// Small enough for a page: means of squares of pixels.
Picture reduced(const Picture& picture) {
    constexpr size_t kWidest = 480;
    const size_t step = (picture.width + kWidest - 1) / kWidest;
    Picture small{picture.width / step, std::max<size_t>(picture.height / step, 1), {}};
    for (size_t y = 0; y < small.height; ++y)
        for (size_t x = 0; x < small.width; ++x) {
            std::array<size_t, 3> sum{};
            size_t count = 0;
            for (size_t v = y * step; v < std::min((y + 1) * step, picture.height); ++v)
                for (size_t u = x * step; u < (x + 1) * step; ++u, ++count)
                    for (size_t i = 0; i < 3; ++i) sum[i] += picture.pixels[v * picture.width + u][i];
            const auto mean = [&](size_t i) { return static_cast<uint8_t>(sum[i] / count); };
            small.pixels.push_back({mean(0), mean(1), mean(2), 255});
        }
    return small;
}

Picture cut_off(const HdrPicture& light) {
    constexpr float kScreen = 1 / 2.2f;
    Picture result{light.width, light.height, {}};
    for (const auto& pixel : light.pixels) {
        const auto shown = [&](size_t i) {
            return static_cast<uint8_t>(255 * std::pow(std::clamp(pixel[i], 0.0f, 1.0f), kScreen) + 0.5f);
        };
        result.pixels.push_back({shown(0), shown(1), shown(2), 255});
    }
    return result;
}

std::string figure(const Picture& picture, const std::string& text) {
    return fmt::format(
        "<figure><img alt=\"\" src=\"data:image/png;base64,{}\"><figcaption>{}</figcaption></figure>\n",
        base64(png(reduced(picture))), text);
}

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        if (c == '<')
            safe += "&lt;";
        else if (c == '>')
            safe += "&gt;";
        else if (c == '&')
            safe += "&amp;";
        else if (c == '"')
            safe += "&quot;";
        else
            safe += c;
    }
    return safe;
}

/// A row for each device, in its own time: devices that are simulated have a clock of their own.
std::string timeline(const std::vector<TaskPointer>& tasks, std::span<const Device> devices) {
    constexpr double kWidth = 940, kRow = 26, kBar = 18;
    constexpr const char* kColours[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"};
    std::map<std::string, size_t> names;
    for (const TaskPointer& task : tasks) names.emplace(task->name(), names.size());
    std::string rows;
    double y = 0;
    for (const Device& device : devices) {
        double begin = INFINITY, end = 0;
        size_t count = 0;
        for (const TaskPointer& task : tasks) {
            if (task->device() != static_cast<int>(device.index())) continue;
            begin = std::min(begin, task->times().started_us);
            end = std::max(end, task->times().ended_us);
            ++count;
        }
        const double scale = count == 0 ? 0 : kWidth / std::max(end - begin, 1e-9);
        rows += fmt::format("<text x=\"0\" y=\"{}\">{}: {} tasks, {:.1f} us</text>\n", y + 14,
                            escaped(device.info().name), count, count == 0 ? 0 : end - begin);
        for (const TaskPointer& task : tasks) {
            if (task->device() != static_cast<int>(device.index())) continue;
            const auto [started, ended] = task->times();
            rows += fmt::format(
                "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}: {:.1f} "
                "us</title></rect>\n",
                (started - begin) * scale, y + kRow - 6, std::max((ended - started) * scale, 0.5), kBar,
                kColours[names[task->name()] % std::size(kColours)], escaped(task->name()), ended - started);
        }
        y += 2 * kRow;
    }
    std::string legend;
    for (const auto& [name, number] : names)
        legend += fmt::format("<span style=\"color:{}\">&#9632;</span> {} ",
                              kColours[number % std::size(kColours)], escaped(name));
    return fmt::format("<svg viewBox=\"0 0 {} {}\">{}</svg>\n<p>{}</p>\n", kWidth, y, rows, legend);
}

}  // namespace

void write_comparison(const std::string& path, const HdrPicture& light, const Picture& plain,
                      const Picture& devices_picture, const std::vector<TaskPointer>& tasks,
                      std::span<const Device> devices) {
    std::ofstream out(path);
    out << "<!doctype html><meta charset=\"utf-8\"><title>Tone mapping</title>\n"
           "<style>body{font:14px sans-serif;max-width:980px;margin:2em "
           "auto}figure{display:inline-block;margin:4px}"
           "figure img{width:310px}svg text{font-size:13px}</style>\n<h1>Tone mapping</h1>\n"
        << figure(cut_off(light), "as a screen cuts it off") << figure(plain, "mapped by a plain loop")
        << figure(devices_picture,
                  fmt::format("mapped by devices; greatest difference to the loop: {} of 255",
                              greatest_difference(plain, devices_picture)))
        << "<h2>Who did what when</h2>\n"
        << timeline(tasks, devices);
    out.flush();
    if (!out) throw std::runtime_error(fmt::format("{} cannot be written", path));
}

}  // namespace tonemap
