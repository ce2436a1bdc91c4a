// streams.pipeline: 1e6 records of one long through three boxes that add one, by heddle/streams.hpp, beside
// oneTBB's flow graph (queueing function nodes, one call of each at a time, as ours); beside it
// streams.vs_lightweight (the same graph with the lightweight policy, which runs a node in its sender's task)
// and streams.vs_parallel_pipeline (oneTBB's parallel_pipeline of 64 tokens, the stages in the middle
// parallel). All with 2 workers, ours and the peers in turn.
//
// streams.vs_fastflow: the same by FastFlow's pipeline, a thread a stage, all on two CPUs, in its blocking
// mode; its threads spin by default, which five of them on two CPUs do in turn, a time slice each. What that
// gives is told as "spinning", of a tenth of the records. Where there is no FastFlow, it is told as skipped.
#include <atomic>

#include "figures.hpp"
#include "heddle/machine.hpp"
#include "heddle/streams.hpp"
#include "topology/thread_affinity.hpp"
#ifdef HEDDLE_WITH_FASTFLOW
#include "fastflow_pipeline.hpp"
#endif
#ifdef HEDDLE_WITH_TBB
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#endif

namespace {

using namespace heddle::snet;  // NOLINT: it is all about these
using heddle::bench::Figure;

constexpr int kWorkers = 2;

void check(long sum, long count) {
    if (sum != count * (count - 1) / 2 + 3 * count) throw std::runtime_error("a record was lost");
}

using Number = Field<"number", long>;

double ours(long count) {
    const auto plus_one = [](long number) { return number + 1; };
    const Net net = box<In<Number>, Out<Number>>("a", plus_one) >>
                    box<In<Number>, Out<Number>>("b", plus_one) >>
                    box<In<Number>, Out<Number>>("c", plus_one);
    long sum = 0;
    NetworkOptions options;
    options.workers = kWorkers;
    options.output = [&](const Record& record) { sum += record.get<Number>(); };
    Network network(net, options);
    const double ms = heddle::bench::milliseconds([&] {
        for (long i = 0; i < count; ++i) network.push(record<Number>(i));
        network.settle();
    });
    check(sum, count);
    return static_cast<double>(count) / ms * 1e3;
}

#ifdef HEDDLE_WITH_TBB

template <class Policy>
double flow_graph(long count) {
    using Node = tbb::flow::function_node<long, long, Policy>;
    tbb::flow::graph graph;
    const auto plus_one = [](long number) noexcept { return number + 1; };
    long sum = 0;
    Node a(graph, tbb::flow::serial, plus_one), b(graph, tbb::flow::serial, plus_one),
        c(graph, tbb::flow::serial, plus_one);
    tbb::flow::function_node<long, tbb::flow::continue_msg, Policy> sink(graph, tbb::flow::serial,
                                                                         [&](long number) noexcept {
                                                                             sum += number;
                                                                             return tbb::flow::continue_msg();
                                                                         });
    make_edge(a, b);
    make_edge(b, c);
    make_edge(c, sink);
    const double ms = heddle::bench::milliseconds([&] {
        for (long i = 0; i < count; ++i) a.try_put(i);
        graph.wait_for_all();
    });
    check(sum, count);
    return static_cast<double>(count) / ms * 1e3;
}

double parallel_pipeline(long count) {
    long next = 0, sum = 0;
    const auto plus_one = [](long number) { return number + 1; };
    const double ms = heddle::bench::milliseconds([&] {
        tbb::parallel_pipeline(64, tbb::make_filter<void, long>(tbb::filter_mode::serial_in_order,
                                                                [&](tbb::flow_control& control) -> long {
                                                                    if (next == count) {
                                                                        control.stop();
                                                                        return 0;
                                                                    }
                                                                    return next++;
                                                                }) &
                                       tbb::make_filter<long, long>(tbb::filter_mode::parallel, plus_one) &
                                       tbb::make_filter<long, long>(tbb::filter_mode::parallel, plus_one) &
                                       tbb::make_filter<long, void>(tbb::filter_mode::serial_in_order,
                                                                    [&](long number) { sum += number + 1; }));
    });
    check(sum, count);
    return static_cast<double>(count) / ms * 1e3;
}

#endif

void pipelines(bool quick) {
    const long count = quick ? 100'000 : 1'000'000;
    const int runs = quick ? 3 : 11;
    Figure figure{.name = "streams.pipeline", .unit = "1/s", .values = {}};
#ifdef HEDDLE_WITH_TBB
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kWorkers);
    std::vector<double> queueing, lightweight, pipeline;
#endif
    for (int i = -1; i < runs; ++i) {  // the first warms up
        const double one = ours(count);
        if (i >= 0) figure.values.push_back(one);
#ifdef HEDDLE_WITH_TBB
        const double peers[] = {flow_graph<tbb::flow::queueing>(count),
                                flow_graph<tbb::flow::queueing_lightweight>(count), parallel_pipeline(count)};
        if (i < 0) continue;
        queueing.push_back(peers[0]);
        lightweight.push_back(peers[1]);
        pipeline.push_back(peers[2]);
#endif
    }
#ifdef HEDDLE_WITH_TBB
    const std::pair<const char*, const std::vector<double>*> peers[] = {
        {"streams.pipeline", &queueing},
        {"streams.vs_lightweight", &lightweight},
        {"streams.vs_parallel_pipeline", &pipeline}};
    for (const auto& [name, values] : peers) {
        figure.name = name;
        figure.peer_median = heddle::bench::median(*values);
        print(figure);
    }
#else
    print(figure);
#endif
}

#ifdef HEDDLE_WITH_FASTFLOW

double fastflow(long count, FastFlowWaits waits) {
    const FastFlowOutcome outcome = fastflow_pipeline(count, waits);
    check(outcome.sum, count);
    return static_cast<double>(count) / outcome.took.count();
}

/// In turn. Threads start where their maker may run.
void beside_fastflow(bool quick) {
    heddle::CpuSet cpus = heddle::allowance(heddle::Machine::detect()).usable;
    while (cpus.count() > kWorkers) cpus.erase(cpus.first());
    if (!heddle::set_thread_affinity(cpus)) throw std::runtime_error("the system does not bind threads");
    const long count = quick ? 100'000 : 1'000'000;
    Figure figure{.name = "streams.vs_fastflow", .unit = "1/s", .values = {}};
    std::vector<double> blocking, spinning;
    for (int i = 0; i < (quick ? 3 : 11); ++i) {
        figure.values.push_back(ours(count));
        blocking.push_back(fastflow(count, FastFlowWaits::kBlocking));
        spinning.push_back(fastflow(count / 10, FastFlowWaits::kSpinning));
    }
    figure.peer_median = heddle::bench::median(blocking);
    figure.more.emplace_back("spinning", heddle::bench::median(spinning));
    print(figure);
}

#else

void beside_fastflow(bool /*quick*/) {
    heddle::bench::print_skipped("streams.vs_fastflow",
                                 "there was no FastFlow when this was built; set FASTFLOW_HOME to the folder "
                                 "that has its ff/ff.hpp");
}

#endif

void run(bool quick) {
    pipelines(quick);
    beside_fastflow(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
