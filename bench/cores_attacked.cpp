// cores.attacked: how long a program waits for CPUs that another one has to give up, while others attack the
// arbiter: the 99th of a hundred waits, beside that of quiet times in the same run.
//
// The attacks: connections that say nonsense and go, clients that come and go, and such as never read and say
// one thing after the other. The attacker shares a CPU with the arbiter and pauses between attacks, so that
// what is measured is what the arbiter does for it, and not who has the CPU.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "arbiter_process.hpp"
#include "base/scratch_folder.hpp"
#include "cores/arbiter_client.hpp"
#include "cores/codec.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace std::chrono_literals;

constexpr int kCpus = 16;  // of the programs; attackers may run on one more

class Attacker {
  public:
    explicit Attacker(std::string path) : path_(std::move(path)) {}
    [[noreturn]] void run() {
        for (int& socket : clients_) socket = join();
        while (true) {
            attack();
            std::this_thread::sleep_for(500us);
        }
    }

  private:
    [[nodiscard]] int connect() const {
        const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
        (void)!::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
        return socket;
    }
    [[nodiscard]] int join() const {
        const int socket = connect();
        auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
        hello.demand = 1;
        hello.allowed = mask_of({kCpus});
        hello.weight = 1;
        std::strncpy(hello.name, "attacker", sizeof hello.name - 1);
        say(socket, &hello, sizeof hello);
        return socket;
    }
    static void say(int socket, const void* bytes, size_t length) {
        (void)!::send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    void attack() {
        int& client = clients_[random_() % std::size(clients_)];
        switch (random_() % 4) {
            case 0: {  // nonsense, and gone
                const int socket = connect();
                uint32_t bytes[16];
                for (uint32_t& word : bytes) word = static_cast<uint32_t>(random_());
                say(socket, bytes, sizeof bytes);
                ::close(socket);
                break;
            }
            case 1:  // a client that was dropped, or drops itself
                ::close(client);
                client = join();
                break;
            default: {  // never reads
                const auto look = message_of<heddle_header>(HEDDLE_DEMAND);
                auto left = message_of<heddle_epoch_message>(HEDDLE_LEFT);
                left.epoch = static_cast<uint32_t>(random_());
                for (int i = 0; i < 5; ++i) {
                    say(client, &look, sizeof look);
                    say(client, &left, sizeof left);
                }
            }
        }
    }

    const std::string path_;
    std::mt19937 random_{5};
    int clients_[8] = {};
};

/// One that leaves what is asked back at once.
class Program {
  public:
    Program(const std::string& path, const char* name)
        : client_(options(path, name), {[this](const CpuSet&) { look(); },
                                        [this](const CpuSet& cpus) {
                                            for (const int cpu : cpus) client_.released(cpu);
                                            look();
                                        }}) {
        if (!client_.managed()) throw Error(ErrorCode::kUnavailable, client_.problem());
        look();
    }
    void want(int cpus) { client_.set_demand(cpus, true); }
    void wait_for(int least) const {
        for (int held = held_.load(); held < least; held = held_.load()) held_.wait(held);
    }

  private:
    static ArbiterClientOptions options(const std::string& path, const char* name) {
        ArbiterClientOptions options;
        options.name = name;
        options.allowed = CpuSet::range(0, kCpus);
        options.in_children = false;  // the attacker is one
        options.path = path;
        return options;
    }
    /// In the client's thread.
    void look() {
        held_.store(client_.held().count());
        held_.notify_all();
    }
    std::atomic<int> held_{0};
    ArbiterClient client_;
};

/// Microseconds from asking for half of the machine to having it.
double wait_of(Program& asks, Program& gives) {
    asks.want(1);
    gives.want(kCpus);
    gives.wait_for(kCpus - 4);
    std::this_thread::sleep_for(1ms);
    const auto start = std::chrono::steady_clock::now();
    asks.want(kCpus);
    asks.wait_for(kCpus / 2 - 2);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double ninety_ninth_of_a_hundred(Program& asks, Program& gives) {
    std::vector<double> waits;
    for (int i = 0; i < 100; ++i) waits.push_back(wait_of(asks, gives));
    std::ranges::sort(waits);
    return waits[98];
}

void run(bool quick) {
    const ScratchFolder folder;
    const std::string path = folder.path() + "/arbiter.sock";
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    int first = 0, last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(static_cast<size_t>(first), &allowed)) ++first;
    while (!CPU_ISSET(static_cast<size_t>(last), &allowed)) --last;
    const bench::ArbiterProcess arbiter(path, "core:17 pu:1", first);
    bench::bind_to(last);
    Program asks(path, "asks"), gives(path, "gives");
    std::vector<double> quiet, attacked;
    for (int i = 0; i < (quick ? 3 : 21); ++i) {
        quiet.push_back(ninety_ninth_of_a_hundred(asks, gives));
        const bench::Background attacker([&] {
            bench::bind_to(first);
            Attacker(path).run();
        });
        std::this_thread::sleep_for(20ms);
        attacked.push_back(ninety_ninth_of_a_hundred(asks, gives));
    }
    bench::print(
        {.name = "cores.attacked", .unit = "us", .values = attacked, .peer_median = bench::median(quiet)});
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_figures(argc, argv, run);
}
