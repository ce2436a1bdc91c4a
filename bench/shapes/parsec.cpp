// The shapes on PaRSEC alone, by Dynamic Task Discovery as its header has it: a tile a datum, and a task
// class for each shape of a task, made beforehand. The thread that inserts is one of the workers.
#include <parsec.h>
#include <parsec/interfaces/dtd/insert_function.h>
#include <parsec/mca/device/device.h>

#include <array>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "program.hpp"

namespace {

parsec_hook_return_t run_kernel(parsec_execution_stream_t*, parsec_task_t*) {
    shapes::kernel();
    return PARSEC_HOOK_RETURN_DONE;
}

class Parsec {
  public:
    struct Datum {
        int element = 0;
        parsec_dtd_tile_t* tile = nullptr;
    };

    explicit Parsec(int workers)
        : context_(parsec_init(workers, nullptr, nullptr)), pool_(parsec_dtd_taskpool_new()) {
        if (context_ == nullptr) throw std::runtime_error("PaRSEC does not start");
        parsec_context_add_taskpool(context_, pool_);
        parsec_context_start(context_);
        parsec_data_collection_init(&collection_, 1, 0);
        collection_.rank_of_key = [](parsec_data_collection_t*, parsec_data_key_t) { return uint32_t{0}; };
        collection_.data_of_key = [](parsec_data_collection_t* collection, parsec_data_key_t key) {
            auto* const datum = reinterpret_cast<Datum*>(key);
            parsec_data_t* made = nullptr;
            return parsec_data_create(&made, collection, key, &datum->element, sizeof(datum->element),
                                      PARSEC_DATA_FLAG_PARSEC_MANAGED);
        };
        parsec_dtd_data_collection_init(&collection_);
        for (size_t reads = 0; reads < classes_.size(); ++reads) classes_[reads] = make_class(reads, true);
        without_data_ = make_class(0, false);
    }

    std::vector<Datum> data(int count) {
        std::vector<Datum> all(static_cast<size_t>(count));
        for (Datum& datum : all)
            datum.tile = parsec_dtd_tile_of(&collection_, reinterpret_cast<parsec_data_key_t>(&datum));
        return all;
    }
    void insert() {
        parsec_dtd_insert_task_with_task_class(pool_, without_data_, 0, PARSEC_DEV_CPU, PARSEC_DTD_ARG_END);
    }
    void insert(Datum& written) { insert_these(written); }
    void insert(Datum& read, Datum& written) { insert_these(written, read); }
    void insert(Datum& read, Datum& also_read, Datum& written) { insert_these(written, read, also_read); }
    void insert(std::span<Datum* const> read, Datum& written) {
        insert_all(read, written, std::make_index_sequence<kMostRead + 1>());
    }
    void wait() {
        if (parsec_taskpool_wait(pool_) < 0) throw std::runtime_error("PaRSEC cannot wait");
    }
    template <class Function>
    void region(Function function) {
        function();
    }
    void forget(std::vector<Datum>&) {
        parsec_dtd_data_flush_all(pool_, &collection_);
        wait();
    }

  private:
    static constexpr size_t kMostRead = 8;

    parsec_task_class_t* make_class(size_t reads, bool writes) {
        std::array<parsec_dtd_param_t, kMostRead + 1> params;
        params.fill({PARSEC_INPUT, PASSED_BY_REF, nullptr});
        params[0].op = PARSEC_INOUT;
        auto* const made = reinterpret_cast<parsec_task_class_t*>(parsec_dtd_create_task_classv(
            "kernel", static_cast<int>(reads + (writes ? 1 : 0)), params.data()));
        parsec_dtd_task_class_add_chore(pool_, made, PARSEC_DEV_CPU, reinterpret_cast<void*>(&run_kernel));
        return made;
    }
    template <class... Read>
    void insert_these(Datum& written, Read&... read) {
        std::apply(
            [&](auto... arguments) {
                parsec_dtd_insert_task_with_task_class(pool_, classes_[sizeof...(Read)], 0, PARSEC_DEV_CPU,
                                                       arguments..., PARSEC_DTD_ARG_END);
            },
            std::tuple_cat(std::tuple(int{PARSEC_DTD_EMPTY_FLAG}, written.tile),
                           std::tuple(int{PARSEC_DTD_EMPTY_FLAG}, read.tile)...));
    }
    template <size_t... n>
    void insert_all(std::span<Datum* const> read, Datum& written, std::index_sequence<n...>) {
        ((read.size() == n ? insert_span(read, written, std::make_index_sequence<n>()) : void()), ...);
    }
    template <size_t... i>
    void insert_span([[maybe_unused]] std::span<Datum* const> read, Datum& written,
                     std::index_sequence<i...>) {
        insert_these(written, *read[i]...);
    }

    parsec_context_t* context_;
    parsec_taskpool_t* pool_;
    parsec_data_collection_t collection_;
    std::array<parsec_task_class_t*, kMostRead + 1> classes_;  // by how many data are read
    parsec_task_class_t* without_data_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
    return shapes::run_program<Parsec>(argc, argv);
}
