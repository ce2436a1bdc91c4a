#include "front_peer.hpp"

#include <fmt/format.h>

#include <sstream>

#include "bench/process.hpp"
#include "bench/statistics.hpp"
#include "heddle/error.hpp"

namespace heddle::bench {
namespace {

double seconds(const std::filesystem::path& program, const char* net, int number, int wanted) {
    const Command command{{program.string(), net, std::to_string(number)}, {}, {}};
    const Outcome outcome = run_together({&command, 1}, std::chrono::seconds(60)).front();
    double took = 0;
    int got = 0;
    std::istringstream words(outcome.output);
    if (outcome.cut || outcome.exit_code != 0 || !(words >> took >> got) || got != wanted)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("front_nets {} {} ended with {} and told \"{}\": {}", net, number,
                                outcome.exit_code, outcome.output, outcome.errors));
    return took;
}

}  // namespace

void FrontPeer::run(const char* net, int number, int wanted) {
    net_.push_back(seconds(program_, net, number, wanted));
    nothing_.push_back(seconds(program_, "nothing", number, number));
}

double FrontPeer::median() const {
    return bench::median(net_) - bench::median(nothing_);
}

}  // namespace heddle::bench
