#include "fastflow_pipeline.hpp"

#include <ff/ff.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

struct Source final : ff::ff_node_t<long> {
    explicit Source(std::vector<long>& its_numbers) : numbers(its_numbers) {}
    long* svc(long* /*none*/) override {
        for (long& number : numbers) ff_send_out(&number);
        return EOS;
    }
    std::vector<long>& numbers;
};

struct PlusOne final : ff::ff_node_t<long> {
    long* svc(long* number) override {
        ++*number;
        return number;
    }
};

struct Sink final : ff::ff_node_t<long> {
    long* svc(long* number) override {
        sum += *number;
        return GO_ON;
    }
    long sum = 0;
};

}  // namespace

FastFlowOutcome fastflow_pipeline(long count, FastFlowWaits waits) {
    std::vector<long> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    Source source(numbers);
    PlusOne a, b, c;
    Sink sink;
    ff::ff_Pipe<long> pipe(source, a, b, c, sink);
    pipe.no_mapping();  // its threads may run where the caller may
    pipe.blocking_mode(waits == FastFlowWaits::kBlocking);
    const auto start = std::chrono::steady_clock::now();
    if (pipe.run_and_wait_end() < 0) throw std::runtime_error("FastFlow's pipeline did not run");
    return {std::chrono::steady_clock::now() - start, sink.sum};
}
