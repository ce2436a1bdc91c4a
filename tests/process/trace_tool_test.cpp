// `heddle trace` from outside: what it prints, its exit codes, and that other programs read what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden.hpp"

using testing::HasSubstr;

namespace {

constexpr const char* kTrace = HEDDLE_TEST_DATA "/golden/trace/two_programs.jsonl";
constexpr const char* kOwners = HEDDLE_TEST_DATA "/golden/trace/owners.jsonl";

struct Outcome {
    int status = -1;
    std::string output;  // stdout and stderr
};

Outcome run(const std::string& command) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> chunk{};
    for (size_t count; (count = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
        outcome.output.append(chunk.data(), count);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

Outcome heddle_trace(const std::string& arguments) {
    return run(std::string(HEDDLE_BUILD_DIR "/bin/heddle trace ") + arguments);
}

struct TraceTool : testing::Test {
    TraceTool() { std::filesystem::create_directories(folder); }
    ~TraceTool() override { std::filesystem::remove_all(folder); }
    std::string folder = testing::TempDir() + "heddle_trace_tool_" + std::to_string(getpid()) + "/";
};

}  // namespace

TEST_F(TraceTool, DrawsAsTheLibraryDoes) {
    EXPECT_EQ(heddle_trace(std::string("draw ") + kTrace).output,
              heddle::test::file_text(HEDDLE_TEST_DATA "/golden/trace/two_programs.svg"));
    EXPECT_EQ(heddle_trace(std::string("draw --text --ascii --width 72 ") + kTrace).output,
              heddle::test::file_text(HEDDLE_TEST_DATA "/golden/trace/two_programs.ascii.txt"));
    EXPECT_EQ(heddle_trace("draw --title '<Title>' -o " + folder + "t.svg " + kTrace).status, 0);
    EXPECT_THAT(heddle::test::file_text(folder + "t.svg"), HasSubstr("&lt;Title&gt;"));
}

TEST_F(TraceTool, ConvertsToEachFormat) {
    const auto chrome = heddle_trace(std::string("convert --to chrome ") + kOwners);
    EXPECT_EQ(chrome.status, 0);
    EXPECT_TRUE(nlohmann::json::parse(chrome.output).contains("traceEvents"));
    EXPECT_EQ(heddle_trace("convert --to paraver -o " + folder + "t.prv " + kOwners).status, 0);
    for (const char* kind : {"prv", "pcf", "row"})
        EXPECT_EQ(heddle::test::file_text(folder + "t." + kind),
                  heddle::test::file_text(HEDDLE_TEST_DATA "/golden/trace/owners." + std::string(kind)));
}

TEST_F(TraceTool, SummaryIsTextOrJson) {
    EXPECT_THAT(heddle_trace(std::string("summary ") + kTrace).output, HasSubstr("gm convert"));
    const auto sum = nlohmann::json::parse(heddle_trace(std::string("summary --json ") + kOwners).output);
    EXPECT_EQ(sum.at("cpus"), 8);
    EXPECT_EQ(sum.at("clients").size(), 2U);
    EXPECT_GT(sum.at("lent_s").get<double>(), 0);
    EXPECT_FALSE(sum.at("truncated").get<bool>());
    std::filesystem::copy_file(kOwners, folder + "cut.jsonl");
    std::ofstream(folder + "cut.jsonl", std::ios::app)
        << R"({"t":999999999999,"e":"mark","text":"truncated"})" << '\n';
    EXPECT_TRUE(nlohmann::json::parse(heddle_trace("summary --json " + folder + "cut.jsonl").output)
                    .at("truncated")
                    .get<bool>());
}

TEST_F(TraceTool, AWaitThatIsTooShortToBeDrawnIsLeftOut) {
    std::ofstream(folder + "short.jsonl")
        << R"({"heddle_trace":1,"machine":"m","start_ns":0,"cpus":[[0,0,0,0]]}
{"t":0,"e":"join","c":1,"pid":1,"name":"a"}
{"t":999999999999999000,"e":"wait","c":1,"n":1}
{"t":999999999999999001,"e":"wait","c":1,"n":0}
{"t":1000000000000000000,"e":"mark","text":"end"}
)";
    for (const char* how : {"--text --ascii ", "--text "}) {
        const Outcome drawn = heddle_trace(std::string("draw ") + how + folder + "short.jsonl");
        EXPECT_EQ(drawn.status, 0) << drawn.output;
        EXPECT_THAT(drawn.output, HasSubstr("a ")) << how;
    }
}

// pajeng refuses what does not follow the Paje definitions. pj_validate, where it is installed, is stricter.
TEST_F(TraceTool, PajengReadsThePajeTrace) {
    if (run("command -v pj_dump").status != 0) GTEST_SKIP() << "pj_dump of Debian's pajeng is not installed";
    const bool validate = run("command -v pj_validate").status == 0;
    for (const std::string trace : {kTrace, kOwners}) {
        ASSERT_EQ(heddle_trace("convert --to paje -o " + folder + "t.paje " + trace).status, 0);
        const Outcome dump = run("pj_dump " + folder + "t.paje");
        EXPECT_EQ(dump.status, 0) << dump.output;
        EXPECT_THAT(dump.output, HasSubstr("State, CPU 0, User, "));
        if (validate) {
            EXPECT_EQ(run("pj_validate " + folder + "t.paje").status, 0);
        }
    }
    const std::string dump = run("pj_dump " + folder + "t.paje").output;
    EXPECT_THAT(dump, HasSubstr("0.004500, 0.005500, 0.001000, 0.000000, potrf"));
    EXPECT_THAT(dump, HasSubstr("inner"));
    std::ofstream(folder + "broken.paje")
        << heddle::test::file_text(folder + "t.paje") << "7 0.5 USER p99 u0\n";
    EXPECT_NE(run("pj_dump " + folder + "broken.paje").status, 0) << "the check itself can fail";
}

TEST_F(TraceTool, BadInputGetsOneLineAndItsExitCode) {
    const std::string own = folder + "own.jsonl";
    std::filesystem::copy_file(kOwners, own);
    for (const std::string how : {"convert --to chrome -o ", "draw -o "}) {
        const Outcome over = heddle_trace(how + own + " " + own);
        EXPECT_EQ(over.status, 2);
        EXPECT_THAT(over.output, HasSubstr("own.jsonl is the trace itself: name another file with --out"));
    }
    EXPECT_EQ(heddle::test::file_text(own), heddle::test::file_text(kOwners));
    const Outcome missing = heddle_trace("draw " + folder + "none.jsonl");
    EXPECT_EQ(missing.status, 1);
    EXPECT_THAT(missing.output, HasSubstr("none.jsonl: cannot read the trace: No such file"));
    EXPECT_EQ(std::count(missing.output.begin(), missing.output.end(), '\n'), 1);

    std::ofstream(folder + "bad.jsonl") << heddle::test::file_text(kTrace) << "{\"t\":1,\"e\":\"explode\"}\n";
    const Outcome malformed = heddle_trace("convert --to chrome " + folder + "bad.jsonl");
    EXPECT_EQ(malformed.status, 1);
    EXPECT_THAT(malformed.output, HasSubstr("bad.jsonl:69: \"e\" is none of"));

    std::ofstream(folder + "torn.jsonl") << heddle::test::file_text(kTrace) << "{\"t\":1,\"e\":\"mar";
    const Outcome torn = heddle_trace("summary " + folder + "torn.jsonl");
    EXPECT_EQ(torn.status, 0);
    EXPECT_THAT(torn.output, HasSubstr("torn.jsonl:69: the last line is torn"));

    EXPECT_EQ(heddle_trace(std::string("convert --to gif ") + kTrace).status, 2);
    EXPECT_EQ(heddle_trace(std::string("convert --to paraver ") + kTrace).status, 2)
        << "three files need a name";
    EXPECT_EQ(heddle_trace(std::string("draw --ascii ") + kTrace).status, 2) << "only a text can be ASCII";
    EXPECT_EQ(heddle_trace("").status, 2);
    EXPECT_EQ(heddle_trace("draw " + folder).status, 1) << "a folder is no trace";
    EXPECT_EQ(heddle_trace(std::string("draw -o /dev/full ") + kTrace).status, 1);
    EXPECT_EQ(heddle_trace("draw -o " + folder + "no/such/t.svg " + kTrace).status, 1);
}
