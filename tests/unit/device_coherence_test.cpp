// Random programs over buffers that tasks read and write in parts on devices with and without memory of their
// own give what they give one after the other.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "devices/range_map.hpp"
#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

constexpr size_t kInts = 64;
constexpr size_t kBuffers = 20;

class RandomProgram {
  public:
    RandomProgram(unsigned seed, const char* scheduler)
        : random_(seed),
          runtime_({.kinds = {},
                    .simulated = {{.name = "far", .type = DeviceType::kGpu, .us_per_byte = 1e-3},
                                  {.name = "farther", .type = DeviceType::kGpu, .us_per_byte = 1e-2},
                                  {.name = "near", .shares_host_memory = true}},
                    .scheduler = make_scheduler(scheduler)}),
          program_(std::make_shared<Program>(runtime_, test::integer_program())),
          expected_(kBuffers, std::vector<unsigned>(kInts, 0)) {
        for (size_t i = 0; i < kBuffers; ++i)
            buffers_.push_back(std::make_shared<Buffer>(kInts * sizeof(int)));
    }

    void run(int tasks) {
        std::vector<TaskPointer> batch;
        for (int i = 0; i < tasks; ++i) {
            batch.push_back(next());
            if (random_() % 8 != 0) continue;
            runtime_.submit(batch);
            batch.clear();
            if (random_() % 16 == 0) host_access();
        }
        runtime_.submit(batch);
        for (size_t i = 0; i < kBuffers; ++i) check(i);
        runtime_.finish();
    }

  private:
    struct Part {
        size_t first, count;
        [[nodiscard]] ByteRange bytes() const { return {first * sizeof(int), count * sizeof(int)}; }
    };

    Part part() {
        const size_t first = random_() % kInts;
        return {first, 1 + random_() % (kInts - first)};
    }

    TaskPointer next() {
        auto task = std::make_shared<DeviceTask>(program_);
        const size_t target = random_() % kBuffers, source = random_() % kBuffers;
        const Part range = part();
        const auto value = static_cast<unsigned>(random_() % 1000);
        const auto each = [&](const auto& act) {
            for (size_t i = range.first; i < range.first + range.count; ++i) act(expected_[target][i], i);
        };
        const auto add = [&](const char* name) -> Kernel& {
            return task->add_kernel(name).work(range.count).offset(range.first);
        };
        switch (source == target ? 0 : random_() % 4) {
            case 0:
                add("add").arg(0, inout(buffers_[target], range.bytes())).arg(1, value);
                each([&](unsigned& one, size_t) { one += value; });
                break;
            case 1:
                add("fill").arg(0, out(buffers_[target], range.bytes())).arg(1, value);
                each([&](unsigned& one, size_t) { one = value; });
                break;
            case 2:
                add("copy")
                    .arg(0, in(buffers_[source], range.bytes()))
                    .arg(1, out(buffers_[target], range.bytes()));
                each([&](unsigned& one, size_t i) { one = expected_[source][i]; });
                break;
            default:  // a chain
                add("fill").arg(0, out(buffers_[target], range.bytes())).arg(1, value);
                add("multiply").arg(0, inout(buffers_[target], range.bytes())).arg(1, 3u);
                each([&](unsigned& one, size_t) { one = 3 * value; });
        }
        return task;
    }

    void host_access() {
        const size_t at = random_() % kBuffers;
        check(at);
        const Part range = part();
        const std::vector<unsigned> values(range.count, static_cast<unsigned>(random_()));
        buffers_[at]->write(values.data(), range.bytes().size, range.bytes().offset);
        std::copy(values.begin(), values.end(), expected_[at].begin() + static_cast<ptrdiff_t>(range.first));
    }

    void check(size_t at) {
        std::vector<unsigned> found(kInts);
        buffers_[at]->read(found.data(), kInts * sizeof(int));
        ASSERT_EQ(found, expected_[at]) << "buffer " << at;
    }

    std::mt19937 random_;
    DeviceRuntime runtime_;
    std::shared_ptr<Program> program_;
    std::vector<std::shared_ptr<Buffer>> buffers_;
    std::vector<std::vector<unsigned>> expected_;
};

TEST(DeviceCoherence, RandomProgramsGiveWhatTheyGiveInOrder) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        SCOPED_TRACE(seed);
        RandomProgram program(seed, seed % 3 == 0 ? "fcfs" : seed % 3 == 1 ? "heft" : "pams");
        program.run(1000);
        if (HasFatalFailure()) return;
    }
}

TEST(RangeMap, PiecesAreSplitAndJoined) {
    RangeMap<int> map(100, 0);
    const auto set = [&](size_t offset, size_t size, int value) {
        map.visit(offset, size, [&](size_t, size_t, int& one) { one = value; });
        map.join(offset, size);
    };
    set(10, 20, 1);
    EXPECT_EQ(map.pieces(), 3u);
    set(30, 70, 1);
    EXPECT_EQ(map.pieces(), 2u);
    set(0, 100, 0);
    EXPECT_EQ(map.pieces(), 1u);
    size_t covered = 0;
    set(50, 1, 2);
    map.visit(40, 20, [&](size_t offset, size_t size, int value) {
        EXPECT_EQ(value, offset == 50 ? 2 : 0);
        covered += size;
    });
    EXPECT_EQ(covered, 20u);
}

}  // namespace
}  // namespace heddle::devices
