// heddle top on a terminal of the test's own: it draws until q, within the window, and leaves the terminal as
// it was; on one that cannot be drawn on it prints lines.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "support/daemon.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

class Terminal {
  public:
    Terminal(const Daemon& daemon, const char* type, unsigned short columns, unsigned short rows,
             std::vector<const char*> words = {"top"}) {
        const winsize window{rows, columns, 0, 0};
        child_ = ::forkpty(&master_, nullptr, nullptr, &window);
        if (child_ == 0) {
            ::setenv("TERM", type, 1);
            ::setenv("HEDDLE_ARBITER", daemon.path().c_str(), 1);
            words.insert(words.begin(), "heddle");
            words.push_back(nullptr);
            ::execv(kHeddle.c_str(), const_cast<char**>(words.data()));
            ::_exit(127);
        }
    }
    ~Terminal() {
        if (child_ > 0) ::kill(child_, SIGKILL);
        if (child_ > 0) ::waitpid(child_, nullptr, 0);
        ::close(master_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    /// Reads until `text` was said `times` times. False where the program ended before.
    bool reads(const std::string& text, int times = 1) {
        const auto found = [&] {
            int count = 0;
            for (size_t at = 0; (at = said_.find(text, at)) != std::string::npos; ++at) ++count;
            return count >= times;
        };
        while (!found())
            if (!read_more()) return false;
        return true;
    }
    void type(const std::string& keys) { (void)!::write(master_, keys.data(), keys.size()); }
    bool echoes() const {
        termios state{};
        ::tcgetattr(master_, &state);
        return (state.c_lflag & ECHO) != 0;
    }
    void signal(int number) const { ::kill(child_, number); }
    /// The exit status, once all that it says is read.
    int end() {
        while (read_more()) {
        }
        int status = 0;
        ::waitpid(child_, &status, 0);
        child_ = -1;
        return status;
    }
    [[nodiscard]] const std::string& said() const { return said_; }

  private:
    bool read_more() {
        char block[4096];
        pollfd ready{master_, POLLIN, 0};
        if (::poll(&ready, 1, 60'000) != 1) return false;
        const ssize_t got = ::read(master_, block, sizeof block);
        if (got <= 0) return false;
        said_.append(block, static_cast<size_t>(got));
        return true;
    }

    int master_ = -1;
    pid_t child_ = -1;
    std::string said_;
};

class TopTerminal : public testing::Test {
  protected:
    TopTerminal() { EXPECT_TRUE(client_.join(hello_of("a weaver with a long name", 4))); }

    Daemon daemon_{{"numa:2 core:64 pu:2", {}, {}}};
    WireClient client_{daemon_.path()};
};

TEST_F(TopTerminal, DrawsAgainAndAgainUntilQ) {
    Terminal terminal(daemon_, "xterm", 80, 24);
    ASSERT_TRUE(terminal.reads("\x1b[H", 3));
    EXPECT_TRUE(terminal.reads("a weaver with a long"));
    EXPECT_FALSE(terminal.echoes());
    terminal.type("q");
    EXPECT_EQ(terminal.end(), 0);
    EXPECT_TRUE(terminal.said().ends_with("\x1b[?25h\x1b[?1049l")) << "the terminal is as it was";
}

TEST_F(TopTerminal, StaysWithinASmallWindow) {
    constexpr size_t kColumns = 30, kRows = 12;
    Terminal terminal(daemon_, "xterm", kColumns, kRows);
    ASSERT_TRUE(terminal.reads("\x1b[H", 2));
    terminal.type("q");
    EXPECT_EQ(terminal.end(), 0);
    const size_t begin = terminal.said().find("\x1b[H");
    std::string page = terminal.said().substr(begin, terminal.said().find("\x1b[H", begin + 1) - begin);
    page = std::regex_replace(page, std::regex("\x1b\\[[0-9;?]*[A-Za-z]|\r"), "");
    size_t rows = 0;
    for (size_t at = 0, end = 0; at < page.size(); at = end + 1, ++rows) {
        end = std::min(page.find('\n', at), page.size());
        EXPECT_LE(end - at, kColumns) << page.substr(at, end - at);
    }
    EXPECT_LT(rows, kRows);
    EXPECT_GT(rows, 2U);
}

TEST_F(TopTerminal, GivesTheTerminalBackWhileItIsStopped) {
    Terminal terminal(
        daemon_, "xterm", 80, 24,
        {"run", "--", "sh", "-mc", HEDDLE_BUILD_DIR "/bin/heddle top; echo stopped; stty -a; fg"});
    ASSERT_TRUE(terminal.reads("\x1b[H", 2));
    EXPECT_FALSE(terminal.echoes());
    terminal.type("\x1a");
    ASSERT_TRUE(terminal.reads("stopped"));
    EXPECT_TRUE(terminal.reads(" echo "));
    EXPECT_LT(terminal.said().find("\x1b[?25h\x1b[?1049l"), terminal.said().find("stopped"));
    EXPECT_TRUE(terminal.reads("\x1b[?1049h", 2)) << "it draws again";
    terminal.type("q");
    EXPECT_EQ(terminal.end(), 0);
}

TEST_F(TopTerminal, GoesOnWhereNobodyCouldContinueIt) {
    Terminal terminal(daemon_, "xterm", 80, 24);
    ASSERT_TRUE(terminal.reads("\x1b[H", 2));
    terminal.type("\x1a");
    EXPECT_TRUE(terminal.reads("\x1b[?1049h", 2));
    terminal.type("q");
    EXPECT_EQ(terminal.end(), 0);
}

TEST_F(TopTerminal, LeavesTheTerminalAsItWasWhateverEndsIt) {
    for (const char* const key : {"\x03", "\x1c"}) {
        Terminal terminal(daemon_, "xterm", 80, 24);
        ASSERT_TRUE(terminal.reads("\x1b[H", 2));
        terminal.type(key);
        EXPECT_EQ(terminal.end(), 0);
        EXPECT_TRUE(terminal.said().ends_with("\x1b[?25h\x1b[?1049l"));
    }
}

TEST_F(TopTerminal, RanksGetWhatATerminalSendsOnce) {
    Terminal terminal(daemon_, "xterm", 80, 24,
                      {"memory", "launch", "-n", "1", "--", HEDDLE_BUILD_DIR "/tests/programs/signals"});
    ASSERT_TRUE(terminal.reads("ready"));
    terminal.type("\x03");
    ASSERT_TRUE(terminal.reads("from the terminal"));
    terminal.signal(SIGTERM);
    EXPECT_EQ(terminal.end(), 0) << "what a process sends is passed on";
    EXPECT_EQ(terminal.said().find("from a process"), std::string::npos) << terminal.said();
}

TEST_F(TopTerminal, PrintsLinesWhereNothingCanBeDrawn) {
    Terminal terminal(daemon_, "dumb", 80, 24);
    ASSERT_TRUE(terminal.reads("a weaver with a long"));
    terminal.type("\x03");
    (void)terminal.end();
    EXPECT_EQ(terminal.said().find('\x1b'), std::string::npos) << terminal.said();
}

}  // namespace
}  // namespace heddle::test
