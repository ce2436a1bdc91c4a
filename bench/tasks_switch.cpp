// tasks.switch: from one fiber to another and on, each in a loop of the same code that computes a little and
// pauses, as tasks of an engine do. tasks.switch_vs_boost: the same loops on Boost.Context's jump_fcontext.
// There one fiber's results are exact and the other's are not, so their MXCSR differ, which Boost reloads at
// each switch; tasks.switch_alike_vs_boost has two fibers with inexact results.
#include <cfenv>
#include <chrono>
#include <string>
#include <vector>

#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"
#include "figures.hpp"
#ifdef HEDDLE_BENCH_BOOST
#include <boost/context/detail/fcontext.hpp>
#endif

namespace {

using namespace heddle::bench;
using heddle::Fiber;

struct Work {
    double value = 1;
    double factor = 1;
    int switches = 0;

    void compute() { value = value * factor; }
};

/// Two fibers that switch to each other, begun and ended by the flow of the thread.
class Ours {
  public:
    Ours(heddle::StackPool& pool, double first, double second)
        : cache_(pool), work_{{1, first}, {1, second}} {}

    void run(int switches) {
        heddle::Stack* stacks[2] = {&cache_.take(), &cache_.take()};
        Fiber first(
            stacks[0]->span(), [](void* self) { static_cast<Ours*>(self)->loop(0); }, this);
        Fiber second(
            stacks[1]->span(), [](void* self) { static_cast<Ours*>(self)->loop(1); }, this);
        fibers_[0] = &first;
        fibers_[1] = &second;
        for (Work& work : work_) work.switches = switches / 2;
        Fiber::switch_to(main_, first);
        for (heddle::Stack* stack : stacks) cache_.give_back(*stack);
    }

  private:
    [[gnu::noinline]] void pause(int index) { Fiber::switch_to(*fibers_[index], *fibers_[1 - index]); }

    void loop(int index) {
        Work& work = work_[index];
        for (int i = 0; i < work.switches; ++i) {
            work.compute();
            pause(index);
        }
        Fiber::exit_to(*fibers_[index], main_);
    }

    heddle::StackCache cache_;
    Fiber main_;
    Fiber* fibers_[2] = {};
    Work work_[2];
};

#ifdef HEDDLE_BENCH_BOOST
namespace boost_context = boost::context::detail;

class Boosts {
  public:
    Boosts(heddle::StackPool& pool, double first, double second)
        : cache_(pool), work_{{1, first}, {1, second}} {}

    void run(int switches) {
        heddle::Stack* stacks[2] = {&cache_.take(), &cache_.take()};
        for (int i = 0; i < 2; ++i) {
            // Each begins once and waits, so that the loops need no other case.
            const auto fresh =
                boost_context::make_fcontext(stacks[i]->span().top, 0, i == 0 ? begin<0> : begin<1>);
            contexts_[i] = boost_context::jump_fcontext(fresh, this).fctx;
            work_[i].switches = switches / 2;
        }
        boost_context::jump_fcontext(contexts_[0], nullptr);
        for (heddle::Stack* stack : stacks) cache_.give_back(*stack);
    }

  private:
    [[gnu::noinline]] void pause(int index) {
        contexts_[1 - index] = boost_context::jump_fcontext(contexts_[1 - index], nullptr).fctx;
    }

    template <int kIndex>
    static void begin(boost_context::transfer_t from) {
        auto* const self = static_cast<Boosts*>(from.data);
        const auto by = boost_context::jump_fcontext(from.fctx, nullptr).fctx;
        if (kIndex == 0)
            self->main_ = by;
        else
            self->contexts_[0] = by;
        self->loop(kIndex);
    }

    void loop(int index) {
        Work& work = work_[index];
        for (int i = 0; i < work.switches; ++i) {
            work.compute();
            pause(index);
        }
        boost_context::jump_fcontext(main_, nullptr);
    }

    heddle::StackCache cache_;
    boost_context::fcontext_t main_ = nullptr;
    boost_context::fcontext_t contexts_[2] = {};
    Work work_[2];
};
#endif

/// What one switch takes in a run of so many.
template <class Contestant>
double measure(Contestant contestant, int switches) {
    using Clock = std::chrono::steady_clock;
    std::feclearexcept(FE_ALL_EXCEPT);
    const Clock::time_point start = Clock::now();
    contestant.run(switches);
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    return took.count() / switches;
}

void run(bool quick) {
    const int switches = quick ? 20'000 : 400'000;
    constexpr int kBatches = 31;
    heddle::StackPool pool;

    struct Kind {
        const char* name;
        double first, second;
    };
    for (const Kind& kind : {Kind{"switch", 1, 1.0000001}, Kind{"switch_alike", 1.0000001, 1.0000001}}) {
        std::vector<double> ours, boosts;
        for (int batch = -1; batch < kBatches; ++batch) {  // the first warms up
            const double one = measure(Ours(pool, kind.first, kind.second), switches);
            if (batch >= 0) ours.push_back(one);
#ifdef HEDDLE_BENCH_BOOST
            const double other = measure(Boosts(pool, kind.first, kind.second), switches);
            if (batch >= 0) boosts.push_back(other);
#endif
        }
        const std::string name = std::string("tasks.") + kind.name;
        if (kind.first != kind.second) print({.name = name, .unit = "ns", .values = ours});
        if (!boosts.empty())
            print({.name = name + "_vs_boost", .unit = "ns", .values = ours, .peer_median = median(boosts)});
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
