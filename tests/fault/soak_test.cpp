// Two minutes of clients that come, change their minds and go: the arbiter's memory and descriptors stay as
// they are after the first one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

#include "cores/observer.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

/// TEST_MINUTES makes it longer.
std::chrono::seconds length() {
    const char* minutes = std::getenv("TEST_MINUTES");
    return std::chrono::seconds(60) * (minutes == nullptr ? 2 : std::max(2, std::atoi(minutes)));
}

class Churn {
  public:
    explicit Churn(std::string path) : path_(std::move(path)) {}
    void join_all() {
        for (auto& client : clients_) join(client);
    }
    void leave_all() {
        for (auto& client : clients_) client.reset();
    }
    void step() {
        std::optional<WireClient>& client = clients_[random_() % clients_.size()];
        if (!client) return join(client);
        switch (random_() % 8) {
            case 0:
                client.reset();
                break;
            case 1: {
                auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
                limits.min_cpus = static_cast<uint32_t>(random_() % 2);
                limits.weight = 1 + static_cast<uint32_t>(random_() % 5);
                client->send(limits);
                break;
            }
            case 2:
                client->send_left(client->grant().epoch);
                break;
            case 3:
                (void)Observer(path_).status();
                break;
            default:
                client->show_demand(static_cast<uint32_t>(random_() % 9));
                client->send(message_of<heddle_header>(HEDDLE_DEMAND));
        }
    }

  private:
    void join(std::optional<WireClient>& client) {
        client.emplace(path_);
        ASSERT_TRUE(client->join(hello_of("churn", static_cast<uint32_t>(random_() % 9))));
    }

    const std::string path_;
    std::mt19937 random_{3};
    std::vector<std::optional<WireClient>> clients_{64};
};

TEST(Soak, MemoryAndDescriptorsOfTheArbiterStayAsTheyAre) {
    Daemon daemon({"core:16 pu:1", {"--clients-per-user", "70"}, {}});
    const int descriptors = daemon.process().descriptors();
    const auto begin = std::chrono::steady_clock::now();
    const auto minutes = length();
    Churn churn(daemon.path());
    churn.join_all();
    long first_minute = 0, later = 0;
    for (auto now = begin; now < begin + minutes && !HasFatalFailure();
         now = std::chrono::steady_clock::now()) {
        for (int i = 0; i < 100; ++i) {
            churn.step();
            std::this_thread::sleep_for(1ms);
        }
        long& most = now < begin + 60s ? first_minute : later;
        most = std::max(most, daemon.process().resident_bytes());
    }
    RecordProperty("resident_kib", static_cast<int>(later / 1024));
    // Of some 60,000 steps a minute, which are drawn anew: a page or two more may have been in use at once.
    if (!kSanitized) {
        EXPECT_LE(later, first_minute + 4 * 4096) << "bytes";
    }
    churn.leave_all();
    EXPECT_TRUE(becomes_true([&] { return daemon.process().descriptors() == descriptors; }, 5s))
        << daemon.process().open_files();
}

}  // namespace
}  // namespace heddle::test
