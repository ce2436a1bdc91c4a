// An arbiter that cannot start says so in one line and ends with the documented code; one that the system
// gives little serves as well as it can.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "arbiter/server.hpp"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "support/daemon.hpp"
#include "support/faulty_os.hpp"
#include "support/sanitized.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

int own_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<int>(std::distance(all, {}));
}

struct Failure {
    const char* says;  // within the message
    Call call;
};

class StartErrno : public testing::TestWithParam<Failure> {};

TEST_P(StartErrno, IsOneLineAndLeavesNothing) {
    const TemporaryFolder folder;
    const int before = own_descriptors();
    for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES, EADDRINUSE, ENOSPC, EINTR}) {
        FaultyOs os;
        SteadyClock clock;
        ServerConfig config;
        config.path = folder.path() + "/arbiter.sock";
        std::filesystem::remove(config.path);
        os.fail(GetParam().call, 1, error);
        try {
            Server server(
                config,
                Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock.now()), os,
                clock);
            ADD_FAILURE() << "it started";
        } catch (const Error& failure) {
            const std::string text = failure.what();
            EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
            EXPECT_NE(text.find(std::strerror(error)), std::string::npos) << text;
            EXPECT_EQ(text.find('\n'), std::string::npos) << text;
        }
        EXPECT_EQ(own_descriptors(), before);
    }
}

INSTANTIATE_TEST_SUITE_P(Calls, StartErrno,
                         testing::Values(Failure{"socket", Call::kSocket},
                                         Failure{"cannot listen at", Call::kBindListen},
                                         Failure{"epoll_create", Call::kEpollCreate},
                                         Failure{"epoll_ctl", Call::kEpollControl}),
                         [](const auto& each) { return "Call" + std::to_string(each.index); });

/// It serves without it; the next one just does not know who held what.
TEST(StartErrno, AStateThatCannotBeSavedIsNoEnd) {
    const TemporaryFolder folder;
    FaultyOs os;
    SteadyClock clock;
    for (const int error : {EACCES, ENOSPC, EMFILE, EFBIG}) {
        ServerConfig config;
        config.path = folder.path() + "/" + std::to_string(error);
        config.state_path = config.path + ".state";
        os.fail(Call::kMapFile, 1, error);
        Server server(
            config, Arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock.now()),
            os, clock);
        std::string said;
        server.log = [&](const std::string& line) { said += line; };
        WireClient client(config.path);
        client.send(hello_of("client", 1));
        WireMessage message;
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(server.turn());
        EXPECT_TRUE(client.receive_type(message, HEDDLE_WELCOME, 1000));
        EXPECT_NE(said.find(std::strerror(error)), std::string::npos) << said;
    }
}

/// Of a page: memfd_create, ftruncate, mmap, each refused by a limit of the process.
TEST(StartErrno, AHalfMadePageLeavesNothing) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer needs descriptors of its own";
    struct Limit {
        decltype(RLIMIT_NOFILE) resource;
        rlim_t value;
        int error;
    };
    const auto with_signals_ignored = std::signal(SIGXFSZ, SIG_IGN);
    Os os;
    const int before = own_descriptors();
    for (const Limit& limit : {Limit{RLIMIT_NOFILE, 3, EMFILE}, Limit{RLIMIT_FSIZE, 4096, EFBIG}}) {
        rlimit old{};
        ::getrlimit(limit.resource, &old);
        const rlimit less{limit.value, old.rlim_max};
        ::setrlimit(limit.resource, &less);
        void* mapping = nullptr;
        const int made = os.make_page("page", HEDDLE_PAGE_BYTES, true, &mapping);
        ::setrlimit(limit.resource, &old);
        EXPECT_EQ(made, -limit.error);
        EXPECT_EQ(mapping, nullptr);
    }
    std::signal(SIGXFSZ, with_signals_ignored);
    EXPECT_EQ(own_descriptors(), before);
}

/// heddled, started by a shell that says something first.
class Started {
  public:
    explicit Started(const std::string& first, const std::string& last = "", int keep = -1) {
        const std::string command = first + "; exec \"$0\" --socket " + path() + " --idle-exit 60 " + last;
        child_ = Child({"/bin/sh", "-c", command, HEDDLE_BUILD_DIR "/bin/heddled"},
                       {"HEDDLE_TOPOLOGY=core:8 pu:1"}, keep, folder_.path() + "/log");
    }
    /// True where it serves, false where it has ended.
    bool serves() {
        while (!child_.ends_within(1ms)) {
            const WireClient client(path());
            if (client.connected()) return true;
        }
        return false;
    }
    [[nodiscard]] std::string path() const { return folder_.path() + "/arbiter.sock"; }
    [[nodiscard]] std::string said() const {
        std::ifstream file(folder_.path() + "/log");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] Child& process() { return child_; }

    /// False where the system had no room even for the program.
    [[nodiscard]] bool was_loaded() const {
        return said().find("error while loading shared libraries") == std::string::npos;
    }
    void expect_one_line() {
        const int status = child_.reap();
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
        EXPECT_TRUE(said().starts_with("heddled: ")) << said();
        EXPECT_EQ(std::ranges::count(said(), '\n'), 1) << said();
    }

  private:
    TemporaryFolder folder_;
    Child child_;
};

constexpr const char* kDaemon = HEDDLE_BUILD_DIR "/bin/heddled";

/// What heddled says, of one line, and its exit code.
std::pair<std::string, int> refusal_of(const std::vector<std::string>& arguments,
                                       const std::string& topology = {},
                                       const std::string& program = kDaemon) {
    const TemporaryFolder folder;
    std::vector<std::string> words = {program, "--idle-exit", "60"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Child child(words, {"HEDDLE_ARBITER=auto", "HEDDLE_TOPOLOGY=" + topology}, -1, folder.path() + "/log");
    EXPECT_TRUE(child.ends_within(20s)) << "it serves";
    const int status = child.reap();
    std::ifstream file(folder.path() + "/log");
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    return {said, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST(Start, AFileThatIsNoSocketIsLeftAlone) {
    const TemporaryFolder folder;
    const std::string file = folder.path() + "/thesis";
    std::ofstream(file) << "years of work";
    const auto [said, code] = refusal_of({"--socket", file});
    EXPECT_EQ(said, "heddled: " + file + " is there and is no socket; name another --socket\n");
    EXPECT_EQ(code, 1);
    EXPECT_EQ(std::filesystem::file_size(file), 13U);
    EXPECT_FALSE(std::filesystem::exists(file + ".lock"));
}

TEST(Start, APathThatIsTooLongLeavesNothing) {
    const TemporaryFolder folder;
    const auto [said, code] = refusal_of({"--socket", folder.path() + "/" + std::string(120, 's')});
    EXPECT_NE(said.find("and the system allows 107"), std::string::npos) << said;
    EXPECT_EQ(code, 1);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Start, AMachineWithCpusThatNoMessageCanNameIsRefused) {
    const TemporaryFolder folder;
    const auto [said, code] = refusal_of({"--socket", folder.path() + "/arbiter"}, "pu:1025");
    EXPECT_EQ(
        said,
        "heddled: this machine has CPU 1024, and an arbiter can hand out CPUs below 1024 only; programs "
        "run unmanaged here\n");
    EXPECT_EQ(code, 1);
    Daemon daemon({"pu:1024", {}, {}});
    EXPECT_EQ(Observer(daemon.path()).status().cpus.size(), 1024U);
}

/// One that only its own user could reach would not be everybody's.
TEST(Start, ForAllUsersItListensWhereTheyLook) {
    if (::geteuid() != 0) {
        EXPECT_NE(refusal_of({"--all-users"}).first.find("/run/heddle"), std::string::npos);
        return;
    }
    // As root it would become the arbiter of this very machine; others may not read the build's folder.
    const TemporaryFolder folder;
    const std::string program = folder.path() + "/heddled";
    std::filesystem::copy_file(kDaemon, program);
    for (const std::string& path : {folder.path(), program})
        std::filesystem::permissions(path, static_cast<std::filesystem::perms>(0755));
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
        ::unsetenv("TSAN_OPTIONS");  // they name a file where others may not read
        const std::string said = refusal_of({"--all-users"}, {}, program).first;
        ::_exit(said.find("/run/heddle") == std::string::npos ? 1 : 0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(Start, AFolderThatNotAllUsersMayEnterIsTold) {
    Daemon daemon({"", {"--all-users"}, {}});
    const std::string told = "for all users: chmod a+x " + daemon.folder() + "\n";
    EXPECT_NE(daemon.said().find(told), std::string::npos) << daemon.said();
    std::filesystem::permissions(daemon.folder(), static_cast<std::filesystem::perms>(0711));
    std::filesystem::remove(daemon.folder() + "/log");
    daemon.process().end();
    ASSERT_TRUE(daemon.start());
    EXPECT_EQ(daemon.said(), "");
}

TEST(Start, WithFewDescriptorsItServesOrSaysWhyNot) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer needs descriptors of its own";
    int served = 0, ended = 0;
    for (int most = 4; most < 24; ++most) {
        SCOPED_TRACE(most);
        Started daemon("ulimit -n " + std::to_string(most));
        if (daemon.serves()) {
            ++served;
        } else if (daemon.was_loaded()) {
            ++ended;
            daemon.expect_one_line();
        }
    }
    EXPECT_GT(served, 0);
    EXPECT_GT(ended, 0);
}

TEST(Start, WithLittleMemoryItServesOrSaysWhyNot) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer needs terabytes of addresses";
    int served = 0;
    for (int kib = 24'000; kib < 80'000; kib += 8'000) {
        SCOPED_TRACE(kib);
        Started daemon("ulimit -v " + std::to_string(kib));
        if (daemon.serves()) {
            ++served;
            EXPECT_TRUE(daemon.process().running());
        } else if (daemon.was_loaded()) {
            daemon.expect_one_line();
        }
    }
    EXPECT_GT(served, 0);
}

/// The limit counts for pages of shared memory too, and is a signal by default.
TEST(Start, UnderALimitOfFileSizeItRefusesAndLives) {
    Started daemon("ulimit -f 1", "--verbose");
    ASSERT_TRUE(daemon.serves()) << daemon.said();
    for (int i = 0; i < 3; ++i) {
        WireClient client(daemon.path());
        client.send(hello_of("x", 1));
        WireMessage message;
        ASSERT_TRUE(client.receive_type(message, HEDDLE_REFUSED, 3000));
        EXPECT_EQ(message.refused.code, uint32_t{HEDDLE_REFUSED_FULL}) << message.refused.text;
        WireClient observer(daemon.path());
        EXPECT_TRUE(observer.join(hello_of("observer", 0, HEDDLE_KIND_OBSERVER)));
    }
    EXPECT_TRUE(daemon.process().running());
}

TEST(Start, WithoutStandardDescriptorsNoSocketTakesTheLog) {
    Started daemon("exec 0<&- 1>&- 2>&-", "--verbose");
    ASSERT_TRUE(daemon.serves());
    for (int i = 0; i < 20; ++i) {
        WireClient client(daemon.path());
        ASSERT_TRUE(client.join(hello_of("x", 1)));
    }
    EXPECT_TRUE(daemon.process().running());
}

TEST(Start, ALogThatNobodyReadsAnyMoreIsNoEnd) {
    int log[2];
    ASSERT_EQ(::pipe2(log, O_CLOEXEC), 0);
    Started daemon("exec 2>&3 3>&-", "--verbose", log[1]);
    for (const int fd : log) ::close(fd);
    ASSERT_TRUE(daemon.serves());
    for (int i = 0; i < 20; ++i) {
        WireClient client(daemon.path());
        ASSERT_TRUE(client.join(hello_of("x", 1)));
    }
    EXPECT_TRUE(daemon.process().running());
}

}  // namespace
}  // namespace heddle::test
