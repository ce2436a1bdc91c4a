// A stream of work whose intensity changes: watch the pool grow and shrink with it. Start two of them side by
// side, one a second late, and watch the cores move between them.
//
//   workers [--fixed] [seconds] [delay]   start the stream `delay` seconds late
//
// The CPUs come from the arbiter (one runs while `heddled` or anything under `heddle run` does); without one,
// or with --fixed, the pool has all that this process may use, as every other program does. Prints a line
// each tenth of a second: the time, how many items wait, workers, demand, and their CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "cores/arbiter_cpus.hpp"
#include "cores/fixed_cpus.hpp"
#include "cores/worker_pool.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using Seconds = std::chrono::duration<double>;

constexpr auto kItem = std::chrono::milliseconds(2);
constexpr auto kLine = std::chrono::milliseconds(100);

/// Items without content: each keeps a CPU busy for kItem.
class Stream : public WorkSource {
  public:
    bool run_one(Worker& worker) override {
        int waiting = waiting_.load();
        do {
            if (waiting == 0) return false;
        } while (!waiting_.compare_exchange_weak(waiting, waiting - 1));
        worker.found_work();
        const auto end = std::chrono::steady_clock::now() + kItem;
        while (std::chrono::steady_clock::now() < end) {
        }
        ++done_;
        return true;
    }
    bool may_have_work() noexcept override { return waiting_ > 0; }

    void bring(int items) { waiting_ += items; }
    [[nodiscard]] int waiting() const { return waiting_; }
    [[nodiscard]] int done() const { return done_; }

  private:
    std::atomic<int> waiting_ = 0;
    std::atomic<int> done_ = 0;
};

/// CPUs that the stream could keep busy: rises and falls, with a pause in between.
double intensity(Seconds time, int cpus) {
    return std::max(0.0, std::sin(time.count() * 2)) * cpus * 0.9;
}

double number(const char* text) {
    double value = 0;
    const char* end = text + std::strlen(text);
    const auto [stopped, problem] = std::from_chars(text, end, value);
    if (problem != std::errc() || stopped != end || value < 0 || value > 3600)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("'{}' is not a number of seconds from 0 to 3600", text));
    return value;
}

void run(CpuProvider& cpus, const Machine& machine, Seconds length, Seconds delay) {
    Stream stream;
    WorkerPoolOptions options;
    options.limits.idle_delay = std::chrono::milliseconds(20);
    WorkerPool pool(machine, cpus, stream, options);

    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] { return Seconds(std::chrono::steady_clock::now() - start); };
    double owed = 0;
    for (Seconds line{0}, last{0}; last < length;) {
        std::this_thread::sleep_for(kItem);
        const Seconds now = elapsed();
        if (now > delay) owed += intensity(now - delay, pool.capacity()) * ((now - last) / Seconds(kItem));
        last = now;
        if (owed >= 1) {
            stream.bring(static_cast<int>(owed));
            pool.work_arrived();
            owed -= std::floor(owed);
        }
        if (now < line) continue;
        line += kLine;
        fmt::print("{:6.2f} s  {:4} items wait  {:3} workers  demand {:3}  {:<12} |{:#<{}}\n", now.count(),
                   stream.waiting(), pool.workers(), pool.demand(), pool.occupied().to_list(), "",
                   pool.workers());
    }
    fmt::print("{} items done\n", stream.done());
}

}  // namespace

int main(int argc, char** argv) {
    try {
        bool fixed = false;
        std::vector<Seconds> times;
        for (int i = 1; i < argc; ++i)
            if (std::strcmp(argv[i], "--fixed") == 0)
                fixed = true;
            else
                times.emplace_back(number(argv[i]));
        const Seconds length = times.empty() ? Seconds(5) : times[0];
        const Seconds delay = times.size() < 2 ? Seconds(0) : times[1];

        const Machine machine = Machine::detect();
        if (fixed) {
            FixedCpus cpus(allowance(machine).usable);
            run(cpus, machine, length, delay);
        } else {
            ArbiterCpus cpus(machine, ArbiterClientOptions{}, "workers");
            run(cpus, machine, length, delay);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "workers: {}\n", error.what());
        return 1;
    }
}
