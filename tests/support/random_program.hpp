// RandomProgram: tasks that read and write parts of buffers on any devices, and what they give one after the
// other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/device_programs.hpp"

namespace heddle::devices::test {

class RandomProgram {
  public:
    RandomProgram(unsigned seed, const DeviceOptions& options, const ProgramSource& source)
        : random_(seed),
          runtime_(options),
          program_(std::make_shared<Program>(runtime_, source)),
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
    static constexpr size_t kInts = 64, kBuffers = 20;
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
            default: {  // a chain whose second kernel reads more than the first has written
                const Part some{range.first, 1 + random_() % range.count};
                task->add_kernel("fill")
                    .work(some.count)
                    .offset(some.first)
                    .arg(0, out(buffers_[target], some.bytes()))
                    .arg(1, value);
                add("multiply").arg(0, inout(buffers_[target], range.bytes())).arg(1, 3u);
                each([&](unsigned& one, size_t i) { one = 3 * (i < some.first + some.count ? value : one); });
            }
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

}  // namespace heddle::devices::test
