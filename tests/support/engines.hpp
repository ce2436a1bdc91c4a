// Tests that run once for each engine; those that are not here are skipped with the reason that heddle gives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "heddle/task.hpp"

namespace heddle::test {

class OnEachEngine : public testing::TestWithParam<const char*> {
  protected:
    OnEachEngine() : engine_(on(GetParam())) {}
    void SetUp() override {
        if (!engine_.available) GTEST_SKIP() << "skipped: " << engine_.reason;
    }
    /// Of the native engine where the test is going to be skipped.
    [[nodiscard]] RuntimeOptions options(int workers = 0) const {
        return {.engine = engine_.available ? engine_.name : "native", .cpus = {}, .workers = workers};
    }

    const EngineInfo engine_;

  private:
    static EngineInfo on(std::string_view name) {
        for (const EngineInfo& one : Runtime::engines())
            if (one.name == name) return one;
        return {std::string(name), false, "", "this build does not know it"};
    }
};

class ARuntimeOnEachEngine : public OnEachEngine {
  protected:
    Runtime runtime_{options()};
};

inline auto engines() {
    return testing::Values("native", "openmp", "openmp-libomp", "tbb", "starpu", "quark", "parsec");
}

/// The others find the order of tasks themselves, and do not say whom one waits for.
inline bool has_heddles_graph(std::string_view engine) {
    return engine == "native" || engine == "tbb" || engine.starts_with("openmp");
}

inline std::string engine_name(const testing::TestParamInfo<const char*>& engine) {
    std::string name = engine.param;
    std::ranges::replace(name, '-', '_');
    return name;
}

}  // namespace heddle::test
