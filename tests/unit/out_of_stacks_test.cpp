// Tasks that wait until there is no memory for one more stack: each wait is made or refused, and nothing is
// lost. In processes of their own, whose address space has a limit; one that hangs is ended.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "heddle/device_variant.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/recording.hpp"
#include "heddle/task.hpp"
#include "support/sanitized.hpp"

namespace heddle::test {
namespace {

constexpr size_t kTasks = 4'000;  // 250 MiB of stacks
constexpr size_t kRoom = size_t{96} << 20;
constexpr unsigned kLongest = 100;  // seconds

size_t address_space() {
    size_t pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%zu", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

/// What became of the waits in tasks.
struct Waits {
    std::atomic<size_t> made{0}, refused{0}, others{0};

    template <class Wait>
    void count(const Wait& wait) {
        try {
            wait();
            ++made;
        } catch (const Error& error) {
            const bool clear = std::strstr(error.what(), "no memory for") != nullptr &&
                               std::strstr(error.what(), "Let fewer tasks be paused") != nullptr;
            (error.code() == ErrorCode::kLimit && clear ? refused : others)++;
        }
    }
    /// Exits with 0 where some were refused, and all were made or refused.
    [[noreturn]] void judge(size_t all) const {
        std::fprintf(stderr, "%zu made, %zu refused, %zu other errors\n", made.load(), refused.load(),
                     others.load());
        ::_exit(made > 0 && refused > 0 && others == 0 && made + refused == all ? 0 : 1);
    }
};

/// With all that a scene is made of, but for stacks.
class Scene {
  public:
    explicit Scene(int workers) : runtime({.engine = "native", .cpus = {}, .workers = workers}) {
        ::alarm(kLongest);
        // What is allocated besides stacks comes from memory that the process has by then.
        ::mallopt(M_ARENA_MAX, 1);
        ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
        ::mallopt(M_MMAP_THRESHOLD, 1 << 24);
        std::vector<std::unique_ptr<char[]>> kept(2'000);
        for (auto& piece : kept) piece = std::make_unique_for_overwrite<char[]>(size_t{64} << 10);
        kept.clear();
        for (int i = 0; i < 100; ++i) sequence.insert([] {});
        sequence.wait();
        const rlimit limit{address_space() + kRoom, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
    }
    /// The last to run of what is inserted by then, with one worker.
    void signal_all() {
        sequence.insert({.priority = -1}, [this] {
            for (BlockCondition& condition : conditions) condition.signal();
        });
    }

    Runtime runtime;
    Sequence sequence{runtime};
    std::vector<BlockCondition> conditions{kTasks};
    Waits waits;
};

[[noreturn]] void block(int workers) {
    Scene scene(workers);
    for (BlockCondition& condition : scene.conditions)
        scene.sequence.insert([&] { scene.waits.count([&] { condition.block(); }); });
    scene.signal_all();
    scene.sequence.wait();
    scene.waits.judge(kTasks);
}

[[noreturn]] void wait_for_children(int workers) {
    Scene scene(workers);
    constexpr size_t kChildren = 3;
    std::atomic<size_t> ran{0};
    for (BlockCondition& condition : scene.conditions)
        scene.sequence.insert([&] {
            Sequence children(scene.runtime);
            children.insert([&] {
                scene.waits.count([&] { condition.block(); });
                ++ran;
            });
            for (size_t i = 1; i < kChildren; ++i) children.insert([&] { ++ran; });
            scene.waits.count([&] { children.wait(); });
        });
    scene.signal_all();
    scene.sequence.wait();
    if (ran != kChildren * kTasks) ::_exit(2);
    scene.waits.judge(2 * kTasks);
}

[[noreturn]] void replay(int workers) {
    Scene scene(workers);
    std::atomic<size_t> ran{0};
    std::vector<std::unique_ptr<Recording>> recordings;
    for (BlockCondition& condition : scene.conditions) {
        auto& recording = *recordings.emplace_back(std::make_unique<Recording>(scene.runtime));
        recording.insert([&] {
            scene.waits.count([&] { condition.block(); });
            ++ran;
        });
        recording.insert([&] { ++ran; });
    }
    for (const auto& recording : recordings) recording->replay(scene.sequence);
    scene.signal_all();
    scene.sequence.wait();
    if (ran != 2 * kTasks) ::_exit(2);
    scene.waits.judge(kTasks);
}

/// Tasks that have a kernel beside their function pause until it has ended: those that cannot fail alone.
[[noreturn]] void run_kernels(int workers) {
    Scene scene(workers);
    std::atomic<bool> open{false};
    devices::ProgramSource source;
    source.host["set"] = [&](const devices::HostArguments& arguments, const devices::LaunchShape&) {
        open.wait(false);
        *arguments.buffer<int>(0) = 1;
    };
    devices::DeviceOptions options;
    options.kinds = {};
    options.simulated = {{.name = "slow", .shares_host_memory = true}};
    devices::TaskDevices devices(0, options);
    const auto program = std::make_shared<devices::Program>(devices.runtime(), source);
    std::vector<int> memory(kTasks, 0);
    std::vector<Vector<int>> data;
    for (int& one : memory) data.emplace_back(scene.runtime, std::span(&one, 1));
    for (Vector<int>& one : data) {
        devices::DeviceVariant variant{program, "set", {1}};
        devices.insert(
            scene.sequence, variant, [](std::span<int>) {}, inout(one));
    }
    scene.sequence.insert({.priority = -1}, [&] {
        open = true;
        open.notify_all();
    });
    size_t clear = 0;
    try {
        scene.sequence.wait();
    } catch (const Error& error) {
        clear = std::strstr(error.what(), "no memory for") != nullptr;
    }
    devices.runtime().finish();
    const auto made = static_cast<size_t>(std::count(memory.begin(), memory.end(), 1));
    std::fprintf(stderr, "%zu made, %zu refused, %zu other errors\n", made, kTasks - made, 1 - clear);
    ::_exit(clear == 1 ? 0 : 1);
}

class OutOfStacksDeathTest : public testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        if (kSanitized) GTEST_SKIP() << "skipped: sanitizers need all of the address space";
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
    static constexpr const char* kSome = "made, [1-9][0-9]* refused, 0 other";
};

TEST_P(OutOfStacksDeathTest, EachPauseIsMadeOrRefusedInClearWords) {
    EXPECT_EXIT(block(GetParam()), testing::ExitedWithCode(0), kSome);
}

TEST_P(OutOfStacksDeathTest, EachWaitForChildrenIsMadeOrRefusedAndTheyRun) {
    EXPECT_EXIT(wait_for_children(GetParam()), testing::ExitedWithCode(0), kSome);
}

TEST_P(OutOfStacksDeathTest, EachReplayIsMade) {
    EXPECT_EXIT(replay(GetParam()), testing::ExitedWithCode(0), kSome);
}

TEST_P(OutOfStacksDeathTest, EachKernelIsRunOrItsTaskFails) {
    EXPECT_EXIT(run_kernels(GetParam()), testing::ExitedWithCode(0), kSome);
}

INSTANTIATE_TEST_SUITE_P(Workers, OutOfStacksDeathTest, testing::Values(1, 2));

}  // namespace
}  // namespace heddle::test
