// The shapes on heddle, on its native engine or, as `shapes_heddle --engine NAME ...`, on another.
#include "heddle/recording.hpp"
#include "program.hpp"

#include <string>
#include <string_view>

namespace {

using shapes::kernel;

std::string engine_name = "native";

class Heddle {
  public:
    using Datum = heddle::Scalar<int>;

    class Recorder {
      public:
        explicit Recorder(Heddle& engine) : sequence_(engine.sequence_), recording_(engine.runtime_) {}
        void insert(Datum& written) {
            recording_.insert([](int&) { kernel(); }, inout(written));
        }
        void insert(Datum& read, Datum& written) {
            recording_.insert([](const int&, int&) { kernel(); }, in(read), inout(written));
        }
        void insert(Datum& read, Datum& also_read, Datum& written) {
            recording_.insert([](const int&, const int&, int&) { kernel(); }, in(read), in(also_read),
                              inout(written));
        }
        void replay() {
            recording_.replay(sequence_);
            sequence_.wait();
        }

      private:
        heddle::Sequence& sequence_;
        heddle::Recording recording_;
    };

    explicit Heddle(int workers) : runtime_(with(workers)), sequence_(runtime_) {}

    std::vector<Datum> data(int count) {
        std::vector<Datum> all;
        for (int i = 0; i < count; ++i) all.emplace_back(runtime_);
        return all;
    }
    void insert() {
        sequence_.insert([] { kernel(); });
    }
    void insert(Datum& written) {
        sequence_.insert([](int&) { kernel(); }, inout(written));
    }
    void insert(Datum& read, Datum& written) {
        sequence_.insert([](const int&, int&) { kernel(); }, in(read), inout(written));
    }
    void insert(Datum& read, Datum& also_read, Datum& written) {
        sequence_.insert([](const int&, const int&, int&) { kernel(); }, in(read), in(also_read),
                         inout(written));
    }
    void insert(std::span<Datum* const> read, Datum& written) {
        insert_as(std::make_index_sequence<9>(), read, written);
    }
    void wait() { sequence_.wait(); }
    template <class Function>
    void region(Function function) {
        function();
    }

  private:
    static heddle::RuntimeOptions with(int workers) {
        heddle::RuntimeOptions options;
        options.engine = engine_name;
        options.workers = workers;
        return options;
    }

    /// How many data a task names is part of its type.
    template <size_t... kCounts>
    void insert_as(std::index_sequence<kCounts...>, std::span<Datum* const> read, Datum& written) {
        (void)((read.size() == kCounts &&
                (insert_reads(std::make_index_sequence<kCounts>(), read, written), true)) ||
               ...);
    }
    template <size_t... kIndex>
    void insert_reads(std::index_sequence<kIndex...>, [[maybe_unused]] std::span<Datum* const> read,
                      Datum& written) {
        sequence_.insert([](auto&...) { kernel(); }, in(*read[kIndex])..., out(written));
    }

    heddle::Runtime runtime_;
    heddle::Sequence sequence_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && std::string_view(argv[1]) == "--engine") {
        engine_name = argv[2];
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    return shapes::run_program<Heddle>(argc, argv);
}
