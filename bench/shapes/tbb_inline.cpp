// The shapes on oneTBB, tasks with continuations run where they became possible.
#include "program.hpp"
#include "tbb_graph.hpp"

int main(int argc, char** argv) {
    return shapes::run_program<shapes::Tbb<true>>(argc, argv);
}
