// The Reception as it is, under the explorer, over a PacketRing: whoever takes, each packet is taken once,
// and none lies there while the own thread sleeps.
#include "memory/reception.hpp"

#include "memory/packet_ring.hpp"
#include "support/bell.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

constexpr uint64_t kPackets = 2;

class World {
  public:
    explicit World(Explorer& explorer) : explorer_(explorer) {}

    bool take_all() {
        const uint64_t before = taken_;
        std::byte buffer[sizeof taken_];
        const bool sound = ring_.take(buffer, [&](std::span<const std::byte> packet) {
            uint64_t number = 0;
            std::memcpy(&number, packet.data(), sizeof number);
            if (number != ++taken_) explorer_.fail("a packet is taken twice, or not in its turn");
        });
        if (!sound) explorer_.fail("what is in the ring was not pushed");
        if (taken_ == kPackets && taken_ != before) {
            over_.store(true, std::memory_order_relaxed);
            bell_.ring();
        }
        return taken_ != before;
    }
    [[nodiscard]] bool all_empty() const { return ring_.empty(); }
    void look_all() { ring_.looks(); }
    [[nodiscard]] bool sleep_all() {
        ring_.sleeps();
        full_fence();
        return ring_.empty();
    }

    void send() {
        for (uint64_t number = 1; number <= kPackets; ++number) {
            if (!ring_.push(std::as_bytes(std::span(&number, 1)))) explorer_.fail("there is room");
            if (ring_.wakes()) bell_.ring();
        }
    }
    void be_own_thread() {
        while (true) {
            reception_.receive([] {}, [](const auto& found) { (void)found(); });
            if (over_.load(std::memory_order_relaxed)) return;
            bell_.await();
        }
    }
    void wait_for_answer() {
        if (!reception_.begin()) return;
        (void)take_all();
        if (!reception_.end()) bell_.ring();
    }

  private:
    Explorer& explorer_;
    memory::PacketRing<4> ring_;
    Bell bell_;
    memory::Reception<World> reception_{*this};
    uint64_t taken_ = 0;
    std::atomic<bool> over_{false};
};

void one_waits_for_an_answer(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    explorer.thread([=] { world->send(); });
    explorer.thread([=] { world->be_own_thread(); });
    explorer.thread([=] { world->wait_for_answer(); });
}

TEST(ExploredReception, LeavesNoPacketWhereNobodyLooks) {
    expect_holds(one_waits_for_an_answer);
    for (const Fault fault : {Fault::kNoFences, Fault::kLostWakes, Fault::kNoLocks})
        expect_found(one_waits_for_an_answer, fault);
}

}  // namespace
}  // namespace heddle::test
