// handover_client SOCKET SEED PROGRESS: a program with heddle's own client that hands CPUs to others like it
// until it is killed.
//
// It lends, reclaims and takes CPUs and changes its demand at random moments, and leaves what is asked back.
// PROGRESS is a file that it maps: the test reads there how far it came.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "cores/arbiter_client.hpp"
#include "support/progress.hpp"

namespace {

using heddle::ArbiterClient;
using heddle::CpuSet;

constexpr int kCpus = 8;

heddle::ArbiterClientOptions options(const char* path) {
    heddle::ArbiterClientOptions options;
    options.name = "handover-client";
    options.demand = kCpus;
    options.allowed = CpuSet::range(0, kCpus);
    options.path = path;
    return options;
}

[[noreturn]] void run(const char* path, unsigned seed, heddle::test::Progress& progress) {
    std::atomic<ArbiterClient*> self = nullptr;
    ArbiterClient client(options(path), {[](const CpuSet&) {},
                                         [&self](const CpuSet& cpus) {
                                             for (const int cpu : cpus)
                                                 if (self != nullptr) self.load()->released(cpu);
                                         }});
    self = &client;
    std::mt19937 random(seed);
    while (true) {
        const int cpu = static_cast<int>(random() % kCpus);
        switch (random() % 8) {
            case 0:
            case 1:
                (void)client.lend(cpu);
                break;
            case 2:
                if (client.lend(cpu) == ArbiterClient::Lent::kLent) (void)client.reclaim(cpu);
                break;
            case 3:
                client.set_demand(static_cast<int>(random() % (kCpus + 1)), random() % 2 == 0);
                break;
            default:
                (void)client.take(cpu);
                break;
        }
        progress.rounds.fetch_add(1, std::memory_order_relaxed);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    heddle::test::Progress* progress = heddle::test::map_progress(argv[3]);
    if (progress == nullptr) return 1;
    run(argv[1], static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)), *progress);
}
