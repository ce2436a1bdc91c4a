// What networks of filters, loops and synchrocells take (heddle/streams.hpp), without boxes: 2 workers.
//
// streams.feedback: one record that goes back 1e6 times. streams.star: one through 2,000 stages, made for it.
// streams.fibonacci: the recursion of S-Net's example fibonacci3, of 20: 21,891 leaves, joined by level.
// Their limits are what S-Net's FRONT took for the same, measured apart; where there is a front_nets, each is
// measured in turn with it, too (streams.feedback_vs_front and so on), and streams.filters_vs_front: records
// a second that a feedback sends through three filters.
#include <stdexcept>

#include "figures.hpp"
#include "front_peer.hpp"
#include "heddle/streams.hpp"

namespace {

using namespace heddle::snet;  // NOLINT: it is all about these
using heddle::bench::Figure;
using heddle::bench::FrontPeer;
using heddle::bench::kNoFront;
using heddle::bench::own_folder;
using heddle::bench::print_skipped;

constexpr int kWorkers = 2;

/// Seconds until the one record has come out.
template <class Out, class In>
double seconds(const Net& net, int in, int out) {
    int got = -1;
    NetworkOptions options;
    options.workers = kWorkers;
    options.unchecked = true;
    options.output = [&](const Record& record) { got = record.get<Out>(); };
    Network network(net, options);
    const double ms = heddle::bench::milliseconds([&] {
        network.push(record<In>(in));
        network.settle();
    });
    if (got != out) throw std::runtime_error("the network gave " + std::to_string(got));
    return ms / 1e3;
}

using N = Tag<"N">;
using L = Tag<"L">;
using M = Tag<"M">;
using R = Tag<"R">;
using V = Tag<"V">;
using W = Tag<"W">;
using X = Tag<"X">;

Net countdown() {
    return filter("{<N>} -> {<N = N - 1>}");
}

Net fibonacci() {
    const Net level = filter("{<N>} -> {<N>, <L = 0>, <M = 1>}");
    const Net leaf = filter("{<N>} -> if <N <= 1> then {<N>, <T>} else {<N>, <F>}");
    const Net is_leaf = filter("{<N>, <T>} -> {<R = N>}");
    const Net is_none = filter(
        "{<N>, <F>, <M>, <L>} -> {<N = N - 1>, <L = L + 1>, <M = (2 * M) + 1>}; {<N = N - 2>, <L = L + 1>, "
        "<M = (2 * M) + 0>}");
    const Net recur = net<In<N, L, M>, Out<M, L, R>>("recur", star(leaf >> (is_none | is_leaf), {when<R>()}));
    const Net rewrite = filter(
        "{<L>, <M>, <R>} -> if <L <= 0> then {<X = R>} else if <M % 2 == 0> then {<L = L>, <M = M / 2>, <V = "
        "R>} "
        "else {<L = L>, <M = M / 2>, <W = R>}");
    const Net cells = split<L>(star(synchronize({when<V>(), when<W>()}), {when<V, W>()}));
    const Net sum = filter("{<V>, <W>, <L>} -> {<R = V + W>, <L = L - 1>}");
    const Net merge = net<In<M, L, R>, Out<X>>(
        "merge", feedback(rewrite >> (filter("{<X>} -> {<X>}") | (cells >> sum)), {when<M, L>()}));
    return level >> recur >> merge;
}

/// `count` records {<X = 0>} of one {<N = count>}, through three filters that add one; of them the last
/// leaves.
Net filters() {
    const Net source = feedback(
        filter("{<N>} -> if <N == 1> then {<X = 0>, <E>} else {<N = N - 1>}; {<X = 0>}"), {when<N>()});
    const Net plus_one = filter("{<X>} -> {<X = X + 1>}");
    return source >> plus_one >> plus_one >> plus_one >>
           (filter("{<X>, <E>} -> {<X>}") | filter("{<X>} -> "));
}

/// "streams.NET" in turn with the same net on FRONT.
template <class Measure>
void figure(const std::string& net, int runs, int number, int result, const Measure& measure) {
    FrontPeer front(own_folder());
    const bool is_rate = net == "filters";
    const std::string beside = "streams." + net + "_vs_front";
    if (is_rate && !front.is_there()) return print_skipped(beside.c_str(), kNoFront);
    Figure figure{.name = "streams." + net, .unit = "s", .values = {}};
    for (int i = -1; i < runs; ++i) {  // the first warms up
        const double value = measure();
        if (i < 0) continue;
        figure.values.push_back(value);
        if (front.is_there()) front.run(net.c_str(), number, result);
    }
    if (!is_rate) print(figure);
    if (!front.is_there()) return print_skipped(beside.c_str(), kNoFront);
    figure.name = beside;
    figure.peer_median = front.median();
    if (figure.peer_median <= 0)
        return print_skipped(beside.c_str(), "FRONT's runs differ by more than the net takes");
    if (is_rate) {
        figure.unit = "1/s";
        for (double& value : figure.values) value = number / value;
        figure.peer_median = number / figure.peer_median;
    }
    print(figure);
}

void run(bool quick) {
    const int runs = quick ? 3 : 11, many = quick ? 100'000 : 1'000'000;
    figure("feedback", runs, many, 0,
           [&] { return seconds<N, N>(feedback(countdown(), {when<N>("N > 0")}), many, 0); });
    figure("star", runs, 2000, 0,
           [] { return seconds<N, N>(star(countdown(), {when<N>("N == 0")}), 2000, 0); });
    figure("fibonacci", runs, 20, 6765, [] { return seconds<X, N>(fibonacci(), 20, 6765); });
    figure("filters", runs, many / 2, 3, [&] { return seconds<X, N>(filters(), many / 2, 3); });
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
