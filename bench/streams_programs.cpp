// What networks of filters, loops and synchrocells take (heddle/streams.hpp), without boxes: 2 workers.
//
// streams.feedback: one record that goes back 1e6 times. streams.star: one through 2,000 stages, made for it.
// streams.fibonacci: the recursion of S-Net's example fibonacci3, of 20: 21,891 leaves, joined by level.
// Their limits are what S-Net's FRONT took for the same, measured apart; where there is a front_nets, each is
// measured in turn with it, too (streams.feedback_vs_front and so on), and streams.vs_front: records a second
// that a feedback sends through three filters. streams.xml: records a second of `heddle snet run`, from a
// file of XML through a filter into one.
#include <fstream>
#include <stdexcept>

#include "base/temporary_folder.hpp"
#include "bench/process.hpp"
#include "figures.hpp"
#include "front_peer.hpp"
#include "heddle/streams.hpp"

namespace {

using namespace heddle::snet;  // NOLINT: it is all about these
using heddle::bench::Command;
using heddle::bench::Figure;
using heddle::bench::FrontPeer;
using heddle::bench::print_skipped;

constexpr int kWorkers = 2;
constexpr const char* kNoFront =
    "there was no snet-rts when this was built; set SNET_RTS_HOME to where it is installed";

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
Net stream() {
    const Net source = feedback(
        filter("{<N>} -> if <N == 1> then {<X = 0>, <E>} else {<N = N - 1>}; {<X = 0>}"), {when<N>()});
    const Net plus_one = filter("{<X>} -> {<X = X + 1>}");
    return source >> plus_one >> plus_one >> plus_one >>
           (filter("{<X>, <E>} -> {<X>}") | filter("{<X>} -> "));
}

std::filesystem::path own_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// "streams.NET" in turn with the same net on FRONT.
template <class Measure>
void figure(const std::string& net, int runs, int number, int result, const Measure& measure) {
    FrontPeer front(own_folder());
    const bool is_stream = net == "stream";
    const std::string beside = is_stream ? "streams.vs_front" : "streams." + net + "_vs_front";
    if (is_stream && !front.is_there()) return print_skipped(beside.c_str(), kNoFront);
    Figure figure{.name = "streams." + net, .unit = "s", .values = {}};
    for (int i = -1; i < runs; ++i) {  // the first warms up
        const double value = measure();
        if (i < 0) continue;
        figure.values.push_back(value);
        if (front.is_there()) front.run(net.c_str(), number, result);
    }
    if (!is_stream) print(figure);
    if (!front.is_there()) return print_skipped(beside.c_str(), kNoFront);
    figure.name = beside;
    figure.peer_median = front.median();
    if (figure.peer_median <= 0)
        return print_skipped(beside.c_str(), "FRONT's runs differ by more than the net takes");
    if (is_stream) {
        figure.unit = "1/s";
        for (double& value : figure.values) value = number / value;
        figure.peer_median = number / figure.peer_median;
    }
    print(figure);
}

/// Of `heddle snet run`, from start to end.
double xml_rate(const std::string& heddle, const std::string& folder, long count) {
    const Command command{{heddle, "snet", "run", folder + "/net.snet", "-i", folder + "/in.xml", "-o",
                           folder + "/out.xml", "-w", std::to_string(kWorkers)},
                          {"HEDDLE_ARBITER=off"},
                          {}};
    const double ms = heddle::bench::milliseconds([&] {
        const auto outcome = heddle::bench::run_together({&command, 1}, std::chrono::seconds(120)).front();
        if (outcome.exit_code != 0) throw std::runtime_error(outcome.errors);
    });
    return static_cast<double>(count) / ms * 1e3;
}

void xml(bool quick) {
    const std::filesystem::path own = own_folder();
    std::string heddle;
    for (const char* place : {"../bin/heddle", "../../../bin/heddle"})  // where it was built, and installed
        if (std::filesystem::exists(own / place)) heddle = own / place;
    if (heddle.empty()) return;
    const heddle::TemporaryFolder files(std::filesystem::temp_directory_path() / "heddle-bench-");
    const std::string& folder = files.path();
    const long count = quick ? 50'000 : 1'000'000;
    std::ofstream(folder + "/net.snet") << "net add connect [{<a>} -> {<a = a + 1>}];\n";
    {
        std::ofstream in(folder + "/in.xml");
        in << "<?xml version=\"1.0\" ?>\n";
        for (long i = 0; i < count; ++i)
            in << "<record xmlns=\"snet-home.org\" type=\"data\" mode=\"textual\" >\n<tag label=\"a\">" << i
               << "</tag>\n</record>\n";
        in << "<record type=\"terminate\" />\n";
    }
    Figure figure{.name = "streams.xml", .unit = "1/s", .values = {}};
    for (int i = 0; i < (quick ? 3 : 7); ++i) figure.values.push_back(xml_rate(heddle, folder, count));
    print(figure);
}

void run(bool quick) {
    const int runs = quick ? 3 : 11, many = quick ? 100'000 : 1'000'000;
    figure("feedback", runs, many, 0,
           [&] { return seconds<N, N>(feedback(countdown(), {when<N>("N > 0")}), many, 0); });
    figure("star", runs, 2000, 0,
           [] { return seconds<N, N>(star(countdown(), {when<N>("N == 0")}), 2000, 0); });
    figure("fibonacci", runs, 20, 6765, [] { return seconds<X, N>(fibonacci(), 20, 6765); });
    figure("stream", runs, many / 2, 3, [&] { return seconds<X, N>(stream(), many / 2, 3); });
    xml(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
