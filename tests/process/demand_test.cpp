// A program says what it could use where it has too little; the arbiter sees to it that it learns when it
// has.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "arbiter/server.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

/// The real system, in which something happens while a client joins: after the arbiter has looked at the
/// others, and before they see what it decided.
class OsWithJoins final : public Os {
  public:
    std::function<void()> while_one_joins;
    int peer_pidfd(int fd, pid_t pid) override {
        joins_ = true;
        return Os::peer_pidfd(fd, pid);
    }
    std::optional<ProcessStatus> process_status(pid_t pid) override {
        if (std::exchange(joins_, false) && while_one_joins) while_one_joins();
        return Os::process_status(pid);
    }
    int epoll_wait(int epoll, epoll_event* events, int count, std::optional<Nanoseconds> timeout) override {
        return Os::epoll_wait(epoll, events, count, std::min(timeout.value_or(1ms), Nanoseconds(1ms)));
    }

  private:
    bool joins_ = false;
};

/// As a client may: of four CPUs it has lent two, and says nothing when it wants one of them back, as it has
/// them still for all that it can see; a newcomer was faster.
TEST(Demand, ThatRoseUnsaidIsSeenWhenLentCpusAreTaken) {
    const TemporaryFolder folder;
    OsWithJoins os;
    SteadyClock clock;
    ServerConfig config;
    config.path = folder.path() + "/arbiter.sock";
    Arbiter arbiter(Machine::synthetic("core:4 pu:1"), make_policy("proportional"), {}, clock.now());
    Server server(config, std::move(arbiter), os, clock);
    std::jthread serving([&](const std::stop_token& end) {
        while (!end.stop_requested()) server.turn();
    });

    WireClient first(config.path);
    heddle_hello hello = hello_of("first", 2);
    hello.features = HEDDLE_FEATURE_HANDOVER;
    ASSERT_TRUE(first.join(hello));
    const heddle_grant_page& grant = *first.grant_page();
    ASSERT_EQ(grant.count, 4U) << "all that nobody wants";
    for (const int cpu : {2, 3})
        first.page()->release[cpu] =
            heddle_word(heddle_word_generation(grant.successor[cpu].load()), HEDDLE_LENT);
    os.while_one_joins = [&] {
        EXPECT_EQ(grant.count, 4U);
        first.page()->demand = 3;
    };
    WireClient second(config.path);
    ASSERT_TRUE(second.join(hello_of("second", 1)));
    EXPECT_TRUE(becomes_true([&] { return grant.noticed == 3U; }, 10s))
        << "noticed " << grant.noticed << ", has " << grant.count << " CPUs";
    serving.request_stop();
    serving.join();
}

}  // namespace
}  // namespace heddle::test
