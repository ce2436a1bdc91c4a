// What `heddle snet run` takes, with 2 workers and no arbiter.
//
// streams.xml: records a second from a file of XML through a filter into another. streams.vs_front: records a
// second that one box in C sends through three (workloads/stream_boxes.c), in turn with the same boxes on
// S-Net's FRONT, where there is a front_nets; what a run with one record takes is not counted for either.
#include <fstream>
#include <stdexcept>

#include "base/temporary_folder.hpp"
#include "bench/process.hpp"
#include "figures.hpp"
#include "front_peer.hpp"

namespace {

using heddle::bench::Command;
using heddle::bench::Figure;
using heddle::bench::FrontPeer;
using heddle::bench::own_folder;

constexpr const char* kBoxes = R"(
net stream_boxes ({<N>} -> {<X>})
{
    box many ((<N>) -> (<X>) | (<X>, <E>));
    box add ((<X>) -> (<X>));
    box last ((<X>, <E>) -> (<X>));
    box another ((<X>) -> (<X>));
}
connect many .. add .. add .. add .. (last | another);
)";

/// One network, and a file of records for it.
class SnetRun {
  public:
    /// Throws where there is no `heddle` beside this program.
    SnetRun(const char* net, const std::vector<std::string>& options) {
        for (const char* place :
             {"../bin/heddle", "../../../bin/heddle"})  // where it was built, and installed
            if (std::filesystem::exists(own_folder() / place)) command_.argv = {own_folder() / place};
        if (command_.argv.empty()) throw std::runtime_error("there is no heddle beside this program");
        std::ofstream(file("net.snet")) << net;
        for (const std::string& word :
             {std::string("snet"), std::string("run"), file("net.snet"), std::string("-i"), file("in.xml"),
              std::string("-o"), file("out.xml"), std::string("-w"), std::string("2")})
            command_.argv.push_back(word);
        command_.argv.insert(command_.argv.end(), options.begin(), options.end());
        command_.environment = {"HEDDLE_ARBITER=off"};
    }
    /// The next run reads these.
    void give(const char* label, long first, long end) {
        std::ofstream in(file("in.xml"));
        in << "<?xml version=\"1.0\" ?>\n";
        for (long i = first; i < end; ++i)
            in << "<record xmlns=\"snet-home.org\" type=\"data\" mode=\"textual\" >\n<tag label=\"" << label
               << "\">" << i << "</tag>\n</record>\n";
        in << "<record type=\"terminate\" />\n";
    }
    /// From start to end.
    [[nodiscard]] double seconds() const {
        heddle::bench::Outcome outcome;
        const double ms = heddle::bench::milliseconds([&] {
            outcome = heddle::bench::run_together({&command_, 1}, std::chrono::seconds(120)).front();
        });
        if (outcome.exit_code != 0) throw std::runtime_error(outcome.errors);
        return ms / 1e3;
    }
    /// Whether the last run wrote this.
    [[nodiscard]] bool wrote(const std::string& wanted) const {
        std::ifstream out(file("out.xml"));
        return std::string(std::istreambuf_iterator<char>(out), {}).find(wanted) != std::string::npos;
    }

  private:
    [[nodiscard]] std::string file(const char* name) const { return folder_.path() + "/" + name; }

    heddle::TemporaryFolder folder_{heddle::TemporaryFolder::place() + "/heddle-bench-"};
    Command command_;
};

void xml(bool quick) {
    SnetRun program("net add connect [{<a>} -> {<a = a + 1>}];\n", {});
    const long count = quick ? 50'000 : 1'000'000;
    program.give("a", 0, count);
    Figure figure{.name = "streams.xml", .unit = "1/s", .values = {}};
    for (int i = 0; i < (quick ? 3 : 7); ++i)
        figure.values.push_back(static_cast<double>(count) / program.seconds());
    print(figure);
}

void boxes(bool quick) {
    const char* const name = "streams.vs_front";
    FrontPeer front(own_folder());
    if (!front.is_there()) return heddle::bench::print_skipped(name, heddle::bench::kNoFront);
    SnetRun program(kBoxes, {"--boxes", own_folder() / "stream_boxes.so"});
    const int count = quick ? 100'000 : 500'000;
    std::vector<double> ours, nothing;
    for (int i = 0; i < (quick ? 3 : 11); ++i) {
        front.run("boxes", count, 3);
        program.give("N", count, count + 1);
        ours.push_back(program.seconds());
        if (!program.wrote("<tag label=\"X\">3</tag>")) throw std::runtime_error("the boxes lost count");
        program.give("N", 1, 2);
        nothing.push_back(program.seconds());
    }
    Figure figure{.name = name, .unit = "1/s", .values = {}};
    for (const double value : ours) figure.values.push_back(count / (value - heddle::bench::median(nothing)));
    figure.peer_median = count / front.median();
    print(figure);
}

void run(bool quick) {
    xml(quick);
    boxes(quick);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
