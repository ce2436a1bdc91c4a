// What tasks took: learned, kept in a file, and not confused by outliers and broken files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <thread>

#include "base/temporary_folder.hpp"
#include "bench/devices_mix.hpp"
#include "devices/cost_model.hpp"
#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using ::testing::HasSubstr;

class DeviceCostsFile : public ::testing::Test {
  protected:
    void write(const std::string& text) const { std::ofstream(path_) << text; }
    [[nodiscard]] std::string text() const {
        std::ostringstream all;
        all << std::ifstream(path_).rdbuf();
        return all.str();
    }

    TemporaryFolder folder_{"/tmp/heddle-costs-"};
    std::string path_ = folder_.path() + "/costs";
    DeviceInfo gpu_{.name = "gpu", .kind = "simulated", .version = "1", .reason = "", .platform = "p"};
};

TEST_F(DeviceCostsFile, AnOutlierAndTheFirstLaunchChangeNoEstimate) {
    CostModel model("");
    DeviceCosts& costs = model.of(gpu_);
    EXPECT_FALSE(costs.estimate_us(7).has_value());
    costs.add(7, 5000, true);
    EXPECT_FALSE(costs.estimate_us(7).has_value());
    for (const double us : {10.0, 11.0, 1000.0, 9.0, 10.0}) costs.add(7, us, true);
    EXPECT_DOUBLE_EQ(costs.estimate_us(7).value(), 10.0);
    EXPECT_FALSE(costs.estimate_us(8).has_value());
}

/// As some languages write numbers.
class PointsBetweenThousands final : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

TEST_F(DeviceCostsFile, CostsAreTheSameInEachLanguage) {
    RunTimes times;
    times.add(123.456);
    const std::locale before = std::locale::global(std::locale(std::locale(), new PointsBetweenThousands));
    const std::optional<RunTimes> parsed = RunTimes::parse(times.text());
    std::locale::global(before);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_DOUBLE_EQ(*parsed->median(), 123.456);
}

TEST_F(DeviceCostsFile, TheNextProcessKnowsWhatThisOneMeasured) {
    {
        CostModel model(path_);
        model.of(gpu_).add(7, 10, false);
        model.save();
    }
    CostModel model(path_);
    EXPECT_EQ(model.problem(), "");
    EXPECT_DOUBLE_EQ(model.of(gpu_).estimate_us(7).value(), 10.0);
    DeviceInfo newer = gpu_;
    newer.version = "2";
    EXPECT_FALSE(model.of(newer).estimate_us(7).has_value());
}

TEST_F(DeviceCostsFile, WhatOthersMeasureMeanwhileIsKept) {
    {
        CostModel before(path_);
        before.of(gpu_).add(1, 10, false);
        before.save();
    }
    CostModel first(path_), second(path_);
    first.of(gpu_).add(7, 10, false);
    second.of(gpu_).add(8, 20, false);
    first.of(gpu_).add(1, 30, false);
    first.save();
    second.save();
    CostModel model(path_);
    EXPECT_DOUBLE_EQ(model.of(gpu_).estimate_us(7).value(), 10.0);
    EXPECT_DOUBLE_EQ(model.of(gpu_).estimate_us(8).value(), 20.0);
    EXPECT_THAT(text(), HasSubstr("10 30")) << "what the second one had only read is the first one's";
}

TEST_F(DeviceCostsFile, WhereNoneCanBeWrittenIsTold) {
    const std::string file = folder_.path() + "/file";
    std::ofstream(file) << "nothing of ours";
    for (const std::string& path : {file + "/costs", folder_.path() + "/" + std::string(300, 'a')})
        EXPECT_THAT(CostModel(path).problem(), HasSubstr("costs of devices are not kept: ")) << path;
    EXPECT_EQ(CostModel(folder_.path() + "/new/costs").problem(), "");
}

TEST_F(DeviceCostsFile, WhatNobodyUsesAnyMoreIsForgottenFirst) {
    constexpr auto kMost = static_cast<Signature>(CostModel::kMost);
    {
        CostModel model(path_);
        for (Signature one = 0; one < kMost; ++one) model.of(gpu_).add(one, 10, false);
        model.save();
    }
    {
        CostModel model(path_);
        model.of(gpu_).add(7, 20, false);
        for (Signature one = kMost; one < kMost + 100; ++one) model.of(gpu_).add(one, 10, false);
        model.save();
    }
    const std::string all = text();
    EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), CostModel::kMost + 2);
    CostModel model(path_);
    EXPECT_TRUE(model.of(gpu_).estimate_us(7).has_value());
    EXPECT_TRUE(model.of(gpu_).estimate_us(kMost + 99).has_value());
    // Of the first process 7 was used again, and those that came last are left.
    EXPECT_TRUE(model.of(gpu_).estimate_us(kMost - 1).has_value());
    EXPECT_FALSE(model.of(gpu_).estimate_us(0).has_value());
    EXPECT_FALSE(model.of(gpu_).estimate_us(100).has_value());
    EXPECT_TRUE(model.of(gpu_).estimate_us(101).has_value());
}

TEST_F(DeviceCostsFile, RuntimesOfAProcessThatEndAtOnceLeaveAWholeFile) {
    for (int round = 0; round < 10; ++round) {
        {
            std::barrier all(4);
            std::vector<std::jthread> threads;
            for (unsigned thread = 0; thread < 4; ++thread)
                threads.emplace_back([&, thread] {
                    CostModel model(path_);
                    for (Signature task = 0; task < 2'000 * (thread + 1); ++task)
                        model.of(gpu_).add(task, 10, false);
                    all.arrive_and_wait();
                    model.save();
                });
        }
        ASSERT_EQ(CostModel(path_).problem(), "");
        ASSERT_EQ(text().find("\nend\n"), text().size() - 5) << "one of them, whole";
    }
    const std::filesystem::directory_iterator files(folder_.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "nothing else is left";
}

TEST_F(DeviceCostsFile, AForeignOrBrokenFileIsLeftAloneAndToldOnce) {
    for (const char* bad :
         {"[colour]\nred=1\n", "heddle device costs 1\np/gpu/1\t7\tten\nend\n",
          "heddle device costs 1\np/gpu/1\t7\t10\n", "heddle device costs 1\n\nend\n",
          "heddle device costs 1\np/gpu/1\t7\t-1\nend\n", "heddle device costs 1\nend\nend\n",
          "heddle device costs 1\np/gpu/1\t7\t10\nend\np/gpu/1\t8\t10\n",
          "\x7f"
          "ELF"}) {
        write(bad);
        {
            DeviceRuntime runtime(
                {.kinds = {}, .simulated = test::two_simulated(), .scheduler = {}, .costs_file = path_});
            EXPECT_THAT(runtime.warnings(), ::testing::ElementsAre(HasSubstr("ignored; delete it"))) << bad;
        }
        EXPECT_EQ(text(), bad);
    }
}

TEST_F(DeviceCostsFile, WithoutEstimatesTheSecondRunIsAsGoodAsOneThatKnows) {
    double known = 0, learned = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::remove(path_.c_str());
        const auto kinds = bench::unequal_mix(seed, 8);
        known += bench::learned_makespan("heft", kinds, true, "");
        (void)bench::learned_makespan("heft", kinds, false, path_);
        learned += bench::learned_makespan("heft", kinds, false, path_);
    }
    EXPECT_LE(learned, 1.10 * known);
}

}  // namespace
}  // namespace heddle::devices
