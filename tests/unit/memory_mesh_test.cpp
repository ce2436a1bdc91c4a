// Meshes alone: rings that are full, and both ends at once.
#include "memory/mesh.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <thread>

#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using memory::Mesh;
using memory::Packet;
using memory::Rank;
using memory::Transport;

/// All of its bytes say its number.
Packet numbered(uint32_t number, size_t size) {
    Packet packet(std::max(size, sizeof number), static_cast<std::byte>(number));
    std::memcpy(packet.data(), &number, sizeof number);
    return packet;
}

/// Notes what is out of order or torn, answers each packet as often as it is to, and can stand still.
class Ear final : public Transport::Listener {
  public:
    Mesh* mesh = nullptr;
    std::atomic<uint32_t> heard{0}, wrong{0};
    bool answers = false;

    void keep_still(bool still) {
        const std::scoped_lock lock(mutex_);
        still_ = still;
        changed_.notify_all();
    }

  private:
    void received(Rank from, std::span<const std::byte> packet) override {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !still_; });
        }
        uint32_t number = 0;
        std::memcpy(&number, packet.data(), sizeof number);
        bool whole = number == heard;
        for (const std::byte byte : packet.subspan(sizeof number))
            whole = whole && byte == static_cast<std::byte>(number);
        if (!whole) ++wrong;
        ++heard;
        if (answers) mesh->send(from, Packet(packet.begin(), packet.end()));
    }
    void lost(Rank) override {}

    std::mutex mutex_;
    std::condition_variable changed_;
    bool still_ = false;
};

class MemoryMeshes : public testing::Test {
  protected:
    MemoryMeshes() {
        auto second = std::async([&] { meshes_[1] = join(1); });
        meshes_[0] = join(0);
        second.get();
        for (int rank = 0; rank < 2; ++rank) ears_[rank].mesh = meshes_[rank].get();
    }
    ~MemoryMeshes() override {
        for (const auto& mesh : meshes_) mesh->stop();
    }
    std::unique_ptr<Mesh> join(Rank rank) {
        return std::make_unique<Mesh>(rank, 2, folder_.path(), std::chrono::seconds(30));
    }
    void start() {
        for (int rank = 0; rank < 2; ++rank) meshes_[rank]->start(ears_[rank]);
    }

    TemporaryFolder folder_;
    std::unique_ptr<Mesh> meshes_[2];
    Ear ears_[2];
};

TEST_F(MemoryMeshes, PacketsOfAllSizesComeWholeAndInOrder) {
    start();
    uint32_t sent = 0;
    for (size_t size = 4; size < 100; ++size) meshes_[1]->send(0, numbered(sent++, size));
    for (size_t size = Transport::kMaxPacket - 20; size <= Transport::kMaxPacket; ++size)
        meshes_[1]->send(0, numbered(sent++, size));
    EXPECT_TRUE(becomes_true([&] { return ears_[0].heard == sent; })) << ears_[0].heard << " of " << sent;
    EXPECT_EQ(ears_[0].wrong, 0u);
}

/// Who is slow, or has not begun, holds up nobody who sends.
TEST_F(MemoryMeshes, AFullRingBlocksNobody) {
    constexpr uint32_t kPackets = 2000;
    ears_[0].keep_still(true);
    start();
    for (uint32_t i = 0; i < kPackets; ++i) meshes_[1]->send(0, numbered(i, 1000));
    EXPECT_EQ(ears_[0].heard, 0u);
    ears_[0].keep_still(false);
    EXPECT_TRUE(becomes_true([&] { return ears_[0].heard == kPackets; })) << ears_[0].heard;
    EXPECT_EQ(ears_[0].wrong, 0u);
}

/// Each sends more than rings hold while the other does, and one answers all of it besides.
TEST_F(MemoryMeshes, BothFullAtOnceIsNoDeadlock) {
    constexpr uint32_t kPackets = 2000;
    ears_[0].answers = true;
    ears_[0].keep_still(true);
    ears_[1].keep_still(true);
    start();
    for (uint32_t i = 0; i < kPackets; ++i)
        for (Rank rank = 0; rank < 2; ++rank) meshes_[rank]->send(1 - rank, numbered(i, 1000));
    ears_[0].keep_still(false);
    ears_[1].keep_still(false);
    EXPECT_TRUE(becomes_true([&] { return ears_[0].heard == kPackets; })) << ears_[0].heard;
    EXPECT_TRUE(becomes_true([&] { return ears_[1].heard == 2 * kPackets; })) << ears_[1].heard;
    EXPECT_EQ(ears_[0].wrong, 0u);
}

/// Threads that wait for answers take each other's, and leave the rest to the mesh's own.
TEST_F(MemoryMeshes, WhoWaitsTakesPacketsInTheirOrder) {
    constexpr uint32_t kRounds = 20'000;
    ears_[0].answers = true;
    start();
    std::atomic<uint32_t> took{0};
    for (uint32_t i = 0; i < kRounds; ++i) {
        const uint32_t size = i % 1000 == 0 ? 30'000 : 100;
        {
            memory::Look look(i % 3 == 0 ? nullptr : meshes_[1].get());
            meshes_[1]->send(0, numbered(i, size));
            look.until([&] { return ears_[1].heard > i; });
        }
        took += ears_[1].heard > i ? 1 : 0;
        if (i % 5 == 0) continue;  // a next one before the answer
        while (ears_[1].heard <= i) std::this_thread::yield();
    }
    EXPECT_TRUE(becomes_true([&] { return ears_[1].heard == kRounds; })) << ears_[1].heard;
    EXPECT_EQ(ears_[0].wrong + ears_[1].wrong, 0u);
    EXPECT_GT(took, 0u);
}

}  // namespace
}  // namespace heddle::test
