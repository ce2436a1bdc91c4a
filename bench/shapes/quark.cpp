// The shapes on QUARK alone, as PLASMA used it: a datum by its address, and QUARK's master, the thread that
// inserts, as one of the workers.
#include <quark.h>

#include <stdexcept>

#include "program.hpp"

namespace {

// Its two branches name them differently.
#ifdef QUARK_INPUT
constexpr int kIn = QUARK_INPUT, kInOut = QUARK_INOUT;
#else
constexpr int kIn = INPUT, kInOut = INOUT;
#endif

void run_kernel(Quark*) {
    shapes::kernel();
}

class QuarkAlone {
  public:
    using Datum = int;

    explicit QuarkAlone(int workers) : quark_(QUARK_New(workers)) {
        if (quark_ == nullptr) throw std::runtime_error("QUARK does not start");
    }
    ~QuarkAlone() { QUARK_Delete(quark_); }
    QuarkAlone(const QuarkAlone&) = delete;
    QuarkAlone& operator=(const QuarkAlone&) = delete;

    static std::vector<Datum> data(int count) { return std::vector<Datum>(static_cast<size_t>(count)); }
    void insert() { insert_these({}, nullptr); }
    void insert(Datum& written) { insert_these({}, &written); }
    void insert(Datum& read, Datum& written) {
        Datum* const reads[] = {&read};
        insert_these(reads, &written);
    }
    void insert(Datum& read, Datum& also_read, Datum& written) {
        Datum* const reads[] = {&read, &also_read};
        insert_these(reads, &written);
    }
    void insert(std::span<Datum* const> read, Datum& written) { insert_these(read, &written); }
    /// And forgets what it knows of data.
    void wait() { QUARK_Barrier(quark_); }
    template <class Function>
    void region(Function function) {
        function();
    }

  private:
    void insert_these(std::span<Datum* const> read, Datum* written) {
        Quark_Task_Flags flags = Quark_Task_Flags_Initializer;
        Quark_Task* const task = QUARK_Task_Init(quark_, run_kernel, &flags);
        for (Datum* datum : read) QUARK_Task_Pack_Arg(quark_, task, sizeof(Datum), datum, kIn);
        if (written != nullptr) QUARK_Task_Pack_Arg(quark_, task, sizeof(Datum), written, kInOut);
        QUARK_Insert_Task_Packed(quark_, task);
    }

    Quark* const quark_;
};

}  // namespace

int main(int argc, char** argv) {
    return shapes::run_program<QuarkAlone>(argc, argv);
}
