// Processes as engines do not expect them: that fork, that end with a runtime left, that may write nowhere,
// that get no thread or no memory; and stacks of another size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/offload.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle::test {
namespace {

/// Destroyed after what the libraries of plug-ins have in static storage, since these are loaded later.
std::unique_ptr<Runtime> left_to_the_end;

int sum_of_tasks(Runtime& runtime) {
    Scalar<int> sum(runtime, 0);
    Sequence sequence(runtime);
    for (int i = 1; i <= 10; ++i) sequence.insert([i](int& v) { v += i; }, inout(sum));
    sequence.wait();
    return sum.get();
}

/// Each in a process of its own.
class EngineProcessDeathTest : public OnEachEngine {
  protected:
    EngineProcessDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

    [[noreturn]] void end_with_a_runtime_left() const {
        left_to_the_end = std::make_unique<Runtime>(options());
        std::exit(sum_of_tasks(*left_to_the_end) == 55 ? 0 : 1);
    }

    [[noreturn]] void fork_after_use(bool runtime_is_left) const {
        auto runtime = std::make_unique<Runtime>(options());
        (void)sum_of_tasks(*runtime);
        if (!runtime_is_left) {
            Offload(engine_.name).spawn([] {}).wait();
            runtime = nullptr;
        }
        const pid_t child = ::fork();
        if (child == 0) ::_exit(use_in_child());
        int status = 0;
        (void)::waitpid(child, &status, 0);
        std::_Exit(status == 0 ? 0 : 1);
    }

    [[noreturn]] void write_nowhere(const char* temporary) const {
        for (const char* name : {"STARPU_PERF_MODEL_DIR", "XDG_CACHE_HOME", "STARPU_HOME"}) ::unsetenv(name);
        ::setenv("HOME", "/proc", 1);
        ::setenv("TMPDIR", temporary, 1);
        try {
            Runtime runtime(options());
            std::_Exit(sum_of_tasks(runtime) == 55 ? 0 : 1);
        } catch (const Error& error) {
            fprintf(stderr, "%s\n", error.what());
            std::_Exit(error.code() == ErrorCode::kUnavailable ? 2 : 3);
        }
    }

    /// What cannot be run is refused, and nobody waits for it.
    [[noreturn]] void have_no_thread() const {
        if (::getuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) std::_Exit(1);
        const rlimit one{1, 1};
        if (::setrlimit(RLIMIT_NPROC, &one) != 0) std::_Exit(1);
        ::alarm(30);
        ends_or_is_refused([&] { Offload(engine_.name).spawn([] {}).wait(); });
        ends_or_is_refused([&] {
            Runtime runtime(options());
            (void)sum_of_tasks(runtime);
        });
        std::_Exit(0);
    }

    [[noreturn]] void pause_without_memory() const {
        constexpr size_t kTasks = 8'000;  // 500 MiB of stacks
        std::atomic<size_t> blocked{0}, refused{0};
        std::atomic<bool> all_inserted{false};
        {
            Runtime runtime(options(1));
            std::vector<BlockCondition> conditions(kTasks);
            Sequence sequence(runtime);
            sequence.insert([&] {
                while (!all_inserted) std::this_thread::yield();  // an insertion would be refused, too
                std::ifstream statm("/proc/self/statm");
                rlim_t pages = 0;
                statm >> pages;
                const rlim_t limit =
                    pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
                const rlimit little{limit, limit};
                (void)::setrlimit(RLIMIT_AS, &little);
            });
            for (BlockCondition& condition : conditions)
                sequence.insert([&] {
                    try {
                        ++blocked;
                        condition.block();
                    } catch (const Error& error) {
                        if (error.code() == ErrorCode::kLimit) ++refused;
                    }
                });
            sequence.insert({.priority = -1}, [&] {
                for (BlockCondition& condition : conditions) condition.signal();
            });
            all_inserted = true;
            sequence.wait();
        }
        std::_Exit(blocked == kTasks && refused > 0 && refused < kTasks ? 0 : 1);
    }

    [[noreturn]] void use_stacks_of(const char* bytes) const {
        ::setenv("HEDDLE_STACK_BYTES", bytes, 1);
        const auto use_much = [] {
            volatile char much[500'000];
            much[0] = 1;
            much[sizeof much - 1] = 1;
        };
        try {
            Offload(engine_.name).spawn(use_much).wait();
            Runtime runtime(options());
            Sequence sequence(runtime);
            sequence.insert(use_much);
            sequence.wait();
        } catch (const Error& error) {
            fprintf(stderr, "%s\n", error.what());
            std::_Exit(2);
        }
        std::_Exit(0);
    }

  private:
    static constexpr uid_t kNobody = 65534;

    template <class Act>
    static void ends_or_is_refused(const Act& act) {
        try {
            act();
        } catch (const Error& error) {
            fprintf(stderr, "%s\n", error.what());
            // StarPU is begun once, and not again where it got no thread.
            if (error.code() != ErrorCode::kLimit && error.code() != ErrorCode::kUnavailable) std::_Exit(2);
        }
    }
    [[nodiscard]] int use_in_child() const {
        ::alarm(30);
        try {
            Runtime runtime(options());
            int seen = 0;
            Offload(engine_.name).spawn([&] { seen = 1; }).wait();
            return sum_of_tasks(runtime) == 55 && seen == 1 ? 0 : 1;
        } catch (const Error& error) {
            const bool says_why = std::string(error.what()).find("was forked") != std::string::npos;
            return error.code() == ErrorCode::kUnavailable && says_why ? 0 : 2;
        }
    }
};

TEST_P(EngineProcessDeathTest, ARuntimeInStaticStorageEndsWithTheProcess) {
    EXPECT_EXIT(end_with_a_runtime_left(), testing::ExitedWithCode(0), "");
}

TEST_P(EngineProcessDeathTest, AChildHasARuntimeOfItsOwnOrIsToldWhyNot) {
    if (kThreadSanitized) GTEST_SKIP() << "skipped: ThreadSanitizer knows no children of several threads";
    EXPECT_EXIT(fork_after_use(true), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(fork_after_use(false), testing::ExitedWithCode(0), "");
}

TEST_P(EngineProcessDeathTest, AHomeThatCannotBeWrittenIsNoHindrance) {
    EXPECT_EXIT(write_nowhere("/tmp"), testing::ExitedWithCode(0), "");
    if (engine_.name != "starpu") return;
    EXPECT_EXIT(write_nowhere("/proc"), testing::ExitedWithCode(2), "/proc/.starpu/sampling.*STARPU_HOME");
}

TEST_P(EngineProcessDeathTest, WithoutAThreadNobodyWaitsForEver) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer has threads of its own";
    EXPECT_EXIT(have_no_thread(), testing::ExitedWithCode(0), "");
}

TEST_P(EngineProcessDeathTest, WithoutMemoryForAStackAWaitIsRefused) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer has address space of its own";
    if (engine_.name != "tbb")
        GTEST_SKIP() << "skipped: OutOfStacksDeathTest is for native, StarPU ends a process without memory";
    EXPECT_EXIT(pause_without_memory(), testing::ExitedWithCode(0), "");
}

TEST_P(EngineProcessDeathTest, TheUserMayChooseHowLargeStacksAre) {
    EXPECT_EXIT(use_stacks_of("1048576"), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(use_stacks_of("1 MiB"), testing::ExitedWithCode(2), "HEDDLE_STACK_BYTES.*'1 MiB'");
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineProcessDeathTest, engines(), engine_name);

}  // namespace
}  // namespace heddle::test
