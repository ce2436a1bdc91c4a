// Uses the C++ interface of tasks: data, values, futures and a recording, as templates of the installed
// headers.
#include <heddle/data.hpp>
#include <heddle/future.hpp>
#include <heddle/recording.hpp>
#include <heddle/task.hpp>

#include <span>

namespace {

int sum_twice(std::span<const int> numbers) {
    int sum = 0;
    for (const int number : numbers) sum += 2 * number;
    return sum;
}

}  // namespace

int main() {
    using namespace heddle;
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 2});
    Vector<int> numbers(runtime, 10);
    Sequence sequence(runtime);
    const auto fill = [](std::span<int> all, int first) {
        for (int& number : all) number = first++;
    };
    sequence.insert(fill, out(numbers), value(1));
    Future<int> sum = sequence.async(sum_twice, in(numbers));
    Future<int> half = sequence.async([](int all) { return all / 2; }, in(sum));
    if (half.get() != 55) return 1;

    Recording recording(runtime);
    recording.insert([](std::span<int> all) { ++all.front(); }, inout(numbers));
    for (int i = 0; i < 3; ++i) recording.replay(sequence);
    sum = sequence.async(sum_twice, in(numbers));
    return sum.get() == 116 ? 0 : 2;
}
