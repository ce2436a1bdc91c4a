// Processes that cannot register well, each a child of the test.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cores/arbiter_client.hpp"
#include "cores/observer.hpp"
#include "heddle/cores.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

class ArbiterRegistration : public testing::Test {
  protected:
    ArbiterClientOptions options() const {
        ArbiterClientOptions options;
        options.path = daemon_.path();
        options.allowed = CpuSet::parse("0-7");
        return options;
    }
    static int status_of(pid_t child) {
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    }

    test::Daemon daemon_{{.topology = "core:8 pu:1", .arguments = {}, .variables = {}}};
};

/// Without a thread of its own nobody would answer the arbiter for it.
TEST_F(ArbiterRegistration, IsAloneWhereItCanHaveNoThread) {
    if (test::kSanitized) GTEST_SKIP() << "skipped: a sanitizer needs all address space";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        // For the arbiter's pages, and not for a thread's stack, of which there may be small ones that are
        // kept.
        constexpr rlim_t kRoom = 16 << 20;
        pthread_attr_t large;
        ::pthread_attr_init(&large);
        ::pthread_attr_setstacksize(&large, 4 * kRoom);
        ::pthread_setattr_default_np(&large);
        const rlimit little{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kRoom, RLIM_INFINITY};
        (void)::setrlimit(RLIMIT_AS, &little);
        ArbiterClient client(options(), {});
        const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
        (void)::setrlimit(RLIMIT_AS, &all);
        const bool is_alone = !client.managed() && !client.problem().empty() && client.held().count() == 8;
        const bool has_left =
            test::becomes_true([&] { return Observer(daemon_.path()).status().clients.empty(); }, 5s);
        ::_exit((is_alone ? 0 : 1) + (has_left ? 0 : 2));
    }
    EXPECT_EQ(status_of(child), 0);
}

/// Its parent has had components, as servers have that fork their workers.
TEST_F(ArbiterRegistration, AForkedChildRegistersForComponentsOfItsOwn) {
    const pid_t parent = ::fork();
    ASSERT_GE(parent, 0);
    if (parent == 0) {
        ::setenv("HEDDLE_ARBITER", daemon_.path().c_str(), 1);
        ::setenv("HEDDLE_TOPOLOGY", "core:8 pu:1", 1);
        { const Component first("master", CpuSet::parse("0-7")); }
        const pid_t child = ::fork();
        if (child != 0) ::_exit(status_of(child));
        const Component own("worker", CpuSet::parse("0-7"));
        const auto clients = Observer(daemon_.path()).status().clients;
        const bool is_client = std::ranges::any_of(
            clients, [](const auto& one) { return one.pid == static_cast<uint32_t>(::getpid()); });
        ::_exit((clients.size() == 2 ? 0 : 1) + (is_client ? 0 : 2) + (own.usable().count() == 8 ? 0 : 4));
    }
    EXPECT_EQ(status_of(parent), 0);
}

/// A program's signals do not end its registration.
TEST_F(ArbiterRegistration, RegistersThoughSignalsCome) {
    daemon_.process().signal(SIGSTOP);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        struct sigaction ignored {};
        ignored.sa_handler = [](int) {};
        (void)::sigaction(SIGALRM, &ignored, nullptr);
        const itimerval often{{0, 5'000}, {0, 5'000}};
        (void)::setitimer(ITIMER_REAL, &often, nullptr);
        ArbiterClient client(options(), {});
        ::_exit(client.managed() ? 0 : 1);
    }
    std::this_thread::sleep_for(200ms);
    daemon_.process().signal(SIGCONT);
    EXPECT_EQ(status_of(child), 0);
}

}  // namespace
}  // namespace heddle
