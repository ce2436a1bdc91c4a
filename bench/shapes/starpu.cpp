// The shapes on StarPU alone, as its manual has it: a variable handle a datum, starpu_task_insert() and the
// scheduler that StarPU starts with. The thread that inserts is no worker: StarPU has none of the caller's.
#include <starpu.h>

#include <array>
#include <stdexcept>

#include "program.hpp"

namespace {

void run_kernel(void**, void*) {
    shapes::kernel();
}

class StarPu {
  public:
    struct Datum {
        int element = 0;
        starpu_data_handle_t handle = nullptr;
    };

    explicit StarPu(int workers) {
        starpu_conf conf;
        check(starpu_conf_init(&conf));
        conf.precedence_over_environment_variables = 1;
        conf.ncpus = workers;
        conf.ncuda = conf.nopencl = conf.nmic = conf.nmpi_ms = 0;
        check(starpu_init(&conf));
        starpu_codelet_init(&codelet_);
        codelet_.cpu_funcs[0] = run_kernel;
        codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    }
    ~StarPu() { starpu_shutdown(); }

    std::vector<Datum> data(int count) {
        std::vector<Datum> all(static_cast<size_t>(count));
        for (Datum& datum : all)
            starpu_variable_data_register(&datum.handle, STARPU_MAIN_RAM,
                                          reinterpret_cast<uintptr_t>(&datum.element), sizeof(datum.element));
        return all;
    }
    void insert() { check(starpu_task_insert(&codelet_, 0)); }
    void insert(Datum& written) { check(starpu_task_insert(&codelet_, STARPU_RW, written.handle, 0)); }
    void insert(Datum& read, Datum& written) {
        check(starpu_task_insert(&codelet_, STARPU_R, read.handle, STARPU_RW, written.handle, 0));
    }
    void insert(Datum& read, Datum& also_read, Datum& written) {
        check(starpu_task_insert(&codelet_, STARPU_R, read.handle, STARPU_R, also_read.handle, STARPU_RW,
                                 written.handle, 0));
    }
    void insert(std::span<Datum* const> read, Datum& written) {
        std::array<starpu_data_descr, 9> data{};
        size_t count = 0;
        for (Datum* datum : read) data[count++] = {datum->handle, STARPU_R};
        data[count++] = {written.handle, STARPU_W};
        check(starpu_task_insert(&codelet_, STARPU_DATA_MODE_ARRAY, data.data(), static_cast<int>(count), 0));
    }
    void wait() { check(starpu_task_wait_for_all()); }
    template <class Function>
    void region(Function function) {
        function();
    }
    void forget(std::vector<Datum>& data) {
        for (Datum& datum : data) starpu_data_unregister(datum.handle);
    }

  private:
    static void check(int error) {
        if (error != 0) throw std::runtime_error("StarPU fails with " + std::to_string(error));
    }

    starpu_codelet codelet_;
};

}  // namespace

int main(int argc, char** argv) {
    return shapes::run_program<StarPu>(argc, argv);
}
