// The PacketRing as it is, under the explorer: what is taken was pushed whole and in order, and who sleeps,
// for a packet or for room, is woken.
#include "memory/packet_ring.hpp"

#include "support/bell.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

using Ring = memory::PacketRing<4>;  // has room for one of our packets

/// A packet of three words with its length.
struct Content {
    uint64_t first, second;
};

std::span<const std::byte> packet_of(const Content& content) {
    return std::as_bytes(std::span(&content, 1));
}

struct World {
    Ring ring;
    Bell for_packets, for_room;
    uint64_t taken = 0;

    bool take(Explorer& explorer) {
        const uint64_t before = taken;
        std::byte buffer[sizeof(Content)];
        const bool sound = ring.take(buffer, [&](std::span<const std::byte> packet) {
            Content content{};
            if (packet.size() != sizeof content) return explorer.fail("a packet is not whole");
            std::memcpy(&content, packet.data(), sizeof content);
            if (content.first != ++taken || content.second != 10 * taken)
                explorer.fail("a packet is torn, old, or out of order");
        });
        if (!sound) explorer.fail("what is in the ring was not pushed");
        return taken != before;
    }
};

void one_pushes_and_one_takes(Explorer& explorer) {
    auto world = std::make_shared<World>();
    auto pushed = std::make_shared<uint64_t>(0);
    explorer.thread([=] {
        for (uint64_t i = 1; i <= 3; ++i) {
            const Content content{*pushed + 1, 10 * (*pushed + 1)};
            if (world->ring.push(packet_of(content))) ++*pushed;
        }
    });
    explorer.thread([=, &explorer] {
        for (int i = 0; i < 2; ++i) (void)world->take(explorer);
    });
    explorer.finally([=, &explorer] {
        (void)world->take(explorer);
        if (world->taken != *pushed) explorer.fail("packets are missing");
    });
}

/// As a Mesh does both: nobody looks while he sleeps, and nobody sleeps for good.
void both_sleep(Explorer& explorer) {
    constexpr uint64_t kPackets = 3;
    auto world = std::make_shared<World>();
    explorer.thread([=] {
        for (uint64_t i = 1; i <= kPackets; ++i) {
            const Content content{i, 10 * i};
            while (!world->ring.push_or_wait(packet_of(content))) world->for_room.await();
            if (world->ring.wakes()) world->for_packets.ring();
        }
    });
    explorer.thread([=, &explorer] {
        while (true) {
            world->ring.looks();
            while (world->take(explorer))
                if (world->ring.gives_room()) world->for_room.ring();
            if (world->taken == kPackets) return;
            world->ring.sleeps();
            full_fence();
            if (world->ring.empty()) world->for_packets.await();
        }
    });
}

TEST(ExploredPacketRing, GivesWholePacketsInOrder) {
    expect_holds(one_pushes_and_one_takes);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(one_pushes_and_one_takes, fault);
}

TEST(ExploredPacketRing, WakesWhoSleepsForPacketsOrForRoom) {
    expect_holds(both_sleep);
    for (const Fault fault : {Fault::kNoFences, Fault::kLostWakes}) expect_found(both_sleep, fault);
}

}  // namespace
}  // namespace heddle::test
