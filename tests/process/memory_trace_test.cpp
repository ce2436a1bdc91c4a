// HEDDLE_TRACE of a program on two ranks: what each rank's server did, and that other programs read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "bench/process.hpp"
#include "support/temporary_folder.hpp"
#include "trace/reader.hpp"
#include "trace/timeline.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;

Outcome run(std::vector<std::string> argv, std::vector<std::string> environment = {}) {
    const bench::Command command{std::move(argv), std::move(environment), {}};
    return bench::run_together({&command, 1}, std::chrono::seconds(120)).front();
}

bool has(const std::string& program) {
    return run({"sh", "-c", "command -v " + program}).exit_code == 0;
}

TEST(MemoryTrace, OfEachRankIsReadByPajengAndOthers) {
    const test::TemporaryFolder folder;
    const Outcome solved =
        run({HEDDLE_BUILD_DIR "/bin/heddle", "memory", "launch", "-n", "2", "--",
             HEDDLE_BUILD_DIR "/examples/jacobi/jacobi", "--n", "64", "--iterations", "20"},
            {"HEDDLE_ARBITER=off", "HEDDLE_TRACE=" + folder.path() + "/rank-%p.jsonl"});
    ASSERT_EQ(solved.exit_code, 0) << solved.errors;
    std::set<std::string> names, waits;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        const std::string trace = entry.path();
        if (!trace.ends_with(".jsonl")) continue;
        ++files;
        const trace::Timeline timeline(trace::read_file(trace));
        EXPECT_EQ(timeline.dropped, 0);
        for (const trace::Work& work : timeline.work)
            (work.kind == trace::SpanKind::kWait ? waits : names).insert(work.name);
        for (const char* form : {"chrome", "paje"}) {
            const Outcome converted = run({HEDDLE_BUILD_DIR "/bin/heddle", "trace", "convert", "--to", form,
                                           "-o", trace + "." + form, trace});
            EXPECT_EQ(converted.exit_code, 0) << converted.errors;
        }
        if (has("pj_dump")) {
            const Outcome dump = run({"pj_dump", trace + ".paje"});
            EXPECT_EQ(dump.exit_code, 0) << dump.errors;
            EXPECT_THAT(dump.output, testing::HasSubstr("memory client 1"));
        }
        if (has("pj_validate")) {
            EXPECT_EQ(run({"pj_validate", trace + ".paje"}).exit_code, 0);
        }
    }
    EXPECT_EQ(files, 2) << "of the ranks";
    EXPECT_THAT(names, testing::Contains(testing::HasSubstr("a miss")));
    EXPECT_THAT(names, testing::Contains(testing::StartsWith("read shm of rank ")));
    EXPECT_THAT(names, testing::Contains(testing::StartsWith("write shm of rank ")));
    EXPECT_THAT(waits, testing::Contains(testing::StartsWith("consent of rank ")));
}

}  // namespace
}  // namespace heddle::test
