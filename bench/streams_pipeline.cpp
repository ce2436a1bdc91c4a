// streams.pipeline: 1e6 records of one long through three boxes that add one, by heddle/streams.hpp, beside
// oneTBB's flow graph (queueing function nodes, one call of each at a time, as ours); beside it
// streams.vs_lightweight (the same graph with the lightweight policy, which runs a node in its sender's task)
// and streams.vs_parallel_pipeline (oneTBB's parallel_pipeline of 64 tokens, the stages in the middle
// parallel). All with 2 workers, ours and the peers in turn.
#include <atomic>

#include "figures.hpp"
#include "heddle/streams.hpp"
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

void run(bool quick) {
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

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
