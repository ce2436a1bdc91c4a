// `heddle snet run` and signals: the first one ends the input, the second one drops what is under way, and
// the third one the process. And what is told of the records that a failure drops.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include "golden.hpp"
#include "support/child.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

/// A run whose input comes by a pipe that stays open, and whose box says when it was called first, goes on
/// when it may, and sends the one variant that it has, or tries to send another. Records with <c> pass by.
class HeldRun {
  public:
    explicit HeldRun(bool waits, int variant = 1) {
        const std::string wait = fmt::format(
            "extern int creat(const char *, unsigned); extern int close(int);\n"
            "extern int access(const char *, int); extern int usleep(unsigned);\n"
            "close(creat(\"{0}/called\", 0600));\n"
            "while (access(\"{0}/go\", 0) != 0) usleep(1000);\n",
            work_.path());
        std::ofstream(work_.path() + "/net.snet") << "box hold ((<a>) -> (<a>)) { <<< C |\n"
                                                  << (waits ? wait : "") << "C4SNetOut(hnd, " << variant
                                                  << ", a); >>> }\nnet n connect hold | [{<c>} -> {<c>}];\n";
        EXPECT_EQ(::mkfifo((work_.path() + "/in").c_str(), 0600), 0);
        input_ = Descriptor(::open((work_.path() + "/in").c_str(), O_RDWR | O_CLOEXEC));
        child_ = Child({HEDDLE_BUILD_DIR "/bin/heddle", "snet", "run", work_.path() + "/net.snet", "-i",
                        work_.path() + "/in", "-o", work_.path() + "/out", "--format", "json"},
                       {}, -1, work_.path() + "/said");
    }
    void write(const std::string& text) const {
        ASSERT_EQ(::write(input_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] bool comes(const std::string& file, const std::string& text) const {
        const std::string path = work_.path() + "/" + file;
        return becomes_true(
            [&] { return fs::exists(path) && file_text(path).find(text) != std::string::npos; }, 60s);
    }
    void let_go() const { std::ofstream(work_.path() + "/go") << "go"; }
    [[nodiscard]] std::string text(const std::string& file) const {
        return file_text(work_.path() + "/" + file);
    }
    Child& child() { return child_; }

  private:
    TemporaryFolder work_;
    Descriptor input_;
    Child child_;
};

TEST(SnetSignalsTest, TheFirstEndsTheInputAndAllThatIsUnderWayComesOut) {
    HeldRun run(true);
    run.write("{\"<a>\": 1}\n{\"<a>\": 2}\n{\"<a>\": 3");  // the last one is torn
    ASSERT_TRUE(run.comes("called", ""));
    run.child().signal(SIGTERM);
    ASSERT_TRUE(run.comes("said", "SIGTERM: no more records are read")) << run.text("said");
    EXPECT_TRUE(run.child().running());
    run.let_go();
    ASSERT_TRUE(run.child().ends_within(60s));
    const int status = run.child().reap();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM) << run.text("said");
    // The second one may not have been read yet.
    std::smatch counts;
    const std::string said = run.text("said");
    ASSERT_TRUE(std::regex_search(said, counts,
                                  std::regex("stopped by SIGTERM: ([12]) records went in, ([12]) "
                                             "came out, 0 under way were lost\n")))
        << said;
    EXPECT_EQ(counts[1], counts[2]);
    EXPECT_EQ(run.text("out"), counts[1] == "1" ? "{\"<a>\": 1}\n{\"terminate\": true}\n"
                                                : "{\"<a>\": 1}\n{\"<a>\": 2}\n{\"terminate\": true}\n");
}

TEST(SnetSignalsTest, AReaderThatWaitsIsStopped) {
    HeldRun run(false);
    run.write("{\"<a>\": 1}\n");
    ASSERT_TRUE(run.comes("out", "{\"<a>\": 1}\n"));
    run.child().signal(SIGINT);
    ASSERT_TRUE(run.child().ends_within(60s));
    EXPECT_EQ(WEXITSTATUS(run.child().reap()), 128 + SIGINT);
    EXPECT_NE(
        run.text("said").find("stopped by SIGINT: 1 records went in, 1 came out, 0 under way were lost\n"),
        std::string::npos)
        << run.text("said");
    EXPECT_EQ(run.text("out"), "{\"<a>\": 1}\n{\"terminate\": true}\n");
}

TEST(SnetSignalsTest, TheSecondDropsWhatIsUnderWayAndSaysHowMuch) {
    if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer keeps signals back";
    HeldRun run(true);
    run.write("{\"<a>\": 1}\n{\"<a>\": 2}\n");
    ASSERT_TRUE(run.comes("called", ""));
    run.child().signal(SIGINT);
    ASSERT_TRUE(run.comes("said", "SIGINT: no more records are read")) << run.text("said");
    run.child().signal(SIGINT);
    ASSERT_TRUE(run.comes("said", "what is under way is dropped")) << run.text("said");
    run.let_go();
    ASSERT_TRUE(run.child().ends_within(60s));
    EXPECT_EQ(WEXITSTATUS(run.child().reap()), 128 + SIGINT);
    std::smatch counts;
    const std::string said = run.text("said");
    ASSERT_TRUE(std::regex_search(said, counts,
                                  std::regex("stopped by SIGINT: ([12]) records went in, 0 came out, "
                                             "([12]) under way were lost\n")))
        << said;
    EXPECT_EQ(counts[1], counts[2]);
    EXPECT_EQ(run.text("out"), "{\"terminate\": true}\n");
}

TEST(SnetSignalsTest, AFailureSaysHowMuchIsLost) {
    HeldRun run(true, 2);
    run.write("{\"<a>\": 1}\n{\"<a>\": 2}\n{\"<a>\": 3}\n{\"<c>\": 4}\n");
    ASSERT_TRUE(run.comes("called", ""));
    ASSERT_TRUE(run.comes("out", "{\"<c>\": 4}\n"));  // so that those before it are under way
    run.let_go();
    ASSERT_TRUE(run.child().ends_within(60s));
    EXPECT_EQ(WEXITSTATUS(run.child().reap()), 1);
    EXPECT_NE(
        run.text("said").find("stopped by a failure: 4 records went in, 1 came out, 2 under way were lost\n"),
        std::string::npos)
        << run.text("said");
    EXPECT_EQ(run.text("out"), "{\"<c>\": 4}\n{\"terminate\": true}\n");
}

TEST(SnetSignalsTest, TheThirdEndsTheProcess) {
    if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer keeps signals back";
    HeldRun run(true);
    run.write("{\"<a>\": 1}\n");
    ASSERT_TRUE(run.comes("called", ""));
    run.child().signal(SIGTERM);
    ASSERT_TRUE(run.comes("said", "SIGTERM: no more records are read")) << run.text("said");
    run.child().signal(SIGTERM);
    ASSERT_TRUE(run.comes("said", "what is under way is dropped")) << run.text("said");
    run.child().signal(SIGTERM);
    ASSERT_TRUE(run.child().ends_within(60s));
    const int status = run.child().reap();
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace heddle::test
