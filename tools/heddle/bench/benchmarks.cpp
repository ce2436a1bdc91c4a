#include "benchmarks.hpp"

#include <fmt/format.h>

#include <deque>
#include <utility>

namespace heddle::bench {
namespace {

const std::vector<std::string_view> kAll = {"os", "active", "passive", "static", "dlb"};

// One region with barriers: alone on two cores it takes 10 ms a thousand rounds.
Job long_region(std::string_view rounds, int start_ms = 0) {
    return {"barriers", {"--regions", "1", "--rounds", rounds, "--round-us", "20"}, start_ms};
}

// The same barriers in 1,000 regions of 1 ms of work each.
Job short_regions(int start_ms = 0) {
    return {"barriers", {"--regions", "1000", "--rounds", "50", "--round-us", "20"}, start_ms};
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

/// Five figures for each engine, with what its own interface is.
struct Overhead {
    std::string_view engine, over;
};
constexpr Overhead kOverheads[] = {
    {"openmp", "OpenMP's pragmas on libgomp"},
    {"openmp-libomp", "the same on libomp"},
    {"tbb", "a graph written by hand on oneTBB"},
    {"starpu", "starpu_task_insert()"},
    {"quark", "QUARK"},
    {"parsec", "PaRSEC's Dynamic Task Discovery"},
};

/// The text, for good.
std::string_view kept(std::string text) {
    static std::deque<std::string> all;
    return all.emplace_back(std::move(text));
}

std::vector<Figure> with_overheads(std::vector<Figure> table) {
    for (const auto& [engine, over] : kOverheads) {
        const auto name = [&](std::string_view part) {
            return kept(fmt::format("tasks.overhead.{}{}", engine, part));
        };
        table.insert(
            table.end(),
            {{"tasks_overhead", name(""), 1.03, "ns",
              kept(fmt::format("empty tasks of a tile Cholesky over {}", over)), "own"},
             {"tasks_overhead", name(".tiles"), 1.01, "ns", "the same of 50 us", "own"},
             {"tasks_overhead", name(".insert"), 0, "ns", "of this, an insertion", "own"},
             {"tasks_overhead", name(".management"), 0, "ns", "and until a task begins that could", "own"},
             {"tasks_overhead", name(".ks"), 1, "x",
              "how much longer these latencies are: Kolmogorov-Smirnov by the critical one"}});
    }
    return table;
}

}  // namespace

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> table = {
        {{{"cores.oversubscription", "best", 1.05}, {"cores.oversubscription_vs_default", "os", 0.1}},
         "two programs, a barrier every 20 us in one long region, started together",
         {long_region("30000"), long_region("30000")},
         kAll},
        {{{"cores.oversubscription_apart", "best", 1.05},
          {"cores.oversubscription_apart_vs_default", "os", 0.1}},
         "the same, started 0.2 s apart",
         {long_region("50000"), long_region("50000", 200)},
         kAll},
        {{{"cores.oversubscription_regions", "best", 1.05},
          {"cores.oversubscription_regions_vs_default", "os", 0.1}},
         "the same barriers in regions of 1 ms, started together",
         {short_regions(), short_regions()},
         kAll},
        {{{"cores.oversubscription_regions_apart", "best", 1.05},
          {"cores.oversubscription_regions_apart_vs_default", "os", 0.1}},
         "these, started 0.2 s apart",
         {short_regions(), short_regions(200)},
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
        // One run differs from the next by 3 %: so many tell half a percent.
        {{{"cores.alone", "os", 1.01}},
         "one program with barriers alone",
         {long_region("25000")},
         {"os"},
         24},
        {{{"cores.start", "os", 1.0, Measure::kExtraTime}},
         "what /bin/true takes longer",
         {{"/bin/true", {}, 0, true}},
         {"os"},
         10},
    };
    return table;
}

const std::vector<Figure>& figures() {
    static const std::vector<Figure> table = with_overheads({
        {"cores_lend", "cores.lend", 60, "ns",
         "lend and reclaim a CPU inside a process, a second thread alive"},
        {"cores_lend", "cores.borrow_fails", 20, "ns", "a borrow that finds nothing"},
        {"cores_handover", "cores.handover", 3, "us",
         "release to the taker's first instruction on that core, waiting actively"},
        {"cores_handover", "cores.handover_seen", 0.5, "us", "release to its being seen"},
        {"cores_handover", "cores.handover_asleep", 0, "us",
         "the same with the taker asleep; limit: a bare futex wake and 5 us"},
        {"cores_handover", "cores.handover_seen_vs_dlb", 0, "us",
         "until the release is seen; the peer: until the callback of DLB, polling", "dlb"},
        {"cores_handover", "cores.handover_asleep_vs_dlb", 0, "us",
         "the taker asleep; the peer: until the callback of DLB, asynchronous", "dlb"},
        {"cores_attacked", "cores.attacked", 2, "us",
         "a program waits for CPUs while others attack the arbiter, 99th of 100; the peer: quiet times",
         "quiet"},
        {"cores_scale", "cores.scale", 1, "ms", "a rebalance with 1,024 CPUs and 256 clients"},
        {"cores_scale", "cores.scale_growth", 1, "x",
         "how that has grown from 32 clients on, over n log n of clients + CPUs moved"},
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
         "100,000 tasks that are all paused at once, from insertion to end, a task; the peer: the kernel's "
         "part",
         "first_pages"},
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
        {"tasks_composition", "tasks.composition", 1.05, "ms",
         "a parallel program calls libraries on three engines, beside the best static partition", "static"},
        {"tasks_composition", "tasks.composition_vs_uncoordinated", 1 / 1.3, "ms",
         "the same, beside each library with all CPUs", "uncoordinated"},
        {"streams_pipeline", "streams.pipeline", 1 / 1.5, "1/s",
         "1e6 records of one long through three trivial boxes in C++, 2 workers", "tbb_flow", true},
        {"streams_pipeline", "streams.vs_lightweight", 0, "1/s", "the same", "tbb_flow_lightweight", true},
        {"streams_pipeline", "streams.vs_parallel_pipeline", 2, "1/s", "the same", "tbb_pipeline", true},
        {"streams_pipeline", "streams.vs_fastflow", 0, "1/s", "the same, FastFlow in its blocking mode",
         "fastflow", true},
        {"streams_workers", "streams.memory", 32, "MiB",
         "peak resident set: a box sends 1e6 records in one call before a slower one"},
        {"streams_workers", "streams.second_worker", 0.97, "x",
         "three trivial boxes with 2 workers over 1, pairs in turn", "limit", true},
        {"streams_workers", "streams.heavy", 1 / 0.95, "x",
         "four boxes of 20 us with 2 workers over 1, beside two threads over one", "threads", true},
        {"streams_workers", "streams.ordered", 1 / 0.7, "1/s",
         "two calls at once of a box of 2 us, in order beside in any order", "any order", true},
        {"streams_shared", "streams.shared", 1.05, "s",
         "two programs of four boxes of 20 us each under one arbiter, from the common start to the later end",
         "best"},
        {"streams_shared", "streams.shared_throughput", 1 / 0.98, "1/s",
         "records a second of both, beside those of one with all CPUs", "alone", true},
        {"streams_programs", "streams.feedback", 1.44, "s",
         "a record that goes back 1e6 times; the limit is S-Net FRONT's, measured apart"},
        {"streams_programs", "streams.star", 0.024, "s",
         "one through 2,000 stages, made for it; the same limit"},
        {"streams_programs", "streams.fibonacci", 0.25, "s",
         "the recursion of fibonacci(20) and its join; the same limit"},
        {"streams_programs", "streams.feedback_vs_front", 1, "s",
         "streams.feedback in turn with S-Net's FRONT", "front"},
        {"streams_programs", "streams.star_vs_front", 1, "s", "streams.star in turn with it", "front"},
        {"streams_programs", "streams.fibonacci_vs_front", 1, "s", "streams.fibonacci in turn with it",
         "front"},
        {"streams_programs", "streams.filters_vs_front", 1 / 3.0, "1/s",
         "500,000 records that a feedback sends through three filters, in turn with it", "front", true},
        {"streams_commands", "streams.vs_front", 1 / 3.0, "1/s",
         "500,000 records that a box in C sends through three, in turn with S-Net's FRONT", "front", true},
        {"streams_commands", "streams.xml", 1e6, "1/s", "XML through a filter into XML, a file each", "limit",
         true},
        {"memory_jacobi", "memory.jacobi", 1.05, "s", "Jacobi 4096 x 4096 on two ranks of mpirun",
         "plain MPI"},
        {"memory_access", "memory.hit", 0.3, "us",
         "a get from a cache that holds 10,000 ranges, and its release"},
        {"memory_access", "memory.hit_future", 0.6, "us", "the same as a future"},
        {"memory_access", "memory.hit_ipc", 1, "us", "the same from another process"},
        {"memory_access", "memory.direct", 0.1, "us", "the same in the segment itself"},
        {"memory_access", "memory.miss_64k.shm", 1.5, "us", "a get of 64 KiB that misses", "memcpy"},
        {"memory_access", "memory.miss_1m.shm", 1.1, "us", "the same of 1 MiB", "memcpy"},
        {"memory_access", "memory.miss_16m.shm", 1.03, "us", "the same of 16 MiB", "memcpy"},
        {"memory_access", "memory.miss_64k.file", 1.5, "us", "a get of 64 KiB that misses", "pread"},
        {"memory_access", "memory.file_1m", 1.1, "us", "the same of 1 MiB", "pread"},
        {"memory_access", "memory.put_64k.shm", 1.2, "us", "a put of 64 KiB that nobody shares", "memcpy"},
        {"memory_access", "memory.bunch.shm", 1 / 0.9, "us", "64 gets of 64 KiB that miss, as one batch",
         "memcpy"},
        {"memory_ranks", "memory.remote_64k.shm", 1.5, "us",
         "a get of 64 KiB that misses and lies on another rank", "memcpy"},
        {"memory_ranks", "memory.remote_1m.shm", 1.1, "us", "the same of 1 MiB", "memcpy"},
        {"memory_ranks", "memory.remote_16m.shm", 1.03, "us", "the same of 16 MiB", "memcpy"},
        {"memory_ranks", "memory.remote_64k.file", 1.5, "us", "the same of 64 KiB in a file", "pread"},
        {"memory_ranks", "memory.remote_1m.file", 1.1, "us", "the same of 1 MiB", "pread"},
        {"memory_ranks", "memory.remote_16m.file", 1.03, "us", "the same of 16 MiB", "pread"},
        {"memory_ranks", "memory.remote_64k.mpi", 1.5, "us", "the same of 64 KiB through Open MPI",
         "MPI_Get"},
        {"memory_ranks", "memory.remote_1m.mpi", 1.1, "us", "the same of 1 MiB", "MPI_Get"},
        {"memory_ranks", "memory.remote_16m.mpi", 1.03, "us", "the same of 16 MiB", "MPI_Get"},
        {"memory_ranks", "memory.remote_put_64k.shm", 0, "us",
         "a put of 64 KiB to another rank that nobody shares", "memcpy"},
        {"memory_ranks", "memory.remote_asked_64k.shm", 1.5, "us",
         "memory.remote_64k.shm where the other rank has to be asked for each", "memcpy"},
        {"memory_ranks", "memory.remote_asked_1m.shm", 1.1, "us", "the same of 1 MiB", "memcpy"},
        {"memory_ranks", "memory.remote_asked_16m.shm", 1.03, "us", "the same of 16 MiB", "memcpy"},
        {"memory_ranks", "memory.remote_asked_64k.file", 1.5, "us", "the same of 64 KiB in a file", "pread"},
        {"memory_ranks", "memory.remote_asked_1m.file", 1.1, "us", "the same of 1 MiB", "pread"},
        {"memory_ranks", "memory.remote_asked_16m.file", 1.03, "us", "the same of 16 MiB", "pread"},
        {"memory_ranks", "memory.miss_cold", 0, "us", "memory.remote_asked_64k.shm after 5 ms of silence",
         "memcpy"},
        {"memory_ranks", "memory.idle", 1, "%", "processor time of two ranks that nobody asks for anything"},
        {"devices_schedule", "devices.heft", 1.10, "of bound",
         "64 tasks on two simulated devices, 10:1 and 1:2, mean of 200 seeds over the fractional bound"},
        {"devices_schedule", "devices.pams", 1.10, "of bound", "the same by pams"},
        {"devices_schedule", "devices.pams_noisy", 0, "of bound",
         "the same by pams, estimates wrong by up to half; limit: 1.05 of heft's"},
        {"devices_schedule", "devices.pams_slow", 1.10, "of bound", "one device 100 times slower, by pams"},
        {"devices_schedule", "devices.learned", 1.10, "of known",
         "heft without estimates, second run, over one that knows the costs"},
        {"devices_split", "devices.split", 1.05, "of bound",
         "tone mapping in 64 parts on simulated devices of 3 to 1, over work that could be cut at will"},
        {"devices_split", "devices.split_cpu", 1 / 0.9, "ms",
         "tone mapping split over two sub-devices of one core each", "both cores as one device"},
        {"devices_unequal", "devices.unequal", 0.1, "ms",
         "40 tasks on PoCL and Oclgrind, pams with learned costs", "fcfs"},
        {"devices_overhead", "devices.overhead", 3, "us",
         "a task of one empty kernel above a raw in-order queue"},
        {"devices_overhead", "devices.handover", 0, "us",
         "64 MiB to a CPU device and back; limit: 1/20 of a memcpy"},
        {"devices_cuda", "devices.cuda_overhead", 3, "us",
         "a task of one empty kernel above a launch of CUDA's own"},
        {"devices_cuda", "devices.cuda_copy", 1.05, "us", "256 MiB to a device of NVIDIA's and back", "CUDA"},
        {"devices_cuda", "devices.cuda_overlap", 1.05, "us", "16 tasks that read 32 MiB each, short kernels",
         "copies beside kernels"},
        {"devices_cuda", "devices.cuda_overlap_long", 1.05, "us", "the same with long kernels",
         "copies beside kernels"},
        {"devices_wait", "devices.wait_in_task", 0.05, "of 1",
         "a worker's time that is lost while 50 tasks wait for kernels of OpenCL and others have work"},
        {"devices_wait", "devices.read_in_task", 0.05, "of 1", "the same in blocking reads"},
        {"devices_wait", "devices.finish_in_task", 0.05, "of 1", "the same in clFinish"},
        {"algebra_cholesky", "algebra.cholesky", 1 / 0.97, "ms",
         "tile Cholesky of 4096 x 4096 elements on 2 cores", "openblas"},
        {"algebra_cholesky", "algebra.gemm", 1 / 0.97, "ms", "the product of two such matrices", "openblas"},
        {"algebra_eigen", "algebra.eigen", 1 / 1.3, "ms",
         "eigenvalues of a pencil of 4096 x 4096 elements, beside dsygvd", "lapack"},
        {"algebra_tlr", "algebra.tlr", 0.25, "ms",
         "tile-low-rank Cholesky, covariance of 16,384 points at accuracy 1e-8", "dense"},
        {"algebra_tlr", "algebra.tlr_whole", 0.25, "ms", "the same with the compression counted in", "dense"},
        {"algebra_tlr", "algebra.tlr_backward_error", 1e-8, "of A", "|A - L L^T| over |A|", "limit"},
    });
    return table;
}

}  // namespace heddle::bench
