// unruly_client SOCKET [computes|sleeps]: wants all CPUs and never leaves one. Several threads bind
// themselves to all CPUs again and again. With a second word it says all the while that they start programs;
// with the word `sleeps` they hardly ever are on a CPU.
//
// SIGUSR1: says that it left, and does not. SIGUSR2: binds its threads to its grant, says so, and keeps to
// it. SIGHUP: forks a process that does nothing.
#include <sched.h>
#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "support/wire_client.hpp"

namespace {

constexpr int kThreads = 3;

std::atomic<bool> obeys = false;
std::atomic<int> bound = 0;
bool sleeps = false;
cpu_set_t granted;

void bind(const cpu_set_t& cpus) {
    (void)::sched_setaffinity(0, sizeof cpus, &cpus);
}

void run(const cpu_set_t& all) {
    while (!obeys) {
        bind(all);
        if (sleeps) ::usleep(1000);
    }
    bind(granted);
    ++bound;
    while (true) ::pause();
}

/// A child of a thread that waits for signals only, so that nothing is to be cleaned up in it.
void fork_an_idle_one() {
    const pid_t parent = ::getpid();
    if (::fork() != 0) return;
    ::prctl(PR_SET_PDEATHSIG, 0);
    while (::getppid() == parent) ::usleep(1000);
    ::usleep(5'000'000);  // orphaned: long enough to be looked at
    ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) return 2;
    sleeps = argc == 3 && std::string(argv[2]) == "sleeps";
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    cpu_set_t all;
    if (::sched_getaffinity(0, sizeof all, &all) != 0) return 1;
    heddle::test::WireClient client(argv[1]);
    if (!client.join(heddle::test::hello_of("unruly", static_cast<uint32_t>(CPU_COUNT(&all))))) return 1;
    if (argc == 3) client.page()->widened = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(run, std::cref(all));
    while (true) {
        int number = 0;
        ::sigwait(&signals, &number);
        const auto grant = client.grant();
        if (number == SIGHUP) {
            fork_an_idle_one();
            continue;
        }
        if (number == SIGUSR2) {
            CPU_ZERO(&granted);
            for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
                if ((grant.mask.words[cpu / 64] >> (cpu % 64) & 1) != 0)
                    CPU_SET(static_cast<size_t>(cpu), &granted);
            obeys = true;
            while (bound < kThreads) std::this_thread::yield();
            bind(granted);
        }
        client.send_left(grant.epoch);
    }
}
