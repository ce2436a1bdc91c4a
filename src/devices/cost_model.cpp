#include "devices/cost_model.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <locale>
#include <mutex>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "base/new_file.hpp"
#include "heddle/error.hpp"

namespace heddle::devices {
namespace {

constexpr const char* kFirstLine = "heddle device costs 1";
constexpr const char* kLastLine = "end";

std::atomic<int64_t> uses{0};  // in this process

std::string device_key(const DeviceInfo& device) {
    std::string key = fmt::format("{}/{}/{}", device.platform, device.name, device.version);
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    return key;
}

}  // namespace

void RunTimes::add(double us) {
    us_[count_ % kKept] = us;
    ++count_;
}

std::optional<double> RunTimes::median() const {
    if (count_ == 0) return std::nullopt;
    std::array<double, kKept> sorted = us_;
    const auto end = sorted.begin() + static_cast<ptrdiff_t>(std::min(count_, kKept));
    const auto middle = sorted.begin() + (end - sorted.begin() - 1) / 2;
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
}

std::string RunTimes::text() const {
    std::string text;
    for (size_t i = 0; i < std::min(count_, kKept); ++i)
        text += fmt::format("{}{:.6g}", i == 0 ? "" : " ", us_[i]);
    return text;
}

std::optional<RunTimes> RunTimes::parse(const std::string& text) {
    std::istringstream words(text);
    words.imbue(std::locale::classic());
    RunTimes times;
    double us = 0;
    while (words >> us) {
        if (!std::isfinite(us) || us < 0 || times.count_ == kKept) return std::nullopt;
        times.add(us);
    }
    if (!words.eof() || times.count_ == 0) return std::nullopt;
    return times;
}

std::optional<double> DeviceCosts::estimate_us(Signature signature) const {
    const std::lock_guard guard(mutex_);
    const auto found = entries_.find(signature);
    return found == entries_.end() ? std::nullopt : found->second.median;
}

void DeviceCosts::add(Signature signature, double us, bool drop_first) {
    const std::lock_guard guard(mutex_);
    Entry& entry = entries_[signature];
    if (!std::exchange(entry.ran, true) && drop_first) return;
    entry.times.add(us);
    entry.median = entry.times.median();
    entry.used = ++uses;
}

std::string CostModel::default_path() {
    const char* const cache = ::secure_getenv("XDG_CACHE_HOME");
    const char* const home = ::secure_getenv("HOME");
    std::string folder;
    if (cache != nullptr && *cache == '/')
        folder = cache;
    else if (home != nullptr && *home == '/')
        folder = fmt::format("{}/.cache", home);
    else
        return "";
    char host[256] = "";
    if (::gethostname(host, sizeof host - 1) != 0) return "";
    return fmt::format("{}/heddle/device-costs.{}", folder, host);
}

CostModel::CostModel(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::error_code unknown;
    const auto what = std::filesystem::status(path_, unknown);
    if (std::filesystem::exists(what) && !std::filesystem::is_regular_file(what)) {
        problem_ = fmt::format("{} is no file, and no costs of devices are kept there; name another", path_);
        return;
    }
    read();
    if (problem_.empty()) problem_ = problem_of_writing();
}

/// "", or why it cannot be kept: before tasks run, as nobody is there to be told of it when they have.
std::string CostModel::problem_of_writing() const {
    std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    std::error_code unknown;
    std::string why;
    if (folder.empty() || std::filesystem::is_directory(folder, unknown)) {
        try {
            NewFile::check(path_);
        } catch (const Error& error) {
            why = error.what();
        }
    } else {
        while (folder.has_relative_path() && !std::filesystem::exists(folder, unknown))
            folder = folder.parent_path();
        if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
            why = fmt::format("{} cannot be written to: {}", folder.string(), std::strerror(errno));
    }
    return why.empty() ? "" : fmt::format("costs of devices are not kept: {}; name another file", why);
}

void CostModel::read() {
    std::ifstream file(path_);
    if (!file) return;
    std::string line;
    bool ended = false;
    std::getline(file, line);
    if (line != kFirstLine) {
        problem_ =
            fmt::format("{} is no file of heddle's costs of devices, and is ignored; delete it", path_);
        return;
    }
    for (size_t number = 2; std::getline(file, line); ++number) {
        if (line == kLastLine && !std::exchange(ended, true)) continue;
        std::istringstream fields(line);
        std::string device, signature, times;
        std::getline(fields, device, '\t');
        std::getline(fields, signature, '\t');
        std::getline(fields, times, '\t');
        char* end = nullptr;
        const Signature key = std::strtoull(signature.c_str(), &end, 16);
        const std::optional<RunTimes> parsed = RunTimes::parse(times);
        if (ended || signature.empty() || *end != '\0' || !parsed) {
            problem_ =
                fmt::format("line {} of {} is broken, and the file is ignored; delete it", number, path_);
            break;
        }
        devices_[device].entries_[key] = {*parsed, parsed->median(), false, -static_cast<int64_t>(number)};
    }
    if (problem_.empty() && !ended) problem_ = fmt::format("{} has no end, and is ignored; delete it", path_);
    if (!problem_.empty()) devices_.clear();
}

DeviceCosts& CostModel::of(const DeviceInfo& device) {
    return devices_[device_key(device)];
}

void CostModel::save() const {
    if (path_.empty() || !problem_.empty()) return;
    static std::mutex one_at_a_time;  // of a process; of two that end at the same moment one may lose some
    const std::lock_guard turn(one_at_a_time);
    const CostModel now(path_);
    if (!now.problem_.empty()) return;
    std::map<std::pair<std::string, Signature>, std::pair<int64_t, std::string>> all;
    for (const CostModel* const model : {&now, this})
        for (const auto& [device, costs] : model->devices_) {
            const std::lock_guard guard(costs.mutex_);
            for (const auto& [signature, entry] : costs.entries_)
                if (entry.median && (entry.used > 0 || model == &now))
                    all[{device, signature}] = {entry.used, entry.times.text()};
        }
    std::vector<std::pair<int64_t, std::string>> lines;
    for (const auto& [what, costs] : all)
        lines.emplace_back(costs.first, fmt::format("{}\t{:x}\t{}\n", what.first, what.second, costs.second));
    std::ranges::sort(lines, std::greater());
    if (lines.size() > kMost) lines.resize(kMost);
    std::string text = fmt::format("{}\n", kFirstLine);
    for (const auto& [used, line] : lines) text += line;
    text += fmt::format("{}\n", kLastLine);
    try {
        std::error_code failed;
        std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
        NewFile file(path_);
        file.write(std::as_bytes(std::span(text)));
        file.keep();
    } catch (const Error&) {
        // What is not kept is measured again.
    }
}

}  // namespace heddle::devices
