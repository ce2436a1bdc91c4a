// What is freed while its bytes are being moved, by a thread that stands still in the middle of it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "memory/server_state.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

/// A mesh that keeps back what it has received, and tells of it and of what it has sent.
class WatchedMesh final : public Transport, private Transport::Listener {
  public:
    WatchedMesh(memory::Rank self, const std::string& folder)
        : mesh_(self, 2, folder, std::chrono::seconds(30)) {}

    void start(Transport::Listener& listener) override {
        listener_ = &listener;
        mesh_.start(*this);
    }
    void stop() override { mesh_.stop(); }
    void send(memory::Rank to, Packet packet) override {
        const auto content = parse(packet);
        if (content && std::holds_alternative<ChangeReply>(*content)) ++replies_sent;
        mesh_.send(to, std::move(packet));
    }
    void keep_back(bool keeps) {
        const std::scoped_lock lock(mutex_);
        keeps_ = keeps;
        changed_.notify_all();
    }

    std::atomic<int> consents_received{0}, replies_sent{0};

  private:
    void received(memory::Rank from, std::span<const std::byte> packet) override {
        const auto content = parse(packet);
        const auto* const messages = content ? std::get_if<std::vector<Message>>(&*content) : nullptr;
        if (messages != nullptr && std::ranges::any_of(*messages, [](const Message& one) {
                return one.kind == MessageKind::kWriteGrant;
            }))
            ++consents_received;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !keeps_; });
        }
        listener_->received(from, packet);
    }
    void lost(memory::Rank rank) override { listener_->lost(rank); }

    Mesh mesh_;
    Transport::Listener* listener_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool keeps_ = false;
};

/// Whether a thread of this process waits for something.
bool sleeps(pid_t thread) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string number, name;
    char state = 0;
    return stat >> number >> name >> state && state == 'S';
}

// How a thread is made to stand still: it says so, and waits for a byte.
int stands[2], goes_on[2];
void stand_still(int) {
    char byte = 0;
    (void)!::write(stands[1], &byte, 1);
    (void)!::read(goes_on[0], &byte, 1);
}

TEST(MemoryMovingTest, WhatIsFreedIsNobodyElsesBeforeItsLastTransferHasEnded) {
    if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer keeps signals back";
    ASSERT_TRUE(::pipe(stands) == 0 && ::pipe(goes_on) == 0);
    struct sigaction action {
    }, before{};
    action.sa_handler = stand_still;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR2, &action, &before);

    TemporaryFolder folder;
    WatchedMesh* mesh = nullptr;
    auto other = std::async(std::launch::async, [&] {
        return std::make_unique<ServerState>(ServerOptions{1, 2, folder.path(), 30});
    });
    auto watched = std::make_unique<WatchedMesh>(0, folder.path());
    mesh = watched.get();
    ServerState here(ServerOptions{0, 2, folder.path(), 30}, std::move(watched));
    const std::unique_ptr<ServerState> there = other.get();

    const ClientId client = here.add_client();
    const SegmentId segment = here.create_segment(40, {});
    const DataId data = here.allocate(40, segment, Placement{"equally_distributed", false, {}});
    const CacheId cache = here.create_cache(16, {});
    const auto own = std::get<MutableLocalRange>(here.execute_sync(client, op::Allocate{16, cache}));

    // A put to what lies on rank 1, whose consent is kept back until its thread stands still.
    mesh->keep_back(true);
    std::atomic<pid_t> putting{0};
    std::thread puts([&] {
        putting = ::gettid();
        (void)here.execute_sync(client, op::Put{own, {data, {20, 16}}, {}, true});
    });
    ASSERT_TRUE(becomes_true([&] { return mesh->consents_received == 1 && sleeps(putting); }));
    char byte = 0;
    ASSERT_EQ(::pthread_kill(puts.native_handle(), SIGUSR2), 0);
    ASSERT_EQ(::read(stands[0], &byte, 1), 1);
    mesh->keep_back(false);

    const int replied = mesh->replies_sent;
    std::thread frees([&] { there->free(data); });
    EXPECT_TRUE(becomes_true([&] { return here.inventory().allocations.empty(); }));
    // Whatever both ranks have to say of it is said when they have met twice.
    for (int meeting = 0; meeting < 2; ++meeting) {
        std::thread meets([&] { (void)there->meet({}); });
        (void)here.meet({});
        meets.join();
    }
    EXPECT_EQ(mesh->replies_sent, replied) << "its bytes can be had, and are still to be written";

    ASSERT_EQ(::write(goes_on[1], &byte, 1), 1);
    puts.join();
    frees.join();
    EXPECT_EQ(mesh->replies_sent, replied + 1);
    here.delete_segment(segment);
    ::sigaction(SIGUSR2, &before, nullptr);
    for (const int end : {stands[0], stands[1], goes_on[0], goes_on[1]}) ::close(end);
}

/// What rank 0 says of a copy that it gives up comes before what another thread says of the next one, however
/// long the first thread then moves bytes: else the home takes that one for the one that was given up.
TEST(MemoryMovingTest, ACopyThatIsGivenUpWhileBytesMoveIsNotTheNextOne) {
    constexpr uint64_t kLarge = 8U << 20, kOld = 4096, kNew = 2048;
    constexpr int kRounds = kSanitized ? 20 : 150;
    TemporaryFolder folder;
    auto other = std::async(std::launch::async, [&] {
        return std::make_unique<ServerState>(ServerOptions{1, 2, folder.path(), 30});
    });
    ServerState here(ServerOptions{0, 2, folder.path(), 30});
    const std::unique_ptr<ServerState> there = other.get();
    const ClientId client = here.add_client(), writer = there->add_client();
    const SegmentId segment = here.create_segment(2 * kLarge, {});
    const DataId data = here.allocate(2 * kLarge, segment, Placement{"equally_distributed", false, {}});
    const CacheId cache = here.create_cache(kLarge + kNew, {}), writers = there->create_cache(kNew, {});
    const GlobalRange large{data, {0, kLarge}}, old{data, {kLarge, kOld}}, now{data, {kLarge, kNew}};

    const auto read = [&](const GlobalRange& range) {
        const auto got = std::get<ConstLocalRange>(here.execute_sync(client, op::GetConst{range, cache}));
        const int value = *reinterpret_cast<const int*>(got.base + got.range.offset);
        (void)here.execute_sync(client, op::Release{got});
        return value;
    };
    const auto write = [&](int value) {
        const auto own =
            std::get<MutableLocalRange>(there->execute_sync(writer, op::Allocate{kNew, writers}));
        *reinterpret_cast<int*>(own.base + own.range.offset) = value;
        (void)there->execute_sync(writer, op::Put{own, now, {}, true});
    };
    write(0);
    for (int round = 0; round < kRounds; ++round) {
        (void)read(old);
        std::thread reads_much([&] { (void)read(large); });
        std::this_thread::sleep_for(std::chrono::microseconds(round * 37 % 1500));
        EXPECT_EQ(read(now), round);
        reads_much.join();
        write(round + 1);
        ASSERT_EQ(read(now), round + 1) << "the copy was not invalidated";
    }
    here.free(data);
    here.delete_segment(segment);
}

}  // namespace
}  // namespace heddle::test
