// The shapes on oneTBB, tasks given to TBB each as it can run.
#include "program.hpp"
#include "tbb_graph.hpp"

int main(int argc, char** argv) {
    return shapes::run_program<shapes::Tbb<false>>(argc, argv);
}
