// Observers of `heddle snet run` that are waited for.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <string>

#include "golden.hpp"
#include "support/child.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/tcp_listener.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

/// A program with an observer, and one record for it.
class ObservedRun {
  public:
    ObservedRun() {
        std::ofstream(work_.path() + "/net.snet")
            << "<metadata><net name=\"n\"><observer/><observer_interactive/><observer_data "
               "value=\"tagvalues\"/>"
               "<observer_port value=\""
            << listener_.port()
            << "\"/><observer_code value=\"X\"/></net></metadata>\nnet n connect [{<a>} -> {<b = a + 1>}];\n";
        std::ofstream(work_.path() + "/in.json") << "{\"<a>\": 1}\n";
        child_ = Child({kHeddle, "snet", "run", work_.path() + "/net.snet", "-i", work_.path() + "/in.json"},
                       {}, -1, work_.path() + "/said");
        observer_ = listener_.accept();
    }
    /// Until all of it has come. False: the program has ended.
    [[nodiscard]] bool hears(const std::string& wanted) {
        while (heard_.find(wanted) == std::string::npos) {
            char bytes[1024];
            const ssize_t got = ::read(observer_.get(), bytes, sizeof bytes);
            if (got <= 0) return false;
            heard_.append(bytes, static_cast<size_t>(got));
        }
        return true;
    }
    void answer(const std::string& text) const {
        ASSERT_EQ(::write(observer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] bool says(const std::string& text) const {
        return becomes_true([&] { return said().find(text) != std::string::npos; }, 60s);
    }
    [[nodiscard]] std::string said() const { return file_text(work_.path() + "/said"); }
    Child& child() { return child_; }

  private:
    TemporaryFolder work_;
    Listener listener_;
    Child child_;
    Descriptor observer_;
    std::string heard_;
};

constexpr const char* kBefore =
    "type=\"before\" code=\"X\" >\n<record type=\"data\" mode=\"textual\" >\n"
    "<tag label=\"a\" >1</tag>\n</record>\n</observer>\n";
constexpr const char* kAfter =
    "type=\"after\" code=\"X\" >\n<record type=\"data\" mode=\"textual\" >\n"
    "<tag label=\"b\" >2</tag>\n</record>\n</observer>\n";

TEST(SnetObserversTest, OneThatIsWaitedForSaysWhenToGoOn) {
    ObservedRun run;
    for (const char* wanted : {kBefore, kAfter}) {
        ASSERT_TRUE(run.hears(wanted)) << run.said();
        EXPECT_EQ(run.said().find("<record"), std::string::npos);
        run.answer("<observer oid=\"1\" />");
    }
    ASSERT_TRUE(run.child().ends_within(60s));
    EXPECT_EQ(run.child().reap(), 0);
    EXPECT_NE(run.said().find("<tag label=\"b\">2</tag>"), std::string::npos);
}

TEST(SnetObserversTest, AnAnswerToWhatNobodyAskedIsToldOf) {
    ObservedRun run;
    ASSERT_TRUE(run.hears(kBefore)) << run.said();
    run.answer("<observer oid=\"9\" />");
    ASSERT_TRUE(run.says("answers <observer oid=\"9\" />, and is asked for <observer oid=\"1\" />"))
        << run.said();
    run.answer("<observer oid=\"1\" />");
    ASSERT_TRUE(run.hears(kAfter)) << run.said();
    run.answer("<observer oid=\"1\" />");
    ASSERT_TRUE(run.child().ends_within(60s));
    EXPECT_EQ(run.child().reap(), 0);
}

TEST(SnetObserversTest, OneThatNeverAnswersIsNotWaitedForWhenAllIsDropped) {
    if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer keeps signals back";
    ObservedRun run;
    ASSERT_TRUE(run.hears(kBefore)) << run.said();
    run.child().signal(SIGINT);
    ASSERT_TRUE(run.says("SIGINT: no more records are read")) << run.said();
    EXPECT_TRUE(run.child().running());
    run.child().signal(SIGINT);
    ASSERT_TRUE(run.child().ends_within(60s));
    const int status = run.child().reap();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT) << run.said();
    EXPECT_NE(run.said().find("1 records went in, 0 came out, 1 under way were lost"), std::string::npos)
        << run.said();
}

}  // namespace
}  // namespace heddle::test
