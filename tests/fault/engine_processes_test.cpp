// Processes as engines do not expect them: that fork, that end with a runtime left, that may write nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "heddle/error.hpp"
#include "heddle/offload.hpp"
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

  private:
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

INSTANTIATE_TEST_SUITE_P(Engines, EngineProcessDeathTest, engines(), engine_name);

}  // namespace
}  // namespace heddle::test
