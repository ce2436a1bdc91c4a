#include "benchmarks.hpp"

namespace heddle::bench {
namespace {

const std::vector<std::string_view> kAll = {"os", "active", "passive", "static", "dlb"};

// One region with barriers: alone on two cores it takes 10 ms a thousand rounds.
Job long_region(std::string_view rounds, int start_ms = 0) {
    return {"barriers", {"--regions", "1", "--rounds", rounds, "--round-us", "20"}, start_ms};
}

// The same barriers in 1,000 regions of 1 ms of work each.
Job short_regions() {
    return {"barriers", {"--regions", "1000", "--rounds", "50", "--round-us", "20"}};
}

// Ten phases of 40 ms on one core or none, ten of 80 CPU-ms in 20 regions; the second program is out of
// phase.
Job phases(std::string_view blocked, std::string_view parallel_first) {
    return {"phases", {"--blocked", blocked, "--parallel-first", parallel_first}};
}

// Regions of 4 CPU-ms in chunks of 200 us and nothing between them.
Job regions(std::string_view count) {
    return {"phases", {"--phases", "1", "--parallel-first", "1", "--regions", count}};
}

Job blur() {
    return {"gm", {"convert", kPicture, "-blur", "0x15", "null:"}, 0, true};
}

}  // namespace

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> table = {
        {{{"cores.oversubscription", "best", 1.05}, {"cores.oversubscription_vs_default", "os", 0.1}},
         "two programs, a barrier every 20 us in one long region, started together",
         {long_region("30000"), long_region("30000")},
         kAll},
        {{{"cores.oversubscription_apart", "best", 1.05}},
         "the same, started 0.2 s apart",
         {long_region("50000"), long_region("50000", 200)},
         kAll},
        {{{"cores.oversubscription_regions", "best", 1.05}},
         "the same barriers in regions of 1 ms, started together",
         {short_regions(), short_regions()},
         kAll},
        {{{"cores.spin_barrier", "best"}},
         "two programs with a spin barrier of their own",
         {{"spin_barrier", {"--rounds", "5000"}}, {"spin_barrier", {"--rounds", "5000"}}},
         {"os", "static"}},
        {{{"cores.blocked", "best", 1.05}},
         "two programs out of phase: 40 ms asleep, 80 CPU-ms in parallel",
         {phases("1", "0"), phases("1", "1")},
         kAll},
        {{{"cores.serial", "best", 1.05}},
         "two programs out of phase: 40 ms serial, 80 CPU-ms in parallel",
         {phases("0", "0"), phases("0", "1")},
         kAll},
        {{{"cores.unequal", "best", 1.05}},
         "a job of 800 CPU-ms beside one of 100 CPU-ms",
         {regions("200"), regions("25")},
         kAll},
        {{{"cores.real", "best", 1.05}},
         "GraphicsMagick blurs a picture, twice at once",
         {blur(), blur()},
         kAll},
        {{{"cores.alone", "os", 1.01}}, "one program with barriers alone", {long_region("25000")}, {"os"}, 4},
        {{{"cores.start", "os", 1.0, Measure::kExtraTime}},
         "what /bin/true takes longer",
         {{"/bin/true", {}, 0, true}},
         {"os"},
         10},
    };
    return table;
}

const std::vector<Figure>& figures() {
    static const std::vector<Figure> table = {
        {"cores.lend", 60, "ns", "lend and reclaim a CPU inside a process, a second thread alive"},
        {"cores.borrow_fails", 20, "ns", "a borrow that finds nothing"},
        {"cores.handover", 3, "us",
         "release to the taker's first instruction on that core, waiting actively"},
        {"cores.handover_seen", 0.5, "us", "release to its being seen"},
        {"cores.handover_asleep", 0, "us",
         "the same with the taker asleep; limit: a bare futex wake and 5 us"},
        {"cores.scale", 1, "ms", "a rebalance with 1,024 CPUs and 256 clients"},
        {"tasks.switch", 20, "ns", "one switch between fibers that compute with floating point"},
        {"tasks.switch_vs_boost", 0, "ns", "the same, beside Boost.Context's jump_fcontext", "boost"},
        {"tasks.switch_alike_vs_boost", 0, "ns", "the same, all results inexact, so that MXCSR is equal",
         "boost"},
    };
    return table;
}

}  // namespace heddle::bench
