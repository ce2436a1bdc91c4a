// Clients of a memory server killed at random moments and at each named point, and stopped: what others see
// is whole, they go on, and nothing of the dead stays. TEST_KILLS says how many are killed; 300 when it does
// not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/failpoint.h"
#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "support/child.hpp"
#include "support/memory_records.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::memory {
namespace {

using namespace test;
using test::TemporaryFolder;
using Json = nlohmann::json;

class KillMemoryClients : public testing::Test {
  protected:
    Child spawn(const std::vector<std::string>& variables = {}, bool exclusive = true) {
        std::vector<std::string> command{HEDDLE_BUILD_DIR "/bin/memory_client", path_,
                                         std::to_string(data_.value), std::to_string(cache_.value),
                                         std::to_string(random_() % 1'000'000)};
        if (!exclusive) command.emplace_back("free");
        return Child(command, variables);
    }
    void kill(Child& victim) {
        victim.signal(SIGKILL);
        const int status = victim.reap();
        EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself, with " << WEXITSTATUS(status);
    }
    Json status() { return Json::parse(IpcConnection(path_).status()); }
    /// Nothing of a client is left, and what it may have held can be had.
    testing::AssertionResult is_clean() {
        const auto clean = [&] {
            const Json there = status();
            return there["local_ranges"] == 0 && there["operations"] == 0 && there["caches"].size() == 1 &&
                   there["caches"][0]["in_use"] == 0 && there["clients"].size() == 1;
        };
        if (!becomes_true(clean, 10s)) return testing::AssertionFailure() << status().dump();
        Client own(server_);
        const CacheId cache = own.create_cache(kRecords * kRecordBytes);
        own.release(own.get_exclusive({data_, {0, kRecords * kRecordBytes}}, cache));
        for (uint32_t which = 0; which < kRecords; ++which) {
            const ConstLocalRange seen = own.get_const(record(data_, which), cache);
            const bool whole = is_whole(seen.pointer());
            own.release(seen);
            if (!whole) return testing::AssertionFailure() << "record " << which << " was put in part";
        }
        own.delete_cache(cache);
        return testing::AssertionSuccess();
    }
    uint64_t number_of_gets() {
        const CacheStatistics counters = client_.statistics(cache_);
        return counters.hits + counters.hits_pending + counters.misses;
    }
    static int descriptors() {
        return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    Server server_;
    IpcServer socket_{server_, path_};
    Client client_{server_};
    DataId data_ = client_.allocate(kRecords * kRecordBytes, client_.create_segment(kRecords* kRecordBytes));
    CacheId cache_ = client_.create_cache(20 * kRecordBytes, {.shareable = true});
    std::mt19937 random_{static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed())};
};

TEST_F(KillMemoryClients, LeaveNothingBehind) {
    const char* const wanted = std::getenv("TEST_KILLS");
    const int kills = wanted == nullptr ? 300 : std::atoi(wanted);
    const int before = descriptors();  // no client has been there yet
    ASSERT_TRUE(is_clean());
    constexpr size_t kClients = 4;
    {
        std::vector<Child> clients;
        for (size_t i = 0; i < kClients; ++i) clients.push_back(spawn());
        for (int killed = 0; killed < kills && !HasFailure(); ++killed) {
            ::usleep(static_cast<useconds_t>(random_() % 8000));
            Child& victim = clients[random_() % kClients];
            kill(victim);
            victim = spawn();
        }
        for (Child& client : clients) kill(client);
    }
    EXPECT_TRUE(is_clean());
    EXPECT_TRUE(becomes_true([&] { return descriptors() == before; }, 5s)) << descriptors() - before;
}

/// Wherever it stops, with pins half set or a packet half read: all records can be put and got, and the
/// others go on.
TEST_F(KillMemoryClients, AStoppedOneStopsNobody) {
    const CacheId own = client_.create_cache(2 * kRecordBytes);
    std::vector<Child> clients;
    for (size_t i = 0; i < 3; ++i) clients.push_back(spawn({}, false));
    ASSERT_TRUE(becomes_true([&] { return number_of_gets() > 100; }));
    for (int stop = 0; stop < 200 && !HasFailure(); ++stop) {
        Child& victim = clients[random_() % clients.size()];
        victim.signal(SIGSTOP);
        for (uint32_t which = 0; which < kRecords; ++which) {
            const MutableLocalRange record_here = client_.allocate_local(kRecordBytes, own);
            write_record(record_here.pointer(), random_());
            client_.put_and_release(record_here, record(data_, which));
        }
        const uint64_t done = number_of_gets();
        EXPECT_TRUE(becomes_true([&] { return number_of_gets() > done + 10; })) << "stop " << stop;
        victim.signal(SIGCONT);
    }
    for (Child& client : clients) kill(client);
    client_.delete_cache(own);
    EXPECT_TRUE(is_clean());
}

#define HEDDLE_FAILPOINT_NAME(name) #name,
constexpr const char* kPoints[] = {HEDDLE_MEMORY_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};

class MemoryFailpoint : public KillMemoryClients, public testing::WithParamInterface<const char*> {};

TEST_P(MemoryFailpoint, TheOthersGoOn) {
    Child survivor = spawn();
    const bool only_once =
        std::string(GetParam()) == "memory_connected" || std::string(GetParam()) == "memory_is_welcomed";
    for (int passage = 1; passage <= (only_once ? 1 : 25); ++passage) {
        Child victim = spawn({std::string("TEST_FAILPOINT=") + GetParam() + ":" + std::to_string(passage)});
        ASSERT_TRUE(victim.ends_within(kSanitized ? 120s : 20s))
            << "the point was not passed " << passage << " times";
        const int end = victim.reap();
        EXPECT_TRUE(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL) << "it ended with " << WEXITSTATUS(end);
    }
    EXPECT_TRUE(survivor.running());
    const uint64_t done = number_of_gets();
    EXPECT_TRUE(becomes_true([&] { return number_of_gets() > done; }, 10s));
    kill(survivor);
    EXPECT_TRUE(is_clean());
}

INSTANTIATE_TEST_SUITE_P(Points, MemoryFailpoint, testing::ValuesIn(kPoints),
                         [](const auto& point) { return std::string(point.param); });

}  // namespace
}  // namespace heddle::memory
