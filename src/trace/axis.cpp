#include "trace/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace heddle::trace {
namespace {

constexpr int64_t kMicrosecond = 1'000;
constexpr int64_t kMillisecond = 1'000 * kMicrosecond;
constexpr int64_t kSecond = 1'000 * kMillisecond;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;

struct Unit {
    int64_t ns;
    const char* name;
};

Unit unit_for(int64_t step_ns, int64_t end_ns) {
    if (step_ns >= kDay) return {kDay, "d"};
    if (step_ns >= kHour) return {kHour, "h"};
    if (step_ns >= kMinute) return {kMinute, "min"};
    if (end_ns >= kSecond && step_ns >= 100 * kMillisecond) return {kSecond, "s"};
    if (end_ns >= kMillisecond && step_ns >= 100 * kMicrosecond) return {kMillisecond, "ms"};
    if (end_ns >= kMicrosecond && step_ns >= 100) return {kMicrosecond, "µs"};
    if (step_ns >= kSecond) return {kSecond, "s"};
    if (step_ns >= kMillisecond) return {kMillisecond, "ms"};
    if (step_ns >= kMicrosecond) return {kMicrosecond, "µs"};
    return {1, "ns"};
}

// The smallest round step that gives no more than `most` ticks.
int64_t round_step(int64_t end_ns, int most) {
    const int64_t parts = std::max(most - 1, 1);
    const int64_t least = (end_ns + parts - 1) / parts;
    int64_t power = 1;
    for (; power <= 10 * kSecond; power *= 10)
        for (const int64_t factor : {1, 2, 5})
            if (power * factor >= least && power * factor <= 30 * kSecond) return power * factor;
    static constexpr std::array<int64_t, 12> kLong = {30 * kSecond, kMinute,      2 * kMinute,  5 * kMinute,
                                                      10 * kMinute, 15 * kMinute, 30 * kMinute, kHour,
                                                      2 * kHour,    3 * kHour,    6 * kHour,    12 * kHour};
    for (const int64_t step : kLong)
        if (step >= least) return step;
    for (power = kDay;; power *= 10)
        for (const int64_t factor : {1, 2, 5})
            if (power * factor >= least) return power * factor;
}

std::string value_with_unit(int64_t at_ns, const Unit& unit) {
    if (at_ns == 0) return "0";
    return fmt::format("{:g} {}", static_cast<double>(at_ns) / static_cast<double>(unit.ns), unit.name);
}

}  // namespace

std::vector<Tick> ticks(int64_t end_ns, int most) {
    const int64_t end = std::max<int64_t>(end_ns, 1);
    const int64_t step = round_step(end, std::max(most, 2));
    const Unit unit = unit_for(step, end);
    std::vector<Tick> all;
    for (int64_t at = 0; at <= end; at += step) all.push_back({at, value_with_unit(at, unit)});
    return all;
}

std::string duration(int64_t ns) {
    for (const Unit& unit : {Unit{kDay, "d"}, Unit{kHour, "h"}, Unit{kMinute, "min"}}) {
        if (ns < 2 * unit.ns) continue;
        const Unit smaller = unit.ns == kDay    ? Unit{kHour, "h"}
                             : unit.ns == kHour ? Unit{kMinute, "min"}
                                                : Unit{kSecond, "s"};
        return fmt::format("{} {} {} {}", ns / unit.ns, unit.name, ns % unit.ns / smaller.ns, smaller.name);
    }
    for (const Unit& unit : {Unit{kSecond, "s"}, Unit{kMillisecond, "ms"}, Unit{kMicrosecond, "µs"}}) {
        const double value = static_cast<double>(ns) / static_cast<double>(unit.ns);
        if (value >= 0.9995) return fmt::format("{:.3g} {}", value, unit.name);
    }
    return fmt::format("{} ns", ns);
}

}  // namespace heddle::trace
