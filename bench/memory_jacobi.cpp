// memory.jacobi: the Jacobi example on two ranks, its borders through MPI windows of the directory/cache,
// beside the same written by hand in MPI (jacobi_mpi.cpp). Only the iterations count, as the programs tell
// it.
#include <unistd.h>

#include <regex>
#include <stdexcept>

#include "bench/process.hpp"
#include "figures.hpp"

namespace {

using heddle::bench::Command;
using heddle::bench::Figure;
using heddle::bench::Outcome;

struct Told {
    double seconds = 0;
    std::string result;
};

Told run_once(std::vector<std::string> program) {
    std::vector<std::string> argv{"mpirun.openmpi", "--oversubscribe", "-n", "2"};
    argv.insert(argv.end(), program.begin(), program.end());
    const Command command{
        argv,
        {"HEDDLE_ARBITER=off", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
         "OMPI_MCA_plm=isolated", "OMPI_MCA_hwloc_base_binding_policy=none"},
        {}};
    const Outcome outcome = heddle::bench::run_together({&command, 1}, std::chrono::seconds(60)).front();
    std::smatch found;
    if (outcome.exit_code != 0 ||
        !std::regex_search(outcome.output, found, std::regex(": ([0-9.]+) s, .*result ([0-9a-f]+)")))
        throw std::runtime_error(program.front() + ": " + outcome.output + outcome.errors);
    return {std::stod(found[1]), found[2]};
}

void run(bool quick) {
    const std::string folder = heddle::bench::own_folder();
    const std::string peer = folder + "/jacobi_mpi";
    if (::access(peer.c_str(), X_OK) != 0) return;  // built where there is no Open MPI
    const std::string n = quick ? "512" : "4096", iterations = quick ? "10" : "30";
    Figure figure{.name = "memory.jacobi", .unit = "s", .values = {}};
    std::vector<double> others;
    for (int round = 0; round < (quick ? 2 : 7); ++round) {
        const Told ours =
            run_once({folder + "/jacobi", "--n", n, "--iterations", iterations, "--segment", "mpi"});
        const Told other = run_once({peer, n, iterations});
        if (ours.result != other.result)
            throw std::runtime_error("the results differ: " + ours.result + " and " + other.result);
        figure.values.push_back(ours.seconds);
        others.push_back(other.seconds);
    }
    figure.peer_median = heddle::bench::median(others);
    figure.more = {{"peer_mad", heddle::bench::median_absolute_deviation(others)}};
    print(figure);
}

}  // namespace

int main(int argc, char** argv) {
    return heddle::bench::run_figures(argc, argv, run);
}
