// loops: oneTBB loops for some seconds, then "concurrency C most M": the CPUs that TBB believes in, and the
// most threads that worked at once in the second half of the time. `loops SECONDS [LIMIT]` sets a limit of
// its own. `loops SECONDS LIMIT each` prints "most M" for each tenth of a second in place of that.
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {
std::atomic<int> working{0};
std::atomic<int> most{0};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void step(int) {
    const int at_once = ++working;
    for (int seen = most; at_once > seen && !most.compare_exchange_weak(seen, at_once);) {
    }
    for (const double end = now() + 0.0005; now() < end;) {
    }
    --working;
}
}  // namespace

namespace {
void print_each_tenth(double seconds, int threads) {
    tbb::task_arena arena(threads);
    for (const double end = now() + seconds; now() < end;) {
        most = 0;
        for (const double next = now() + 0.1; now() < next;)
            arena.execute([] { tbb::parallel_for(0, 40, step); });
        std::printf("most %d\n", most.load());
        std::fflush(stdout);
    }
}
}  // namespace

int main(int count, char** words) {
    const double seconds = count > 1 ? std::atof(words[1]) : 0.2;
    std::unique_ptr<tbb::global_control> own;
    if (count > 2)
        own = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<size_t>(std::atoi(words[2])));
    if (count > 3) {
        print_each_tenth(seconds, std::atoi(words[2]));
        return 0;
    }
    const double half = now() + seconds / 2;
    const double end = now() + seconds;
    bool reset = false;
    while (now() < end) {
        if (!reset && now() > half) {
            most = 0;
            reset = true;
        }
        tbb::parallel_for(0, 40, step);
    }
    std::printf("concurrency %d most %d\n", tbb::info::default_concurrency(), most.load());
}
