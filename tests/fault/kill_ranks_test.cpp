// Ranks killed while they send as fast as they can: what others have of them is whole and in order, the death
// is told once, after the last packet, and whoever sends to the dead goes on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "memory/mesh.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using memory::Mesh;
using memory::Packet;
using memory::Rank;
using memory::Transport;

constexpr size_t kSizes[] = {8, 120, 137, 4000, 30'000};

Packet numbered(uint64_t number) {
    Packet packet(kSizes[number % std::size(kSizes)], static_cast<std::byte>(number));
    std::memcpy(packet.data(), &number, sizeof number);
    return packet;
}

class Witness final : public Transport::Listener {
  public:
    std::atomic<uint64_t> heard{0}, wrong{0};
    std::atomic<int> deaths{0};

  private:
    void received(Rank, std::span<const std::byte> packet) override {
        const Packet expected = numbered(heard++);
        if (deaths != 0 || !std::ranges::equal(packet, expected)) ++wrong;
    }
    void lost(Rank) override { ++deaths; }
};

class Deaf final : public Transport::Listener {
    void received(Rank, std::span<const std::byte>) override {}
    void lost(Rank) override {}
};

[[noreturn]] void send_until_killed(const std::string& folder) {
    Deaf deaf;
    Mesh mesh(1, 2, folder, std::chrono::seconds(30));
    mesh.start(deaf);
    for (uint64_t number = 0;; ++number) {
        mesh.send(0, numbered(number));
        if (number % 64 == 0) ::usleep(50);
    }
}

TEST(KillRanks, WhatTheDeadHaveSentIsWholeAndTheirDeathIsTold) {
    std::mt19937 random(1);
    uint64_t heard = 0;
    for (int round = 0; round < 40 || heard <= 1000; ++round) {
        ASSERT_LT(round, 1000) << "the others say next to nothing";
        const TemporaryFolder folder;
        const pid_t victim = ::fork();
        if (victim == 0) send_until_killed(folder.path());
        Witness witness;
        Mesh mesh(0, 2, folder.path(), std::chrono::seconds(30));
        mesh.start(witness);
        ASSERT_TRUE(becomes_true([&] { return witness.heard > 0; }));
        for (uint64_t number = 0; number < 50; ++number) mesh.send(1, numbered(number));
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
        ::kill(victim, SIGKILL);
        ::waitpid(victim, nullptr, 0);
        for (uint64_t number = 0; number < 200; ++number) mesh.send(1, numbered(number));
        ASSERT_TRUE(becomes_true([&] { return witness.deaths == 1; })) << "nobody told of its death";
        mesh.send(1, numbered(0));
        mesh.stop();
        EXPECT_EQ(witness.deaths, 1);
        EXPECT_EQ(witness.wrong, 0u);
        heard += witness.heard;
    }
}

}  // namespace
}  // namespace heddle::test
