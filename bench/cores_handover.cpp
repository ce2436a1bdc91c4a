// A CPU handed from one process to another that waits for it, through ArbiterClient and a real arbiter.
//
// cores.handover: from the release to the taker's first instruction on that very core; the lender's thread
// and the taker's are both bound to it, and the taker waits actively. cores.handover_asleep: the same with
// the taker asleep; its limit is a bare futex wake between two such threads, measured in the same run, and 5
// us. cores.handover_seen: until a taker that waits actively on another core sees the release. Where DLB_HOME
// is set, the last two stand beside what DLB takes (dlb_handover.hpp).
//
// A pair of processes hands one CPU to and fro; the arbiter, a thread of the parent, only names successors
// and hears of it later. With one core there is no other to see anything from: cores.handover_seen is left
// out.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "arbiter_process.hpp"
#include "base/scratch_folder.hpp"
#include "cores/arbiter_client.hpp"
#include "cores/futex.hpp"
#include "dlb_handover.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using namespace std::chrono_literals;

int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

constexpr int kMostSamples = 20000;

/// What the two processes share besides the protocol's pages.
struct Shared {
    std::atomic<int64_t> released_at;
    std::atomic<int> count;
    std::atomic<uint32_t> turn;  // of the bare futex
    double microseconds[kMostSamples];

    void record() {
        const int64_t seen = now_ns();
        const int64_t released = released_at.load(std::memory_order_relaxed);
        const int at = count.load(std::memory_order_relaxed);
        if (at >= kMostSamples || released == 0) return;
        microseconds[at] = static_cast<double>(seen - released) / 1e3;
        count.store(at + 1, std::memory_order_relaxed);
    }
    [[nodiscard]] bool enough(int samples) const { return count.load(std::memory_order_relaxed) >= samples; }
};

std::vector<double> samples_of(const Shared& shared, int samples) {
    return {shared.microseconds, shared.microseconds + std::min(samples, shared.count.load())};
}

struct Setting {
    int cpu;         ///< the one that is handed over
    int threads[2];  ///< where each side's thread runs
    int others;      ///< where the arbiter and the clients' link threads run
    Nanoseconds active;
    bool both_ways;  ///< samples of both directions, or of 0 to 1 alone
};

/// Lends the CPU as soon as somebody is named for it; false when there are enough samples.
bool hand_over(ArbiterClient& client, Shared& shared, int cpu, int samples) {
    // What was just handed to us goes on only once the arbiter has heard of it: lending it tells the arbiter.
    shared.released_at.store(0, std::memory_order_relaxed);
    if (client.lend(cpu) == ArbiterClient::Lent::kHandedOver || !client.reclaim(cpu)) return true;
    std::this_thread::sleep_for(300us);
    while (!shared.enough(samples)) {
        // Who releases a CPU has been at work on it: its caches are warm.
        for (const int64_t until = now_ns() + 5'000; now_ns() < until;) (void)client.holds(cpu);
        shared.released_at.store(now_ns(), std::memory_order_relaxed);
        const auto lent = client.lend(cpu);
        if (lent == ArbiterClient::Lent::kHandedOver) return true;
        shared.released_at.store(0, std::memory_order_relaxed);
        if (lent == ArbiterClient::Lent::kLent && !client.reclaim(cpu)) return true;
        std::this_thread::sleep_for(300us);
    }
    return false;
}

std::vector<double> measure(const std::string& folder, const Setting& setting, int samples) {
    Shared& shared = bench::shared_with_children<Shared>();
    const std::string path = folder + "/arbiter.sock";
    std::filesystem::remove(path);
    const bench::ArbiterProcess arbiter(path, "core:64 pu:1", setting.others);
    bench::in_two_processes([&](int side) {
        bench::bind_to(setting.others);
        ArbiterClientOptions options;
        options.name = side == 0 ? "lender" : "taker";
        options.allowed = {setting.cpu};
        options.path = path;
        ArbiterClient client(options, {});
        if (!client.managed()) throw Error(ErrorCode::kUnavailable, client.problem());
        bench::bind_to(setting.threads[side]);
        const auto deadline =
            std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now()) + 60s;
        bool first = true;
        while (!shared.enough(samples)) {
            if (!client.holds(setting.cpu)) {
                const auto soon =
                    std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now()) + 100ms;
                if (!client.wait_for(setting.cpu, setting.active, soon)) {
                    if (soon > deadline) throw Error(ErrorCode::kUnavailable, "the CPU does not come");
                    continue;
                }
                if (!first && (setting.both_ways || side == 1)) shared.record();
            }
            first = false;
            if (!hand_over(client, shared, setting.cpu, samples)) break;
        }
    });
    return samples_of(shared, samples);
}

/// Two threads on one core that wake each other by a futex and nothing else.
std::vector<double> measure_bare_futex(int cpu, int samples) {
    Shared& shared = bench::shared_with_children<Shared>();
    bench::in_two_processes([&](int side) {
        bench::bind_to(cpu);
        const auto own = static_cast<uint32_t>(side);
        while (!shared.enough(samples)) {
            for (uint32_t turn = shared.turn.load(); turn != own; turn = shared.turn.load())
                futex_wait(shared.turn, turn, Time::max());
            shared.record();
            shared.released_at.store(now_ns(), std::memory_order_relaxed);
            shared.turn.store(1 - own);
            futex_wake(shared.turn, 1);
        }
        shared.turn.store(1 - own);
        futex_wake(shared.turn, 1);
    });
    return samples_of(shared, samples);
}

void beside_dlb(const char* name, const std::vector<double>& ours, bool asleep, int lender, int taker,
                int samples) {
    const char* const home = std::getenv("DLB_HOME");
    if (home == nullptr)
        return bench::print_skipped(name, "DLB was not found; set DLB_HOME to where it is installed");
    if (lender == taker) return bench::print_skipped(name, "DLB's two processes want a CPU each");
    const std::string library = std::string(home) + "/lib/libdlb.so";
    const double dlb = bench::median(bench::dlb_handovers(library, asleep, lender, taker, samples));
    bench::print({.name = name, .unit = "us", .values = ours, .peer_median = dlb});
}

void run(bool quick) {
    const int samples = quick ? 200 : 2000;
    const ScratchFolder folder;
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 64; ++cpu)
        if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cpus.push_back(cpu);
    const int last = cpus.back(), first = cpus.front();
    const auto print = [&](const char* name, const Setting& setting, double limit = 0) {
        std::vector<double> values = measure(folder.path(), setting, samples);
        bench::print({.name = name, .unit = "us", .values = values, .limit = limit});
        return values;
    };
    print("cores.handover", {last, {last, last}, first, 10s, true});
    std::vector<double> seen;
    if (first != last) seen = print("cores.handover_seen", {last, {last, first}, last, 10s, false});
    const double bare = bench::median(measure_bare_futex(last, samples));
    const std::vector<double> asleep =
        print("cores.handover_asleep", {last, {last, last}, first, 0s, true}, bare + 5);
    beside_dlb("cores.handover_seen_vs_dlb", seen, false, last, first, samples);
    beside_dlb("cores.handover_asleep_vs_dlb", asleep, true, last, first, samples);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_figures(argc, argv, run);
}
