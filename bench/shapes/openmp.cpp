// The shapes as OpenMP tasks with depend clauses. Built for libgomp by g++ and for libomp by clang.
#include <omp.h>

#include "program.hpp"

namespace {

using shapes::kernel;

class OpenMp {
  public:
    struct Datum {
        int element;
    };

    explicit OpenMp(int workers) : workers_(workers) {}

    std::vector<Datum> data(int count) { return std::vector<Datum>(static_cast<size_t>(count)); }
    void insert() {
#pragma omp task
        kernel();
    }
    void insert([[maybe_unused]] Datum& written) {
#pragma omp task depend(inout : written)
        kernel();
    }
    void insert([[maybe_unused]] Datum& read, [[maybe_unused]] Datum& written) {
#pragma omp task depend(in : read) depend(inout : written)
        kernel();
    }
    void insert([[maybe_unused]] Datum& read, [[maybe_unused]] Datum& also_read,
                [[maybe_unused]] Datum& written) {
#pragma omp task depend(in : read, also_read) depend(inout : written)
        kernel();
    }
    void insert(std::span<Datum* const> read, [[maybe_unused]] Datum& written) {
        [[maybe_unused]] Datum* const* const data = read.data();
        [[maybe_unused]] const int count = static_cast<int>(read.size());
#pragma omp task depend(iterator(int i = 0 : count), in : *data[i]) depend(out : written)
        kernel();
    }
    void wait() {
#pragma omp taskwait
    }
    template <class Function>
    void region(Function function) {
#pragma omp parallel num_threads(workers_)
#pragma omp master
        function();
    }

  private:
    int workers_;
};

}  // namespace

int main(int argc, char** argv) {
    return shapes::run_program<OpenMp>(argc, argv);
}
