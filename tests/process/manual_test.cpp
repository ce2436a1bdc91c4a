// The manual names every variable of the settings table and every option of the programs it describes, and
// each name leads to its page.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/settings.hpp"
#include "support/temporary_folder.hpp"

namespace {

std::string page(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(HEDDLE_TEST_DATA "/../packaging/man/" + name).rdbuf();
    return text.str();
}

std::string output(const std::string& command) {
    std::string text;
    std::array<char, 4096> block;
    FILE* pipe = popen((HEDDLE_BUILD_DIR "/bin/" + command).c_str(), "r");
    if (pipe == nullptr) return text;
    for (size_t count = 0; (count = fread(block.data(), 1, block.size(), pipe)) > 0;)
        text.append(block.data(), count);
    pclose(pipe);
    return text;
}

void expect_options_described(const std::string& command, const std::string& manual) {
    const std::string help = output(command + " --help");
    const std::regex option("--[a-z][a-z-]*");
    std::set<std::string> options(std::sregex_token_iterator(help.begin(), help.end(), option), {});
    EXPECT_FALSE(options.empty()) << command;
    options.erase("--help");
    options.erase("--version");
    for (const std::string& name : options)
        EXPECT_NE(page(manual).find("*" + name), std::string::npos) << manual << " lacks " << name;
}

}  // namespace

TEST(Manual, NamesEveryVariable) {
    const std::string manual = page("heddle.1.scd");
    for (const heddle::Setting& setting : heddle::settings())
        EXPECT_NE(manual.find("*" + std::string(setting.name) + "*"), std::string::npos) << setting.name;
}

TEST(Manual, NamesNoVariableThatIsNone) {
    std::set<std::string> known;
    for (const heddle::Setting& setting : heddle::settings()) known.insert(std::string(setting.name));
    for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TEST_DATA "/../packaging/man")) {
        const std::string manual = page(entry.path().filename());
        const std::regex variable("\\*(HEDDLE_[A-Z_]+)\\*");
        for (std::sregex_iterator found(manual.begin(), manual.end(), variable);
             found != std::sregex_iterator(); ++found)
            EXPECT_TRUE(known.contains((*found)[1])) << entry.path() << ": " << (*found)[1];
    }
}

TEST(Manual, NamesEveryCommand) {
    const std::string help = output("heddle --help");
    const std::string list = help.substr(help.find("Subcommands:"));
    const std::string manual = page("heddle.1.scd");
    const std::regex command("\n  ([a-z]+) ");
    int count = 0;
    for (std::sregex_iterator found(list.begin(), list.end(), command); found != std::sregex_iterator();
         ++found) {
        ++count;
        EXPECT_NE(manual.find("\n*" + std::string((*found)[1]) + "*\n"), std::string::npos) << (*found)[1];
    }
    EXPECT_GE(count, 7);
}

/// What a page names itself, and what pages refer to, is a page that `man` finds.
TEST(Manual, HasAPageForEachName) {
    const std::filesystem::path built = HEDDLE_BUILD_DIR "/packaging/man";
    if (!std::filesystem::exists(built / "heddle.1")) GTEST_SKIP() << "scdoc is not installed";
    int count = 0;
    const auto expect_page = [&](const std::string& name, const std::string& from) {
        ++count;
        EXPECT_TRUE(std::filesystem::exists(built / name)) << from << " names " << name;
    };
    for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TEST_DATA "/../packaging/man")) {
        const std::string from = entry.path().stem(), manual = page(entry.path().filename());
        const std::string names = manual.substr(0, manual.find(" - "));
        const std::regex own("\\bheddle[a-z-]*(?=,|$)"), other("\\*(heddle[a-z-]*)\\*\\(([0-9])\\)");
        const std::string line = names.substr(names.rfind('\n') + 1);
        for (std::sregex_iterator found(line.begin(), line.end(), own); found != std::sregex_iterator();
             ++found)
            expect_page(found->str() + from.substr(from.rfind('.')), from);
        for (std::sregex_iterator found(manual.begin(), manual.end(), other); found != std::sregex_iterator();
             ++found)
            expect_page((*found)[1].str() + "." + (*found)[2].str(), from);
    }
    EXPECT_GE(count, 30);
}

TEST(Manual, NamesEveryOption) {
    const heddle::test::TemporaryFolder folder;
    ::setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
    ::setenv("HEDDLE_ARBITER", "auto", 1);
    expect_options_described("heddle status", "heddle-status.1.scd");
    expect_options_described("heddle top", "heddle-status.1.scd");
    for (const char* command : {"record", "convert", "draw", "summary"})
        expect_options_described(std::string("heddle trace ") + command, "heddle-trace.1.scd");
    expect_options_described("heddle bench", "heddle-bench.1.scd");
    expect_options_described("heddle demo", "heddle-bench.1.scd");
    expect_options_described("heddle info", "heddle-info.1.scd");
    expect_options_described("heddle solve", "heddle-solve.1.scd");
    expect_options_described("heddle eigen", "heddle-eigen.1.scd");
    expect_options_described("heddle run", "heddle-run.1.scd");
    expect_options_described("heddle start", "heddle.1.scd");
    for (const char* command : {"launch", "serve", "status", "put", "get", "free", "checkpoint", "restore"})
        expect_options_described(std::string("heddle memory ") + command, "heddle-memory.1.scd");
    for (const char* command : {"run", "check", "graph", "explain", "serve"})
        expect_options_described(std::string("heddle snet ") + command, "heddle-snet.1.scd");
    expect_options_described("heddled", "heddled.8.scd");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "who asks for help needs no arbiter";
}
