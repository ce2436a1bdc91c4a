// heddle run keeps what a process is: exit code, signals, streams, descriptors, children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/os.hpp"
#include "cores/protocol.h"
#include "support/daemon.hpp"
#include "support/managed.hpp"
#include "support/on_cpus.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(RunProcess, KeepsExitCodeAndSignal) {
    const Managed managed;
    EXPECT_EQ(managed.run({kPrograms + "plain", "exit", "42"}).exit_code, 42);
    EXPECT_EQ(managed.run({kPrograms + "plain", "raise", "15"}).exit_code, 128 + 15);
    EXPECT_EQ(managed.run({kPrograms + "plain", "raise", "6"}).exit_code, 128 + 6);
}

TEST(RunProcess, PassesStreamsThrough) {
    const Managed managed;
    const Outcome outcome =
        managed.shell("printf 'one two' | $RUN cat | $RUN wc -w; $RUN sh -c 'echo bad >&2'");
    EXPECT_EQ(outcome.output, "2\n");
    EXPECT_EQ(outcome.errors, "bad\n");
}

TEST(RunProcess, InterruptReachesTheProgramOnce) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}plain interrupts > $FOLDER/said & p=$!\n"
        "while ! grep -q ready $FOLDER/said; do sleep 0.01; done\n"
        "kill -INT $p; wait $p; cat $FOLDER/said");
    EXPECT_THAT(outcome.output, HasSubstr("interrupts 1\n")) << outcome.errors;
}

TEST(RunProcess, SaysWhyItCannotStart) {
    const Managed managed;
    EXPECT_EQ(managed.run({"/nonexistent/program"}).exit_code, 127);
    EXPECT_EQ(managed.run({"/etc/passwd"}).exit_code, 126);
    EXPECT_EQ(Managed::one(managed.command({"run", "--wrong", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run", "--min", "-1", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run", "--mode", "best", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run"})).exit_code, 2);
}

TEST(RunProcess, WithoutAnArbiterTheProgramRunsWithOneLine) {
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

TEST(RunProcess, CpusOfItsOwnUnderAPolicyWithoutOwnersAreOneLine) {
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

TEST(RunProcess, RefusedProgramRunsUnmanagedAndSaysSo) {
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

TEST(RunProcess, WhatIsNoArbiterOfThisVersionCostsOneLineAndIsNoneForRequire) {
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

TEST(RunProcess, AnArbiterThatCannotStartSaysWhyInOneLine) {
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

/// Programs of the one that died hold CPUs that an arbiter of the user's own would hand out again.
TEST(RunProcess, NobodyReplacesADeadArbiterOfAllUsers) {
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

TEST(RunProcess, FailedRegistrationLeavesNothingMapped) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    OddArbiter odd(path);
    const Outcome outcome =
        odd.answer(under(path, {"--", kPrograms + "plain", "link"}), welcome_with_empty_pages);
    EXPECT_EQ(outcome.output, "program pages 0 sockets 0\n");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged"));
}

TEST(RunProcess, ArbiterThatDiesWhileTheProgramIsLoadedCostsOneLine) {
    const Managed managed;
    const std::string path = managed.folder() / "odd";
    std::optional<OddArbiter> odd(path);
    const Outcome outcome =
        odd->answer(under(path, {"--", "echo", "there"}), [](int socket) { ::shutdown(socket, SHUT_RDWR); });
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

TEST(RunProcess, ScriptWithoutAFirstLineIsTheShells) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf 'echo \"$1\" $#; exit 5\\n' > $FOLDER/script; chmod +x $FOLDER/script; $RUN $FOLDER/script "
        "'a b'");
    EXPECT_EQ(outcome.output, "a b 1\n") << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 5);
}

/// The kernel calls it by its interpreter's name.
TEST(RunProcess, AScriptComesBackToANewArbiterUnderItsOwnName) {
    test::Daemon daemon({});
    const std::string script = daemon.folder() + "/a_script", asked = daemon.folder() + "/status";
    std::ofstream(script) << "#!/bin/sh\nwhile true; do sleep 0.05; done\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const std::vector<std::string> here = {"HEDDLE_ARBITER=" + daemon.path()};
    const test::Child runs({test::kHeddle, "run", "--", script}, here);
    const auto is_known = [&] {
        const auto status = nlohmann::json::parse(
            Managed::one({{test::kHeddle, "status", "--json"}, here, {}}).output, nullptr, false);
        return status.is_object() && std::ranges::any_of(status["clients"], [](const auto& client) {
                   return client["name"] == "a_script";
               });
    };
    ASSERT_TRUE(test::becomes_true(is_known, 5s));
    daemon.process().end();
    ASSERT_TRUE(daemon.start());
    EXPECT_TRUE(test::becomes_true(is_known, 5s));
}

TEST(RunProcess, AProgramWhoseGrantNobodyCanFollowKeepsNone) {
    const Managed managed;
    bench::Command command = managed.run_command({kPrograms + "plain", "link"});
    command.environment.push_back("LD_PRELOAD=" + kPrograms + "no_threads.so");
    const Outcome outcome = Managed::one(command);
    EXPECT_THAT(outcome.output, HasSubstr("sockets 0"));
    EXPECT_EQ(outcome.errors,
              "heddle: plain runs unmanaged: there can be no thread that follows its grant\n");
}

TEST(RunProcess, ScriptOfAStaticInterpreterRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf '#! %s exit\\n' ${PROGRAMS}static_plain > $FOLDER/script; chmod +x $FOLDER/script; $RUN "
        "$FOLDER/script; echo $?");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is linked statically"));
}

TEST(RunProcess, StaticProgramRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "static_plain", "exit", "3"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is linked statically"));
}

TEST(RunProcess, WhatAStaticProgramStartsIsManaged) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf '#!/bin/sh\\nexec ${PROGRAMS}plain link\\n' > $FOLDER/nproc; chmod +x $FOLDER/nproc\n"
        "PATH=$FOLDER:$PATH $RUN ${PROGRAMS}static_plain spawn");
    EXPECT_EQ(outcome.output, "program pages 2 sockets 1\n");
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

TEST(RunProcess, TheArbiterStaysForTheChildrenOfAStaticProgram) {
    const test::TemporaryFolder folder;
    const std::string socket = folder.path() + "/arbiter";
    const test::Child arbiter({HEDDLE_BUILD_DIR "/bin/heddled", "--socket", socket, "--idle-exit", "5"});
    ASSERT_TRUE(test::becomes_true([&] { return test::WireClient(socket).connected(); }));
    const test::Child program({test::kHeddle, "run", "--", kPrograms + "static_plain", "sleep", "7"},
                              {"HEDDLE_ARBITER=" + socket});
    while (true) {
        const bool serves = arbiter.running();
        if (!program.running()) break;
        ASSERT_TRUE(serves) << "it ended before the program";
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(arbiter.ends_within(20s));
}

TEST(RunProcess, ALibgompThatIsLinkedIntoTheProgramIsTold) {
    if (!std::filesystem::exists(kPrograms + "embedded")) GTEST_SKIP() << "there is no static libgomp";
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "embedded", "0.05", "clause", "3"});
    EXPECT_THAT(outcome.output, HasSubstr("team 3"));
    EXPECT_EQ(outcome.errors, "heddle: libgomp is linked into embedded: its OpenMP regions run unmanaged\n");
    // Threads alone, and libgomp as a library, are no sign of it.
    EXPECT_EQ(managed.run({kPrograms + "plain", "spin", "0.01"}).errors, "");
    EXPECT_EQ(managed.run({kPrograms + "regions", "0.05", "clause", "3"}).errors, "");
}

TEST(RunProcess, SetuidProgramRunsUnmanagedAndSaysSo) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a setuid program of somebody else's";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "cp ${PROGRAMS}plain $FOLDER/other && chown 65534 $FOLDER/other && chmod 4755 $FOLDER/other && "
        "$RUN $FOLDER/other exit 4");
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is setuid or setgid"));
}

TEST(RunProcess, DeepbindObjectRunsUnmanagedAndSaysSo) {
    if (!std::filesystem::exists(kPrograms + "wheels")) GTEST_SKIP() << "libgomp is missing";
    const Managed managed;
    const auto wheels = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"run", "--max", "1", "--", kPrograms + "wheels"});
        return Managed::one(managed.command(words, {"OMP_DYNAMIC=false"}));
    };
    const Outcome deep = wheels({kPrograms + ".", "deepbind"});
    EXPECT_EQ(deep.output, "numbers 3 2 3 teams 3 2 3\n");
    EXPECT_THAT(
        deep.errors,
        HasSubstr("heddle: one.so was loaded with RTLD_DEEPBIND: its OpenMP regions run unmanaged\n"));
    // The loader still sees who asks: these are found by the program's own search path alone.
    const Outcome found = wheels({""});
    EXPECT_EQ(found.output, "numbers 3 2 3 teams 1 1 1\n");
    EXPECT_EQ(found.errors, "");
}

TEST(RunProcess, StoppedArbiterDelaysAProgramShortly) {
    const Managed managed;
    managed.daemon().process().signal(SIGSTOP);
    const Outcome outcome = managed.run({"echo", "there"});
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged"));
    EXPECT_LT(outcome.ended - outcome.started, 5s);
}

TEST(RunProcess, ProgramMayCloseAllDescriptors) {
    const Managed managed;
    // "none" closes nothing and puts its own in the place of what is there.
    for (const char* how : {"one", "raw", "from", "old", "range", "none"}) {
        const Outcome outcome = managed.run({kPrograms + "plain", "close", how});
        EXPECT_EQ(outcome.exit_code, 0) << how;
        EXPECT_EQ(outcome.output, "intact\n") << how << ": " << outcome.errors;
    }
}

TEST(RunProcess, AProgramMayForbidItselfWhatWeDo) {
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "plain", "sandbox"});
    EXPECT_EQ(outcome.output, "alive\n") << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 0);
}

TEST(RunProcess, NothingOfTheArbiterOutlivesAnExec) {
    const Managed managed;
    EXPECT_THAT(managed.shell("$RUN ${PROGRAMS}plain link").output, "program pages 2 sockets 1\n");
    EXPECT_EQ(managed.shell("$RUN env -u LD_PRELOAD ${PROGRAMS}plain link").output,
              "program pages 0 sockets 0\n");
    EXPECT_EQ(managed.shell("$RUN env").output.find("HEDDLE_LINK"), std::string::npos);
}

TEST(RunProcess, ForkedChildHasNothingOfItsParents) {
    const Managed managed;
    EXPECT_EQ(managed.run({kPrograms + "plain", "fork"}).output,
              "parent pages 2 sockets 1\nchild pages 0 sockets 0\n");
    // A child that the C library knows nothing of keeps the socket open, and must not touch anything else.
    const Outcome raw = managed.run({kPrograms + "plain", "fork", "raw"});
    EXPECT_THAT(raw.output, HasSubstr("child pages 0")) << raw.errors;
    EXPECT_EQ(raw.exit_code, 0) << raw.output;
}

TEST(RunProcess, AChildOfOneThatHasNoCpusMayUseAll) {
    if (!std::filesystem::exists(kPrograms + "regions")) GTEST_SKIP() << "libgomp is missing";
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    // The shell sleeps until the others have its CPUs; its child is not managed and would keep what it was
    // bound to.
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}regions 2.5 > /dev/null &\n"
        "$RUN sh -c 'sleep 1.5; LD_PRELOAD= nproc' & p=$!\n"
        "sleep 1; $HEDDLE status --json > $FOLDER/status; wait $p; wait");
    const auto status = nlohmann::json::parse(std::ifstream(managed.folder() / "status"));
    const auto shell = std::find_if(status["clients"].begin(), status["clients"].end(),
                                    [](const auto& client) { return client["name"] == "sh"; });
    ASSERT_NE(shell, status["clients"].end()) << status;
    ASSERT_EQ((*shell)["granted"].size(), 0U) << "it is to have none: " << status;
    EXPECT_EQ(outcome.output, "2\n") << outcome.errors;
}

/// Under a grant of one CPU: what a program binds itself to is its own will, whatever it becomes or starts.
TEST(RunProcess, AMaskThatAProgramChoseIsKeptOverExecAndFork) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const std::string tell = "env -u LD_PRELOAD grep Cpus_allowed_list /proc/self/status";
    for (const int cpu : thread_affinity()) {
        const std::string bound = "$HEDDLE run --max 1 -- taskset -c " + std::to_string(cpu) + " ";
        const std::string expected = "Cpus_allowed_list:\t" + std::to_string(cpu) + "\n";
        EXPECT_EQ(managed.shell(bound + tell).output, expected);
        EXPECT_EQ(managed.shell(bound + "sh -c '" + tell + "; (" + tell + ")'").output, expected + expected);
    }
}

/// The daemon that it starts has to keep its lock, whatever numbers descriptors have.
TEST(RunProcess, ADaemonIsStartedWithoutAnyOfTheUsualDescriptors) {
    if (std::filesystem::exists("/run/heddle/arbiter.sock")) GTEST_SKIP() << "this machine has an arbiter";
    for (const std::string closed : {"<&-", "<&- >&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
        const Managed managed;
        const Outcome outcome = managed.shell(
            "export HEDDLE_ARBITER=auto XDG_RUNTIME_DIR=$FOLDER/run; mkdir -m 700 $FOLDER/run\n"
            "$HEDDLE run --require -- true " +
            closed +
            "; echo $?\n"
            "for socket in $(find $FOLDER/run -type s); do " HEDDLE_BUILD_DIR
            "/bin/heddled --socket $socket 2>&1 | grep -c 'is running at'; done\n"
            "$HEDDLE status --json | grep -o '\"pid\": *[0-9]*' | head -1 | tr -dc 0-9 | xargs kill");
        EXPECT_EQ(outcome.output, "0\n1\n") << closed << ": " << outcome.errors;
    }
}

TEST(RunProcess, DaemonsAndChildrenLiveOn) {
    const Managed managed;
    const Outcome daemon = managed.shell(
        "$RUN ${PROGRAMS}plain daemon $FOLDER/done; for i in $(seq 500); do [ -s $FOLDER/done ] && break; "
        "sleep "
        "0.02; done; cat $FOLDER/done");
    EXPECT_EQ(daemon.output, "done\n");
    // What a bound program starts, by whichever call, may run where the program itself was allowed to.
    const Outcome all = Managed::one({{"nproc"}, {}, {}});
    for (const std::string child : {"plain vfork", "plain spawn", "plain system"})
        EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- ${PROGRAMS}" + child).output, all.output) << child;
    EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- sh -c 'nproc; (nproc); nproc | cat'").output,
              all.output + all.output + all.output);
}

int occurrences(const std::string& text, const std::string& words) {
    int count = 0;
    for (size_t at = 0; (at = text.find(words, at)) != std::string::npos; at += words.size()) ++count;
    return count;
}

/// Each program that comes and goes beside it changes what its threads are bound to. The script tells how
/// many programs began elsewhere than they should.
void expect_none_elsewhere(const std::string& script) {
    const Managed managed;
    const Outcome outcome =
        managed.shell("(while [ ! -e $FOLDER/done ]; do $RUN ${PROGRAMS}plain spin 0.002; done) &\n" +
                      script + "\ntouch $FOLDER/done; wait");
    ASSERT_NE(outcome.output, "") << outcome.errors;
    // Where it has no CPU for 10 ms the arbiter binds it by force, in the middle of whatever it does.
    EXPECT_LE(std::stoi(outcome.output), occurrences(managed.daemon().said(), "did not leave in time"))
        << script << outcome.errors;
}

TEST(RunProcess, ChildrenMayRunWhereItMayHoweverOftenItsGrantChanges) {
    for (const std::string how : {"spawn", "vfork", "fork"})
        expect_none_elsewhere("$HEDDLE run --require -- ${PROGRAMS}plain spawn-many 2000 " + how);
}

TEST(RunProcess, AMaskThatAProgramChoseIsKeptOverExecHoweverOftenItsGrantChanges) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const std::string cpu = std::to_string(thread_affinity().last());
    expect_none_elsewhere("for i in $(seq 300); do $RUN taskset -c " + cpu +
                          " env -u LD_PRELOAD grep Cpus_allowed_list /proc/self/status; done | grep -vc '\t" +
                          cpu + "$'");
}

TEST(RunProcess, ThreadsThatAProgramBindsStayThereInAProgramAlone) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    for (int i = 0; i < 4; ++i) {
        const Outcome outcome = managed.run({kPrograms + "pinned", "alone"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
    }
}

TEST(RunProcess, ThreadsThatAProgramBindsAreBackWhenItHasAllCpusAgain) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    for (int i = 0; i < 3; ++i) {
        const Outcome outcome = managed.shell(
            "rm -f $FOLDER/ready; $HEDDLE run --mode mask -- ${PROGRAMS}pinned beside $FOLDER/ready & "
            "pinned=$!\n"
            "while [ ! -e $FOLDER/ready ] && kill -0 $pinned; do sleep 0.01; done\n"
            "$HEDDLE run --mode mask -- ${PROGRAMS}plain spin 0.3; wait $pinned");
        EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors << managed.daemon().said();
    }
}

TEST(RunProcess, RunsUnderMpirun) {
    if (Managed::one({{"sh", "-c", "command -v mpirun"}, {}, {}}).exit_code != 0)
        GTEST_SKIP() << "mpirun is not installed (apt-get install openmpi-bin)";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 $RUN sh -c "
        "'echo "
        "rank $OMPI_COMM_WORLD_RANK' | sort");
    EXPECT_EQ(outcome.output, "rank 0\nrank 1\n") << outcome.errors;
    // Each rank is a client, and gets its part of the machine.
    const test::OnCpus two(2);
    if (!std::filesystem::exists(kPrograms + "regions") || !two.enough()) return;
    const std::string mpirun =
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none -n "
        "2 ";
    const Outcome regions = managed.shell(mpirun + "$RUN ${PROGRAMS}regions 1");
    EXPECT_EQ(std::ranges::count(regions.output, '\n'), 2) << regions.output << regions.errors;
    EXPECT_THAT(regions.output, testing::ContainsRegex("team 1.*\n.*team 1")) << regions.errors;
    EXPECT_EQ(managed.shell(mpirun + "$RUN ${PROGRAMS}plain exit 3").exit_code, 3);
}

}  // namespace
}  // namespace heddle::test
