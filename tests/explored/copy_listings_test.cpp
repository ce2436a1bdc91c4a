// CopyListings and PinnedCopies under the explorer: a server takes copies back, writes over what nobody uses,
// and lists what it has written; a client uses copies meanwhile. What a client has is never written.
#include "memory/copy_listings.hpp"

#include "memory/pinned_copies.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

constexpr GlobalRange kOne{{1}, {0, 1}}, kOther{{1}, {1, 1}};
constexpr int kWrittenOver = -1;

CopyListing shown[kLeastListings];
PinPage pages[2];

class World {
  public:
    explicit World(Explorer& explorer) : explorer_(explorer) {
        for (CopyListing& one : shown)
            for (std::atomic<uint64_t>* word : {&one.turn, &one.data, &one.offset, &one.size, &one.place})
                word->store(0, std::memory_order_relaxed);
        for (PinPage& page : pages) {
            page.reach.store(0, std::memory_order_relaxed);
            for (int i = 0; i < 4; ++i) page.pins[i].store(kNoPin, std::memory_order_relaxed);
            for (uint32_t i = 0; i < kLeastListings; ++i) page.used[i].store(0, std::memory_order_relaxed);
            listings_.attach(page);
        }
    }

    // Of the server.
    Pin show(const GlobalRange& global, uint64_t place, int content) {
        payload_[place] = content;
        return listings_.list(global, place);
    }
    /// What was at `place` may be written over.
    bool take_back(Pin pin, uint64_t place) {
        listings_.unlist(pin);
        if (listings_.is_pinned(pin)) return false;
        payload_[place] = kWrittenOver;
        return true;
    }

    /// Of a client: the content of that copy, 0 where there is none.
    int use(int client, const GlobalRange& global) {
        const auto pinned = copies_[client].get(global);
        if (!pinned) return 0;
        const int content = payload_[pinned->place];
        explorer_.yield();
        if (content == kWrittenOver || payload_[pinned->place] != content)
            explorer_.fail("what a client uses was written over");
        copies_[client].release(pinned->id);
        return content;
    }

  private:
    Explorer& explorer_;
    CopyListings listings_{shown};
    PinnedCopies copies_[2] = {{shown, pages[0]}, {shown, pages[1]}};
    int payload_[3] = {};
};

/// The same range is listed again at once, with other bytes at another place.
void a_copy_is_taken_back(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    const Pin first = world->show(kOne, 0, 1);
    explorer.thread([world, first] {
        (void)world->take_back(first, 0);
        (void)world->show(kOne, 1, 2);
    });
    explorer.thread([world] { (void)world->use(0, kOne); });
}

/// The listing is used again for another range, whose bytes lie where the first one's were.
void a_listing_is_used_again(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    const Pin first = world->show(kOne, 0, 1);
    explorer.thread([world, first] {
        if (world->take_back(first, 0)) (void)world->show(kOne, 0, 2);
    });
    explorer.thread([world, &explorer] {
        const int before = world->use(0, kOne), after = world->use(0, kOne);
        if (before == 2 && after == 1) explorer.fail("a client saw what was there before");
    });
}

/// A client uses one pin for one copy after the other.
void a_pin_is_used_again(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    const Pin first = world->show(kOne, 0, 1);
    (void)world->show(kOther, 1, 2);
    explorer.thread([world, first] { (void)world->take_back(first, 0); });
    explorer.thread([world] {
        (void)world->use(0, kOne);
        (void)world->use(0, kOther);
    });
}

/// One that stopped in the middle, with its pin set, holds nothing that is listed later.
TEST(ExploredCopyListings, AStoppedClientHoldsOneCopy) {
    Explorer explorer({});
    World world(explorer);
    const Pin first = world.show(kOne, 0, 1);
    pages[1].reach.store(1);
    pages[1].pins[0].store(first);
    EXPECT_FALSE(world.take_back(first, 0));
    const Pin second = world.show(kOne, 1, 2);
    EXPECT_EQ(listing_of(first), listing_of(second));
    EXPECT_TRUE(world.take_back(second, 1));
}

TEST(ExploredCopyListings, WhatAClientHasIsNotWritten) {
    for (const Scenario scenario : {a_copy_is_taken_back, a_listing_is_used_again, a_pin_is_used_again})
        expect_holds(scenario);
    expect_found(a_copy_is_taken_back, Fault::kNoFences);
    expect_found(a_copy_is_taken_back, Fault::kRelaxedLoads);
    expect_found(a_copy_is_taken_back, Fault::kRelaxedStores);
    expect_found(a_listing_is_used_again, Fault::kNoFences);
    expect_found(a_pin_is_used_again, Fault::kRelaxedStores);
}

}  // namespace
}  // namespace heddle::test
