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
        {"cores_lend", "cores.lend", 60, "ns",
         "lend and reclaim a CPU inside a process, a second thread alive"},
        {"cores_lend", "cores.borrow_fails", 20, "ns", "a borrow that finds nothing"},
        {"cores_handover", "cores.handover", 3, "us",
         "release to the taker's first instruction on that core, waiting actively"},
        {"cores_handover", "cores.handover_seen", 0.5, "us", "release to its being seen"},
        {"cores_handover", "cores.handover_asleep", 0, "us",
         "the same with the taker asleep; limit: a bare futex wake and 5 us"},
        {"cores_scale", "cores.scale", 1, "ms", "a rebalance with 1,024 CPUs and 256 clients"},
        {"tasks_switch", "tasks.switch", 20, "ns",
         "one switch between fibers that compute with floating point"},
        {"tasks_switch", "tasks.switch_vs_boost", 0, "ns", "the same, beside Boost.Context's jump_fcontext",
         "boost"},
        {"tasks_switch", "tasks.switch_alike_vs_boost", 0, "ns",
         "the same, all results inexact, so that MXCSR is equal", "boost"},
        {"tasks_pause", "tasks.pause", 100, "ns",
         "a task pauses and goes on, floating point in between, 1 worker, 2 tasks in turn"},
        {"tasks_pause", "tasks.pause_64", 100, "ns", "the same, 64 tasks in a ring"},
        {"tasks_pause", "tasks.pause_100000", 0, "ns",
         "100,000 tasks that are all paused at once, from insertion to end, a task"},
        {"tasks_graph", "tasks.independent", 0.5, "ns", "1e6 empty tasks, a task, 1 worker", "best"},
        {"tasks_graph", "tasks.independent_2", 0.5, "ns", "the same, 2 workers", "best"},
        {"tasks_graph", "tasks.chain", 0.6, "ns", "1e5 empty tasks that all write one datum, 1 worker",
         "best"},
        {"tasks_graph", "tasks.chain_2", 0.6, "ns", "the same, 2 workers", "best"},
        {"tasks_graph", "tasks.cholesky", 0.8, "ns", "the 11,480 tasks of a tile Cholesky, empty, 1 worker",
         "best"},
        {"tasks_graph", "tasks.cholesky_2", 0.8, "ns", "the same, 2 workers", "best"},
        {"tasks_graph", "tasks.chain_vs_tbb_inline", 0, "ns", "tasks.chain against this peer", "tbb_inline"},
        {"tasks_graph", "tasks.cholesky_vs_tbb_inline", 0, "ns", "tasks.cholesky against this peer",
         "tbb_inline"},
        {"tasks_graph", "tasks.independent_2_vs_libgomp", 0, "ns", "tasks.independent_2 against this peer",
         "libgomp"},
        {"tasks_graph", "tasks.independent_2_vs_libomp", 0, "ns", "tasks.independent_2 against this peer",
         "libomp"},
        {"tasks_graph", "tasks.chain_2_vs_tbb", 0, "ns", "tasks.chain_2 against this peer", "tbb"},
        {"tasks_graph", "tasks.chain_2_vs_tbb_inline", 0, "ns", "tasks.chain_2 against this peer",
         "tbb_inline"},
        {"tasks_graph", "tasks.chain_2_vs_libgomp", 0, "ns", "tasks.chain_2 against this peer", "libgomp"},
        {"tasks_graph", "tasks.chain_2_vs_libomp", 0, "ns", "tasks.chain_2 against this peer", "libomp"},
        {"tasks_graph", "tasks.cholesky_2_vs_tbb", 0, "ns", "tasks.cholesky_2 against this peer", "tbb"},
        {"tasks_graph", "tasks.cholesky_2_vs_tbb_inline", 0, "ns", "tasks.cholesky_2 against this peer",
         "tbb_inline"},
        {"tasks_graph", "tasks.cholesky_2_vs_libgomp", 0, "ns", "tasks.cholesky_2 against this peer",
         "libgomp"},
        {"tasks_graph", "tasks.cholesky_2_vs_libomp", 0, "ns", "tasks.cholesky_2 against this peer",
         "libomp"},
        {"tasks_graph", "tasks.second_worker", 1.25, "x", "tasks.independent with 2 workers over 1"},
        {"tasks_graph", "tasks.second_worker_chain", 1.25, "x", "the same of tasks.chain"},
        {"tasks_graph", "tasks.second_worker_cholesky", 1.25, "x", "the same of tasks.cholesky"},
        {"tasks_graph", "tasks.efficiency", 0.8, "of 1", "2 workers' time that is spent in tasks of 2 us",
         "limit", true},
        {"tasks_graph", "tasks.efficiency_vs_tbb", 0, "of 1", "the same", "tbb", true},
        {"tasks_replay", "tasks.replay", 118, "ns",
         "the tasks of tasks.cholesky, recorded once and replayed; the limit is Taskflow's, measured apart"},
        {"tasks_replay", "tasks.replay_2", 148, "ns", "the same, 2 workers"},
        {"tasks_replay", "tasks.replay_vs_tbb_flow", 0, "ns", "tasks.replay against a flow graph of oneTBB's",
         "tbb_flow"},
        {"tasks_replay", "tasks.replay_2_vs_tbb_flow", 0, "ns", "the same, 2 workers", "tbb_flow"},
        {"tasks_metg", "tasks.metg", 0.8, "us",
         "smallest tasks that fill half of 2 workers' time, worst of:", "best"},
        {"tasks_metg", "tasks.metg_stencil", 0.8, "us", "the same where tasks read from their neighbours",
         "best"},
        {"tasks_metg", "tasks.metg_tree", 0.8, "us", "from their parent in a tree", "best"},
        {"tasks_metg", "tasks.metg_fft", 0.8, "us", "from partners as in an FFT", "best"},
        {"tasks_metg", "tasks.metg_all_to_all", 0.8, "us", "from all tasks of the row before", "best"},
        {"tasks_metg", "tasks.metg_stencil_vs_tbb_inline", 0, "us", "tasks.metg_stencil against this peer",
         "tbb_inline"},
        {"tasks_metg", "tasks.metg_tree_vs_tbb_inline", 0, "us", "tasks.metg_tree against this peer",
         "tbb_inline"},
        {"tasks_metg", "tasks.metg_fft_vs_tbb_inline", 0, "us", "tasks.metg_fft against this peer",
         "tbb_inline"},
        {"tasks_metg", "tasks.metg_all_to_all_vs_tbb_inline", 0, "us",
         "tasks.metg_all_to_all against this peer", "tbb_inline"},
        {"tasks_overhead", "tasks.overhead.openmp", 1.03, "ns",
         "empty tasks of a tile Cholesky over OpenMP's pragmas on libgomp", "own"},
        {"tasks_overhead", "tasks.overhead.openmp.tiles", 1.01, "ns", "the same of 50 us", "own"},
        {"tasks_overhead", "tasks.overhead.openmp.insert", 0, "ns", "of this, an insertion", "own"},
        {"tasks_overhead", "tasks.overhead.openmp.management", 0, "ns", "and until a task begins that could",
         "own"},
        {"tasks_overhead", "tasks.overhead.openmp.ks", 1, "x",
         "Kolmogorov-Smirnov distance of these latencies by the critical one"},
        {"tasks_overhead", "tasks.overhead.openmp-libomp", 1.03, "ns",
         "empty tasks of a tile Cholesky over the same on libomp", "own"},
        {"tasks_overhead", "tasks.overhead.openmp-libomp.tiles", 1.01, "ns", "the same of 50 us", "own"},
        {"tasks_overhead", "tasks.overhead.openmp-libomp.insert", 0, "ns", "of this, an insertion", "own"},
        {"tasks_overhead", "tasks.overhead.openmp-libomp.management", 0, "ns",
         "and until a task begins that could", "own"},
        {"tasks_overhead", "tasks.overhead.openmp-libomp.ks", 1, "x",
         "Kolmogorov-Smirnov distance of these latencies by the critical one"},
        {"tasks_overhead", "tasks.overhead.tbb", 1.03, "ns",
         "empty tasks of a tile Cholesky over a graph written by hand on oneTBB", "own"},
        {"tasks_overhead", "tasks.overhead.tbb.tiles", 1.01, "ns", "the same of 50 us", "own"},
        {"tasks_overhead", "tasks.overhead.tbb.insert", 0, "ns", "of this, an insertion", "own"},
        {"tasks_overhead", "tasks.overhead.tbb.management", 0, "ns", "and until a task begins that could",
         "own"},
        {"tasks_overhead", "tasks.overhead.tbb.ks", 1, "x",
         "Kolmogorov-Smirnov distance of these latencies by the critical one"},
        {"tasks_composition", "tasks.composition", 1.05, "ms",
         "a parallel program calls libraries on three engines, beside the best static partition", "static"},
        {"tasks_composition", "tasks.composition_vs_uncoordinated", 1 / 1.3, "ms",
         "the same, beside each library with all CPUs", "uncoordinated"},
        {"memory_jacobi", "memory.jacobi", 1.05, "s", "Jacobi 4096 x 4096 on two ranks of mpirun",
         "plain MPI"},
        {"memory_access", "memory.hit", 0.3, "us",
         "a get from a cache that holds 10,000 ranges, and its release"},
        {"memory_access", "memory.hit_future", 0.6, "us", "the same as a future"},
        {"memory_access", "memory.direct", 0.1, "us", "the same in the segment itself"},
        {"memory_access", "memory.miss_64k.shm", 1.5, "us", "a get of 64 KiB that misses", "memcpy"},
        {"memory_access", "memory.miss_1m.shm", 1.1, "us", "the same of 1 MiB", "memcpy"},
        {"memory_access", "memory.miss_16m.shm", 1.03, "us", "the same of 16 MiB", "memcpy"},
        {"memory_access", "memory.miss_64k.file", 1.5, "us", "a get of 64 KiB that misses", "pread"},
        {"memory_access", "memory.file_1m", 1.1, "us", "the same of 1 MiB", "pread"},
        {"memory_access", "memory.put_64k.shm", 1.2, "us", "a put of 64 KiB that nobody shares", "memcpy"},
        {"memory_access", "memory.bunch.shm", 1 / 0.9, "us", "64 gets of 64 KiB that miss, as one batch",
         "memcpy"},
        {"algebra_cholesky", "algebra.cholesky", 1 / 0.97, "ms",
         "tile Cholesky of 4096 x 4096 elements on 2 cores", "openblas"},
        {"algebra_cholesky", "algebra.gemm", 1 / 0.97, "ms", "the product of two such matrices", "openblas"},
        {"algebra_eigen", "algebra.eigen", 1 / 1.3, "ms",
         "eigenvalues of a pencil of 4096 x 4096 elements, beside dsygvd", "lapack"},
        {"algebra_tlr", "algebra.tlr", 0.25, "ms",
         "tile-low-rank Cholesky, covariance of 16,384 points at accuracy 1e-8", "dense"},
        {"algebra_tlr", "algebra.tlr_whole", 0.25, "ms", "the same with the compression counted in", "dense"},
        {"algebra_tlr", "algebra.tlr_backward_error", 1e-8, "of A", "|A - L L^T| over |A|", "limit"},
    };
    return table;
}

}  // namespace heddle::bench
