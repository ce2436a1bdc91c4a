// Transcripts: tests/golden/FOLDER/NAME.transcript holds shell commands, each after "$ ", with what they
// print (stdout and stderr together) and, where it is not 0, the exit code as "[exit N]". VERSION stands for
// the version. What a sanitizer would do in another way is in a NAME.unsanitized.transcript: its own handlers
// of signals, and pipes to look at memory. UPDATE_GOLDEN=1 in the environment writes what was printed into
// the files instead; read the difference.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/sanitized.hpp"

namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

/// The transcript that a command makes now, run in the folder of its file.
std::string transcript(const std::string& command, const fs::path& folder) {
    const std::string line = "cd '" + folder.string() +
                             "' && export PATH='" HEDDLE_BUILD_DIR "/bin':\"$PATH\" && { " + command +
                             "\n} 2>&1 </dev/null";
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return "cannot run a shell\n";
    std::string text;
    std::array<char, 4096> block;
    for (size_t count = 0; (count = fread(block.data(), 1, block.size(), pipe)) > 0;)
        text.append(block.data(), count);
    const int status = pclose(pipe);
    text = replaced(std::move(text), HEDDLE_VERSION, "VERSION");
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        text += "[exit " + std::to_string(WEXITSTATUS(status)) + "]\n";
    if (WIFSIGNALED(status)) text += "[signal " + std::to_string(WTERMSIG(status)) + "]\n";
    return "$ " + command + "\n" + text;
}

void check(const fs::path& file) {
    std::ifstream input(file);
    std::ostringstream content;
    content << input.rdbuf();
    const std::string expected = content.str();
    std::string actual;
    std::istringstream lines(expected);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#")) actual += line + "\n";
        if (line.starts_with("$ ")) actual += transcript(line.substr(2), file.parent_path());
    }
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
        std::ofstream(file) << actual;
        return;
    }
    EXPECT_EQ(actual, expected) << file;
}

}  // namespace

TEST(Golden, TheCommandLinePrintsWhatItsTranscriptsShow) {
    unsetenv("HEDDLE_TOPOLOGY");
    setenv("LC_ALL", "C", 1);
    // Which engines there are besides our own is another question on each machine.
    setenv("HEDDLE_PLUGINS", "/nowhere", 1);
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(HEDDLE_TEST_DATA "/golden")) {
        if (entry.path().extension() != ".transcript") continue;
        if (heddle::test::kSanitized && entry.path().stem().extension() == ".unsanitized") continue;
        check(entry.path());
        ++files;
    }
    EXPECT_GT(files, 0);
}
