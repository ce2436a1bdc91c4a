// cores.scale: what a rebalance of the arbiter's state machine costs, with 1,024 CPUs and 256 clients and
// with less of both.
//
// Every client wants more CPUs than it gets, so each event makes the arbiter compute all targets, choose
// CPUs, and revoke, grant and name successors. An event is one of: a client's demand changes, a client obeys,
// a client leaves and another comes. cores.scale is the median with 256 clients, cores.scale_<clients> with
// fewer. cores.scale_growth is how much more than n log n the cost has grown from 32 clients to 256, for n =
// clients + CPUs moved in a rebalance: 1 or less is n log n or better.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "arbiter/arbiter.hpp"
#include "figures.hpp"

namespace {

using namespace heddle;
using namespace std::chrono_literals;

struct Figures {
    std::vector<double> milliseconds;
    double moved = 0;  // CPUs a rebalance, on average
};

class Load {
  public:
    Load(const std::string& topology, int cpus, int clients)
        : cpus_(cpus),
          clients_(clients),
          arbiter_(Machine::synthetic(topology), make_policy("proportional"),
                   ArbiterLimits{.clients = clients, .clients_per_user = clients}, now_) {
        for (int i = 0; i < clients; ++i) join();
        settle();
    }

    Figures run(int rounds) {
        Figures figures;
        long moved = 0;
        for (int round = 0; round < rounds; ++round) {
            now_ += 1ms;
            double took = 0;
            moved_ = 0;
            took += timed([&] { change(); });
            took += settle();
            figures.milliseconds.push_back(took / std::max(1, rebalances_));
            moved += moved_ / std::max(1, rebalances_);
            rebalances_ = 0;
        }
        figures.moved = static_cast<double>(moved) / rounds;
        return figures;
    }

  private:
    template <class Work>
    double timed(Work work) {
        const auto start = std::chrono::steady_clock::now();
        work();
        ++rebalances_;
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    void join() {
        Registration registration;
        registration.demand =
            1 + static_cast<int>(random_() % static_cast<unsigned>(2 * cpus_ / clients_ + 1));
        ClientId id;
        if (arbiter_.join(registration, now_, id) != Refusal::kNone)
            throw std::logic_error("the arbiter refused a client that the benchmark counts on");
        ids_.push_back(id);
        arbiter_.hands_over(id, now_);
    }
    void change() {
        const size_t which = random_() % ids_.size();
        if (random_() % 4 == 0) {
            arbiter_.leave(ids_[which], false, now_);
            ids_.erase(ids_.begin() + static_cast<long>(which));
            join();
            return;
        }
        const int demand = static_cast<int>(random_() % static_cast<unsigned>(4 * cpus_ / clients_ + 1));
        arbiter_.observe(ids_[which], demand, now_ - 1s, true, now_);
    }
    /// Everybody obeys; returns the time that the arbiter took for it.
    double settle() {
        double took = 0;
        for (auto actions = arbiter_.take_actions(); !actions.empty(); actions = arbiter_.take_actions())
            for (const auto& action : actions) {
                if (const auto* event = std::get_if<Event>(&action))
                    moved_ += event->kind == Event::Kind::kCpu ? 1 : 0;
                const auto* publish = std::get_if<Publish>(&action);
                if (publish == nullptr || !publish->leaving) continue;
                took += timed([&] { arbiter_.obeyed(publish->client, publish->epoch, now_); });
            }
        return took;
    }

    int cpus_, clients_;
    std::mt19937 random_{1};
    Time now_{1h};
    Arbiter arbiter_;
    std::vector<ClientId> ids_;
    int moved_ = 0;
    int rebalances_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_figures(argc, argv, [](bool quick) {
        double least = 0, base = 0;
        for (const int clients : {32, 64, 128, 256}) {
            const Figures figures = Load("numa:8 core:64 pu:2", 1024, clients).run(quick ? 50 : 500);
            const double n = clients + figures.moved;
            const double cost = bench::median(figures.milliseconds);
            if (least == 0) {
                least = cost;
                base = n * std::log2(n);
            }
            std::string name = "cores.scale";
            if (clients < 256) name.append("_").append(std::to_string(clients));
            bench::print({.name = name, .unit = "ms", .values = figures.milliseconds});
            if (clients == 256)
                bench::print({.name = "cores.scale_growth",
                              .unit = "x",
                              .values = {cost / least / (n * std::log2(n) / base)}});
        }
    });
}
