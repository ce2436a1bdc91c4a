// fault_client SOCKET SEED PROGRESS [greedy]: a program without a runtime that takes part in sharing until it
// is killed.
//
// It changes its demand at random moments, or, greedy, always wants all and says that it binds its threads
// itself. It obeys every grant, and registers again with what it held when its
// arbiter dies. PROGRESS is a file that it maps: the test reads there how far it came.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "support/progress.hpp"
#include "support/wire_client.hpp"

namespace {

using heddle::test::Progress;
using heddle::test::WireClient;
using heddle::test::WireMessage;

class Program {
  public:
    Program(const char* path, uint32_t seed, Progress& progress, bool greedy)
        : path_(path), random_(seed), progress_(progress), greedy_(greedy) {}

    [[noreturn]] void run() {
        while (true) {
            if (!client_.connected()) join();
            if (client_.connected()) work();
            progress_.rounds.fetch_add(1, std::memory_order_relaxed);
        }
    }

  private:
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

    void join() {
        auto hello = heddle::test::hello_of("fault-client", greedy_ ? uint32_t{HEDDLE_MAX_CPUS} : below(6));
        if (greedy_) hello.mode = HEDDLE_MODE_THREADS;
        hello.held = held_;
        WireClient client(path_);
        if (client.join(hello)) {
            client_ = std::move(client);
            progress_.registrations.fetch_add(1, std::memory_order_relaxed);
            obey();
        } else {
            ::usleep(1000);
        }
    }
    void work() {
        const uint32_t what = greedy_ ? 8 : below(8);
        if (what < 4) client_.show_demand(below(9));
        if (what == 4) {
            auto limits = heddle::message_of<heddle_limits>(HEDDLE_LIMITS);
            limits.min_cpus = below(2);
            limits.weight = 1 + below(3);
            client_.send(limits);
        }
        WireMessage message;
        switch (client_.receive(message, static_cast<int>(below(4)))) {
            case WireClient::Got::kMessage:
                if (message.header.type == HEDDLE_CHANGED) obey();
                break;
            case WireClient::Got::kClosed:
                client_ = WireClient();
                break;
            case WireClient::Got::kNothing:
                break;
        }
    }
    void obey() {
        const WireClient::Grant grant = client_.grant();
        if (!grant.whole) return;
        held_ = grant.mask;
        progress_.held.store(grant.count, std::memory_order_relaxed);
        client_.send_left(grant.epoch);
    }

    const char* path_;
    std::mt19937 random_;
    Progress& progress_;
    const bool greedy_;
    WireClient client_;
    heddle_mask held_{};
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) return 2;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Progress* progress = heddle::test::map_progress(argv[3]);
    if (progress == nullptr) return 1;
    Program(argv[1], static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)), *progress, argc == 5).run();
}
