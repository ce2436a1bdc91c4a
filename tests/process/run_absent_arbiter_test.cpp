// heddle run where no arbiter is of use: the program runs all the same, with one line, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "base/os.hpp"
#include "cores/protocol.h"
#include "support/daemon.hpp"
#include "support/managed.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// Takes programs in and gives each the answer of a test in place of an arbiter's.
class OddArbiter {
  public:
    explicit OddArbiter(std::string path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        listening_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        if (::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(listening_.get(), 8) != 0)
            ADD_FAILURE() << "cannot listen at " << path;
    }
    /// Answers the next program's HELLO while `program` runs.
    Outcome answer(const bench::Command& program, const std::function<void(int socket)>& answer) {
        std::jthread arbiter([&] {
            const Descriptor socket(::accept(listening_.get(), nullptr, nullptr));
            heddle_hello hello;
            if (::recv(socket.get(), &hello, sizeof hello, 0) == sizeof hello) answer(socket.get());
            // Kept until the program is gone.
            (void)!::recv(socket.get(), &hello, sizeof hello, 0);
        });
        return Managed::one(program);
    }

  private:
    Descriptor listening_;
};

bench::Command under(const std::string& path, std::vector<std::string> words) {
    words.insert(words.begin(), {test::kHeddle, "run"});
    return {std::move(words), {"HEDDLE_ARBITER=" + path}, {}};
}

void refuse(int socket) {
    heddle_refused refused{};
    refused.header = {HEDDLE_PROTOCOL_MAGIC, HEDDLE_PROTOCOL_VERSION, HEDDLE_REFUSED, sizeof refused, 0};
    refused.code = HEDDLE_REFUSED_FULL;
    std::string("there are too many clients").copy(refused.text, sizeof refused.text);
    (void)!::send(socket, &refused, sizeof refused, MSG_NOSIGNAL);
}

/// Pages without anything in them.
void welcome_with_empty_pages(int socket) {
    heddle_welcome welcome{};
    welcome.header = {HEDDLE_PROTOCOL_MAGIC, HEDDLE_PROTOCOL_VERSION, HEDDLE_WELCOME, sizeof welcome, 0};
    Os os;
    std::vector<int> pages(2);
    for (int& page : pages) {
        page = ::memfd_create("empty", MFD_CLOEXEC);
        if (::ftruncate(page, HEDDLE_PAGE_BYTES) != 0) ADD_FAILURE() << "no memory";
    }
    (void)os.send(socket, &welcome, sizeof welcome, pages);
    for (const int page : pages) ::close(page);
}

/// As an arbiter of another version does: its header and REFUSED are those of all versions.
void refuse_in_another_version(int socket) {
    heddle_refused refused{};
    refused.header = {HEDDLE_PROTOCOL_MAGIC, HEDDLE_PROTOCOL_VERSION + 4, HEDDLE_REFUSED, sizeof refused, 0};
    refused.code = HEDDLE_REFUSED_VERSION;
    std::string("install the same version of heddle for both").copy(refused.text, sizeof refused.text);
    (void)!::send(socket, &refused, sizeof refused, MSG_NOSIGNAL);
}

void speak_http(int socket) {
    const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
    (void)!::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
}

void welcome_without_pages(int socket) {
    heddle_welcome welcome{};
    welcome.header = {HEDDLE_PROTOCOL_MAGIC, HEDDLE_PROTOCOL_VERSION, HEDDLE_WELCOME, sizeof welcome, 0};
    (void)!::send(socket, &welcome, sizeof welcome, MSG_NOSIGNAL);
}

TEST(RunAbsentArbiter, WithoutAnArbiterTheProgramRunsWithOneLine) {
    const Outcome off =
        Managed::one({{test::kHeddle, "run", "--", "echo", "there"}, {"HEDDLE_ARBITER=off"}, {}});
    EXPECT_EQ(off.output, "there\n");
    EXPECT_EQ(off.errors, "heddle run: echo runs unmanaged: HEDDLE_ARBITER is off\n");
    const Outcome required = Managed::one(
        {{test::kHeddle, "run", "--require", "--", "echo", "there"}, {"HEDDLE_ARBITER=off"}, {}});
    EXPECT_EQ(required.exit_code, 69);
    EXPECT_EQ(required.output, "");
    const Outcome nobody = Managed::one({{test::kHeddle, "run", "--require", "--", "echo", "there"},
                                         {"HEDDLE_ARBITER=/nonexistent/socket"},
                                         {}});
    EXPECT_EQ(nobody.exit_code, 69);
    EXPECT_EQ(nobody.output, "");
    EXPECT_EQ(std::ranges::count(nobody.errors, '\n'), 1) << nobody.errors;
}

TEST(RunAbsentArbiter, CpusOfItsOwnUnderAPolicyWithoutOwnersAreOneLine) {
    const Managed managed;
    const std::string why = "heddle run: --own (HEDDLE_OWN) means nothing to the arbiter at " +
                            managed.socket() +
                            ", whose policy has no owners; end it (heddle status tells its pid) and run "
                            "heddled --policy owned";
    const Outcome runs = Managed::one(managed.command({"run", "--own", "0", "--", "echo", "there"}));
    EXPECT_EQ(runs.output, "there\n");
    EXPECT_EQ(runs.errors, why + "\n");
    const Outcome required =
        Managed::one(managed.command({"run", "--require", "--own", "0", "--", "echo", "there"}));
    EXPECT_EQ(required.exit_code, 69);
    EXPECT_EQ(required.output, "");
    EXPECT_EQ(required.errors, why + ", and --require was given\n");
}

TEST(RunAbsentArbiter, RefusedProgramRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    OddArbiter odd(path);
    const Outcome runs = odd.answer(under(path, {"--", "echo", "there"}), refuse);
    EXPECT_EQ(runs.output, "there\n");
    EXPECT_EQ(runs.errors, "heddle: echo runs unmanaged: the arbiter refuses: there are too many clients\n");
    const Outcome required = odd.answer(under(path, {"--require", "--", "echo", "there"}), refuse);
    EXPECT_EQ(required.exit_code, 69);
    EXPECT_EQ(required.output, "");
    EXPECT_THAT(required.errors, HasSubstr("there are too many clients"));
}

TEST(RunAbsentArbiter, WhatIsNoArbiterOfThisVersionCostsOneLineAndIsNoneForRequire) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    OddArbiter odd(path);
    const std::vector<std::pair<std::function<void(int)>, std::string>> answers = {
        {refuse_in_another_version, "the same version of heddle"},
        {speak_http, "is not an arbiter"},
        {welcome_without_pages, "is not an arbiter"}};
    for (const auto& [answer, says] : answers) {
        const Outcome runs = odd.answer(under(path, {"--", "echo", "there"}), answer);
        EXPECT_EQ(runs.output, "there\n");
        EXPECT_THAT(runs.errors, HasSubstr("echo runs unmanaged"));
        EXPECT_THAT(runs.errors, HasSubstr(says));
        EXPECT_EQ(std::ranges::count(runs.errors, '\n'), 1) << runs.errors;
        const Outcome required = odd.answer(under(path, {"--require", "--", "echo", "there"}), answer);
        EXPECT_EQ(required.exit_code, 69) << says;
        EXPECT_EQ(required.output, "") << says;
        EXPECT_THAT(required.errors, HasSubstr(says));
        EXPECT_EQ(std::ranges::count(required.errors, '\n'), 1) << required.errors;
    }
}

TEST(RunAbsentArbiter, AnArbiterThatCannotStartSaysWhyInOneLine) {
    if (std::filesystem::exists("/run/heddle/arbiter.sock")) GTEST_SKIP() << "this machine has an arbiter";
    const Managed managed;
    const std::vector<std::string> variables = {"HEDDLE_ARBITER=auto", "HEDDLE_TOPOLOGY=weft:2",
                                                "XDG_RUNTIME_DIR=" + managed.folder().string()};
    const Outcome runs = Managed::one({{test::kHeddle, "run", "--", "echo", "there"}, variables, {}});
    EXPECT_EQ(runs.output, "there\n");
    EXPECT_THAT(runs.errors, HasSubstr("echo runs unmanaged: no arbiter could be started: heddled: "
                                       "HEDDLE_TOPOLOGY: topology 'weft:2': "));
    EXPECT_EQ(std::ranges::count(runs.errors, '\n'), 1) << runs.errors;
    const Outcome required =
        Managed::one({{test::kHeddle, "run", "--require", "--", "echo", "there"}, variables, {}});
    EXPECT_EQ(required.exit_code, 69);
    EXPECT_EQ(required.output, "");
}

TEST(RunAbsentArbiter, ADescribedMachineThatIsNoneIsToldBesideAnArbiterToo) {
    const Managed managed;
    const auto with = [&](const std::string& topology) {
        return managed.shell("HEDDLE_TOPOLOGY='" + topology + "' $RUN sh -c 'echo $HEDDLE_ARBITER'");
    };
    const Outcome runs = with("weft:2");
    EXPECT_EQ(runs.output, managed.socket() + "\n") << "it is managed all the same";
    EXPECT_THAT(runs.errors, HasSubstr("heddle: HEDDLE_TOPOLOGY: topology 'weft:2': "));
    EXPECT_EQ(std::ranges::count(runs.errors, '\n'), 1) << runs.errors;
    EXPECT_EQ(with("core:4 pu:1").errors, "");
    EXPECT_EQ(with("").errors, "");
}

/// Programs of the one that died hold CPUs that an arbiter of the user's own would hand out again.
TEST(RunAbsentArbiter, NobodyReplacesADeadArbiterOfAllUsers) {
    const Managed managed;
    const auto in_a_world_of_its_own = [&](const std::string& script) {
        return managed.shell("export HEDDLE_ARBITER=auto XDG_RUNTIME_DIR=$FOLDER HEDDLED=" HEDDLE_BUILD_DIR
                             "/bin/heddled\n"
                             "exec unshare -rm sh -c 'mount -t tmpfs none /run && { " +
                             script + "\n}'");
    };
    if (in_a_world_of_its_own("true").exit_code != 0) GTEST_SKIP() << "this system allows no namespaces";
    const Outcome outcome = in_a_world_of_its_own(
        "$HEDDLED --all-users 2>/dev/null & p=$!\n"
        "until [ -S /run/heddle/arbiter.sock ]; do sleep 0.01; done\n"
        "{ kill -KILL $p; wait $p; } 2>/dev/null\n"
        "$RUN echo there; $HEDDLE status || echo $?");
    const std::string why =
        "the arbiter of all users at /run/heddle/arbiter.sock has died; root starts it again: heddled "
        "--all-users\n";
    EXPECT_EQ(outcome.output, "there\n69\n");
    EXPECT_EQ(outcome.errors, "heddle run: echo runs unmanaged: " + why + "heddle: " + why);
}

TEST(RunAbsentArbiter, FailedRegistrationLeavesNothingMapped) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    OddArbiter odd(path);
    const Outcome outcome =
        odd.answer(under(path, {"--", kPrograms + "plain", "link"}), welcome_with_empty_pages);
    EXPECT_EQ(outcome.output, "program pages 0 sockets 0\n");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged"));
}

TEST(RunAbsentArbiter, ArbiterThatDiesWhileTheProgramIsLoadedCostsOneLine) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    std::optional<OddArbiter> odd(path);
    const Outcome outcome =
        odd->answer(under(path, {"--", "echo", "there"}), [](int socket) { ::shutdown(socket, SHUT_RDWR); });
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

TEST(RunAbsentArbiter, StoppedArbiterDelaysAProgramShortly) {
    const Managed managed;
    managed.daemon().process().signal(SIGSTOP);
    const Outcome outcome = managed.run({"echo", "there"});
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged"));
    EXPECT_LT(outcome.ended - outcome.started, 5s);
}

}  // namespace
}  // namespace heddle::test
