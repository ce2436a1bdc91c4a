// features: what programs do with OpenMP, each with a result that does not depend on how many threads there
// are. `features SECONDS` does all of it again and again, and prints "NAME RESULT" once for each; a result
// that is another one in a later round is printed as well, and makes the exit code 1.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kCount = 2000;

long parallel_for_schedules() {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static, 7)
    for (int i = 0; i < kCount; ++i) sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic)
    for (int i = 0; i < kCount; ++i) sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(monotonic : dynamic, 3)
    for (int i = 0; i < kCount; ++i) sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(guided)
    for (int i = 0; i < kCount; ++i) sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(auto)
    for (int i = 0; i < kCount; ++i) sum += i;
    omp_set_schedule(omp_sched_dynamic, 5);
#pragma omp parallel for reduction(+ : sum) schedule(runtime)
    for (unsigned long long i = 0; i < kCount; ++i) sum += static_cast<long>(i);
#pragma omp parallel for collapse(2) reduction(+ : sum)
    for (int i = 0; i < 40; ++i)
        for (int j = 0; j < 50; ++j) sum += i * j;
#pragma omp parallel for if (sum < 0) reduction(+ : sum)
    for (int i = 0; i < kCount; ++i) sum += i;
    return sum;
}

long reductions() {
    std::vector<long> parts(8, 0);
    long* at = parts.data();
    long largest = 0, bits = 0, product = 1;
#pragma omp parallel for reduction(+ : at[:8]) reduction(max : largest) reduction(| : bits)
    for (int i = 0; i < kCount; ++i) {
        at[i % 8] += i;
        largest = largest > i ? largest : i;
        bits |= i;
    }
#pragma omp parallel for reduction(* : product)
    for (int i = 1; i <= 15; ++i) product *= i;
    long last = 0;
#pragma omp parallel for lastprivate(last)
    for (int i = 0; i < kCount; ++i) last = i;
    return parts[3] + largest + bits + product + last;
}

long fibonacci(int n) {
    if (n < 2) return n;
    long a = 0, b = 0;
#pragma omp task shared(a) firstprivate(n) final(n < 5)
    a = fibonacci(n - 1);
#pragma omp task shared(b) firstprivate(n) untied
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

long tasks() {
    long result = 0;
#pragma omp parallel
#pragma omp single
    result = fibonacci(12);
    return result;
}

long dependent_tasks() {
    long value = 1, copy = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 50; ++i) {
#pragma omp task depend(inout : value) priority(i)
            value = (value * 31 + 7) % 100003;
        }
#pragma omp task depend(in : value) depend(out : copy)
        copy = value;
#pragma omp taskyield
    }
    return copy;
}

long taskloops() {
    long sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(13) reduction(+ : sum)
        for (int i = 0; i < kCount; ++i) sum += i;
#pragma omp taskloop num_tasks(9) shared(sum)
        for (int i = 0; i < 100; ++i) {
#pragma omp atomic
            sum += i;
        }
    }
    return sum;
}

long taskgroups() {
    long sum = 0, deep = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < 60; ++i) {
#pragma omp task in_reduction(+ : sum) shared(deep)
            {
                sum += i;
#pragma omp task shared(deep)
                {
#pragma omp atomic
                    ++deep;
                }
            }
        }
        if (deep != 60) sum = -1;
    }
    return sum;
}

long teams() {
    long sum = 0;
#pragma omp teams num_teams(3) thread_limit(2) reduction(+ : sum)
    {
#pragma omp distribute parallel for reduction(+ : sum)
        for (int i = 0; i < kCount; ++i) sum += i;
    }
    return sum;
}

long nested() {
    omp_set_max_active_levels(2);
    long inner = 0, wrong = 0, rounds = 0;
#pragma omp parallel reduction(+ : inner, wrong) shared(rounds)
    {
#pragma omp for
        for (int i = 0; i < 4; ++i) {
#pragma omp parallel num_threads(2) reduction(+ : inner)
            {
                if (omp_get_num_threads() == 2 && omp_get_thread_num() == 1) ++inner;
            }
            if (omp_get_level() != 1) ++wrong;
        }
#pragma omp single
        ++rounds;
    }
    omp_set_max_active_levels(1);
    return inner * 100 + wrong * 10 + rounds;
}

long sections() {
    long done = 0;
#pragma omp parallel sections reduction(+ : done)
    {
#pragma omp section
        done += 1;
#pragma omp section
        done += 10;
#pragma omp section
        done += 100;
    }
    return done;
}

long ordered() {
    long value = 1;
#pragma omp parallel for ordered schedule(dynamic)
    for (int i = 0; i < 200; ++i) {
#pragma omp ordered
        value = (value * 17 + i) % 1000003;
    }
    return value;
}

long doacross() {
    std::vector<long> cells(200, 1);
#pragma omp parallel for ordered(1) schedule(static, 3)
    for (int i = 1; i < 200; ++i) {
#pragma omp ordered depend(sink : i - 1)
        cells[static_cast<size_t>(i)] = (cells[static_cast<size_t>(i - 1)] * 13 + i) % 100003;
#pragma omp ordered depend(source)
    }
    return cells[199];
}

long copyprivate() {
    long wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        long mine = 0;
#pragma omp single copyprivate(mine)
        mine = 4711;
        if (mine != 4711) ++wrong;
    }
    return wrong;
}

long cancellation() {
    long found = 0;
    long after = 0;
#pragma omp parallel shared(found) reduction(+ : after)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 1000000; ++i) {
#pragma omp cancellation point for
            if (i == 500) {
#pragma omp atomic write
                found = i;
#pragma omp cancel for
            }
        }
#pragma omp master
        ++after;
    }
    long begun = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
    for (int i = 0; i < 100; ++i) {
#pragma omp task shared(begun)
        {
            if (i == 0) {
#pragma omp atomic
                ++begun;
#pragma omp cancel taskgroup
            }
        }
    }
#pragma omp parallel
    {
#pragma omp cancel parallel
        /* Not reached where cancellation is on. */
#pragma omp atomic
        begun += 1000;
    }
    return found * 10 + after + begun * (omp_get_cancellation() != 0 ? 1 : -1);
}

long exceptions() {
    long caught = 0;
#pragma omp parallel for reduction(+ : caught)
    for (int i = 0; i < 100; ++i) {
        try {
            if (i % 3 == 0) throw std::runtime_error(std::to_string(i));
        } catch (const std::runtime_error& error) {
            caught += std::stol(error.what());
        }
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 20; ++i) {
#pragma omp task shared(caught)
        try {
            throw i;
        } catch (const int number) {
#pragma omp atomic
            caught += number;
        }
    }
    return caught;
}

int private_value = 0;
#pragma omp threadprivate(private_value)

// Threadprivate data with an explicit number: the team has to have it.
long threadprivate_copyin() {
    long sum = 0;
    private_value = 21;
#pragma omp parallel num_threads(3) copyin(private_value) reduction(+ : sum)
    {
        sum += private_value + omp_get_num_threads();
        private_value = 100 + omp_get_thread_num();
    }
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum += private_value;
    return sum;
}

// The runtime may now choose smaller teams itself; the result may not care.
long dynamic_teams() {
    omp_set_dynamic(1);
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < kCount; ++i) sum += i;
    const int on = omp_get_dynamic();
    omp_set_dynamic(0);
    return sum + on;
}

long locks() {
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    long counts[3] = {0, 0, 0};
#pragma omp parallel for
    for (int i = 0; i < 300; ++i) {
        omp_set_lock(&lock);
        ++counts[0];
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        ++counts[1];
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
#pragma omp critical(third)
        ++counts[2];
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    return counts[0] + counts[1] + counts[2];
}

// OpenMP 5: scans, loops without a schedule, tasks that somebody else ends, waits for dependences.
long newer() {
    std::vector<long> sums(500);
    long sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < 500; ++i) {
        sum += i;
#pragma omp scan inclusive(sum)
        sums[static_cast<size_t>(i)] = sum;
    }
    long looped = 0;
#pragma omp parallel
#pragma omp loop reduction(+ : looped)
    for (int i = 0; i < kCount; ++i) looped += i;
    long detached = 0, ready = 0;
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event) shared(detached)
        detached = 1;
#pragma omp task firstprivate(event)
        omp_fulfill_event(event);
#pragma omp task depend(out : ready)
        ready = 5;
#pragma omp taskwait depend(in : ready)
        looped += ready;
    }
    long affine = 0;
#pragma omp parallel proc_bind(close) reduction(max : affine)
    affine = 7;
    return sums[499] + looped + detached + affine;
}

// The runtime's own answers agree with each other in every team.
long answers() {
    long wrong = 0, threads = 0, size = 0;
#pragma omp parallel reduction(+ : wrong, threads) shared(size)
    {
        ++threads;
#pragma omp single
        size = omp_get_num_threads();
        if (omp_get_thread_num() >= omp_get_num_threads() || omp_get_ancestor_thread_num(0) != 0) ++wrong;
        if (omp_get_team_size(1) != omp_get_num_threads()) ++wrong;
    }
    return wrong + (threads == size && size <= omp_get_max_threads() ? 0 : 1000);
}

struct Feature {
    const char* name;
    long (*compute)();
};
constexpr Feature kFeatures[] = {
    {"schedules", parallel_for_schedules},
    {"reductions", reductions},
    {"tasks", tasks},
    {"depend", dependent_tasks},
    {"taskloop", taskloops},
    {"taskgroup", taskgroups},
    {"teams", teams},
    {"nested", nested},
    {"sections", sections},
    {"ordered", ordered},
    {"doacross", doacross},
    {"copyprivate", copyprivate},
    {"cancellation", cancellation},
    {"exceptions", exceptions},
    {"copyin", threadprivate_copyin},
    {"dynamic", dynamic_teams},
    {"locks", locks},
    {"newer", newer},
    {"answers", answers},
};

}  // namespace

int main(int count, char** words) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(count > 1 ? std::atof(words[1]) : 0);
    std::map<std::string, long> results;
    int differences = 0;
    do {
        for (const Feature& feature : kFeatures) {
            const long result = feature.compute();
            const auto [place, is_new] = results.emplace(feature.name, result);
            if (!is_new && place->second == result) continue;
            std::printf("%s %ld\n", feature.name, result);
            if (!is_new) ++differences;
        }
    } while (Clock::now() < end);
    return differences == 0 ? 0 : 1;
}
