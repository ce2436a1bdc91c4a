// heddle solve, on all engines that there are in one go: a matrix of finite differences, and the same answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "algebra/residual.hpp"
#include "bench/process.hpp"
#include "heddle/task.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

/// The five-point Laplacian of a square grid, with its diagonal moved a little: positive definite.
void write_laplacian(const std::string& file, int edge) {
    std::ofstream out(file);
    const int points = edge * edge;
    out << "%%MatrixMarket matrix coordinate real symmetric\n"
        << points << ' ' << points << ' ' << points + 2 * edge * (edge - 1) << '\n';
    for (int at = 1; at <= points; ++at) {
        out << at << ' ' << at << " 4.01\n";
        if (at % edge != 0) out << at + 1 << ' ' << at << " -1\n";
        if (at + edge <= points) out << at + edge << ' ' << at << " -1\n";
    }
}

TEST(SolveCommand, GivesTheSameAnswerOnAllEnginesInOneGo) {
    const TemporaryFolder folder;
    const std::string file = folder.path() + "/laplacian.mtx";
    write_laplacian(file, 20);
    std::vector<std::string> names;
    std::string engines;
    for (const EngineInfo& engine : Runtime::engines()) {
        if (!engine.available) continue;
        names.push_back(engine.name);
        engines += (engines.empty() ? "" : ",") + engine.name;
    }
    const bench::Command solve{
        {HEDDLE_BUILD_DIR "/bin/heddle", "solve", file, "--tile", "64", "--engine", engines, "--json"},
        {"HEDDLE_ARBITER=off", "XDG_CACHE_HOME=" + folder.path()},
        {}};
    const bench::Outcome outcome = bench::run_together({&solve, 1}, std::chrono::minutes(2)).front();
    if (outcome.errors.find("there is no LAPACK") != std::string::npos)
        GTEST_SKIP() << "skipped: " << outcome.errors;
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto report = nlohmann::json::parse(outcome.output);
    ASSERT_EQ(report["engines"].size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
        const auto& one = report["engines"][i];
        EXPECT_EQ(one["engine"], names[i]);
        // The tiles are updated in the same order whoever runs the tasks.
        EXPECT_EQ(one["difference"], 0.0) << names[i];
        EXPECT_LT(one["residual"], algebra::kResidualLimit) << names[i];
    }
    EXPECT_LT(report["lapack"]["difference"], 1e-10);
}

/// StarPU measures the machine with its first start, and cannot read what another has half written.
TEST(SolveCommand, ManyMayStartStarPuForTheFirstTimeAtOnce) {
    for (const EngineInfo& engine : Runtime::engines())
        if (engine.name == "starpu" && !engine.available) GTEST_SKIP() << "skipped: " << engine.reason;
    for (int round = 0; round < 20; ++round) {
        const TemporaryFolder folder;
        const std::string file = folder.path() + "/laplacian.mtx";
        write_laplacian(file, 4);
        const std::vector<bench::Command> solves(
            8, {{HEDDLE_BUILD_DIR "/bin/heddle", "solve", file, "--engine", "starpu", "--json"},
                {"HEDDLE_ARBITER=off", "XDG_CACHE_HOME=" + folder.path()},
                {}});
        for (const bench::Outcome& outcome : bench::run_together(solves, std::chrono::minutes(1))) {
            if (outcome.errors.find("there is no LAPACK") != std::string::npos)
                GTEST_SKIP() << "skipped: " << outcome.errors;
            EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        }
    }
}

}  // namespace
}  // namespace heddle::test
