#include "cores/client_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/cpu_list.h"
#include "base/settings.hpp"
#include "cores/arbiter_path.h"
#include "cores/codec.hpp"
#include "heddle/error.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

constexpr int kMostWeight = 1000;

[[noreturn]] void refuse(std::string_view name, std::string_view meant, std::string_view value) {
    throw Error(ErrorCode::kBadInput, fmt::format("{} has to be {}, not '{:.40}'", name, meant, value));
}

int number_from(std::string_view name, int low, int high, int otherwise) {
    const std::string text = setting(name);
    if (text.empty()) return otherwise;
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (errno != 0 || end == text.c_str() || *end != '\0' || value < low || value > high)
        refuse(name, fmt::format("a number from {} to {}", low, high), text);
    return static_cast<int>(value);
}

}  // namespace

void check_client_settings() {
    char problem[HEDDLE_PROBLEM_BYTES];
    if (!heddle_arbiter_named_well(problem)) throw Error(ErrorCode::kBadInput, problem);
    const std::string mode = setting("HEDDLE_MODE");
    if (!mode.empty() && mode != "auto" && mode != "threads" && mode != "mask")
        refuse("HEDDLE_MODE", "auto, threads or mask", mode);
    (void)with_settings({});
}

ArbiterClientOptions with_settings(ArbiterClientOptions options) {
    if (options.name.empty()) options.name = setting("HEDDLE_NAME");
    if (options.name.empty()) options.name = program_invocation_short_name;
    options.min = number_from("HEDDLE_MIN", 0, HEDDLE_MAX_CPUS, options.min);
    options.max = number_from("HEDDLE_MAX", 0, HEDDLE_MAX_CPUS, options.max);
    options.weight = number_from("HEDDLE_WEIGHT", 1, kMostWeight, options.weight);
    if (options.allowed.empty()) options.allowed = affinity_if_known();
    if (const std::string own = setting("HEDDLE_OWN"); !own.empty()) {
        heddle_mask mask{};
        if (!heddle_read_cpu_list(own.c_str(), mask.words, HEDDLE_MAX_CPUS))
            refuse("HEDDLE_OWN", fmt::format("a list of CPUs below {}, as 0-3,8", int{HEDDLE_MAX_CPUS}), own);
        options.owned = cpus_of(mask);
    }
    const auto counts = {options.demand, options.min, options.max};
    if (std::ranges::any_of(counts, [](int n) { return n < 0 || n > HEDDLE_MAX_CPUS; }) ||
        (options.max != 0 && options.min > options.max) || options.weight < 1 || options.weight > kMostWeight)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("demand {}, min {}, max {}, weight {}: use counts of CPUs up to {}, min <= "
                                "max, and a weight of 1 to {}",
                                options.demand, options.min, options.max, options.weight,
                                int{HEDDLE_MAX_CPUS}, kMostWeight));
    return options;
}

}  // namespace heddle
