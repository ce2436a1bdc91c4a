// Hits without a message: what clients of other processes pin by themselves stays, what is put meanwhile is
// seen by who asks later, and no number that a client writes into its pins is believed.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/packet_socket.hpp"
#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "support/memory_text.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;
using Json = nlohmann::json;

class MemoryPinsTest : public testing::Test {
  protected:
    static bool needed_no_message(const LocalRange& local) { return PinnedCopies::is_pinned(local.id); }
    /// There is a copy, which is not in use.
    void fetch(const GlobalRange& global) {
        client_.release(client_.get_const(global, cache_));
        (void)client_.statistics(cache_);  // until it has been heard
    }
    /// By a message.
    static void put(Client& client, CacheId cache, const GlobalRange& global, const std::string& text) {
        const MutableLocalRange own = client.allocate_local(text.size(), cache);
        std::memcpy(own.pointer(), text.data(), text.size());
        client.put(own, global);
        client.release(own);
    }
    Json status() { return Json::parse(IpcConnection(path_).status()); }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    Server server_;
    IpcServer socket_{server_, path_};
    Client here_{server_};
    SegmentId segment_ = here_.create_segment(100'000);
    std::string content_ = "abcdefghijklmnopqrstuvwxyz";
    DataId data_ = here_.allocate_filled(std::as_bytes(std::span(content_)), segment_);
    CacheId own_of_here_ = here_.create_cache(100);
    Client client_{path_};
    CacheId cache_ = client_.create_cache(12, {.shareable = true});
};

TEST_F(MemoryPinsTest, WhatOneHasFetchedTheOthersHitWithoutAMessage) {
    const GlobalRange global{data_, {0, 4}};
    EXPECT_FALSE(needed_no_message(client_.get_const(global, cache_)));
    Client other(path_);
    (void)other.statistics(cache_);  // now it knows the cache
    const ConstLocalRange first = other.get_const(global, cache_);
    EXPECT_TRUE(needed_no_message(first));
    EXPECT_EQ(text_of(first), "abcd");
    const auto second = std::get<ConstLocalRange>(client_.execute(op::GetConst{global, cache_}).get());
    EXPECT_TRUE(needed_no_message(second));
    EXPECT_EQ(here_.statistics(cache_).hits, 2U);
    EXPECT_EQ(here_.statistics(cache_).misses, 1U);
    // What has a tag may be counted, and a part of a copy is not listed.
    EXPECT_FALSE(needed_no_message(other.get_const({data_, {1, 2}}, cache_)));
    const CacheId own = client_.create_cache(4);
    client_.release(client_.get_const(global, own));
    EXPECT_TRUE(needed_no_message(client_.get_const(global, own)));
}

TEST_F(MemoryPinsTest, ItIsReleasedOnce) {
    fetch({data_, {0, 4}});
    const ConstLocalRange local = client_.get_const({data_, {0, 4}}, cache_);
    ASSERT_TRUE(needed_no_message(local));
    EXPECT_EQ(status()["caches"][1]["in_use"], 1);
    client_.release(local);
    EXPECT_EQ(status()["caches"][1]["in_use"], 0);
    EXPECT_THAT([&] { client_.release(local); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    const ConstLocalRange again = client_.get_const({data_, {0, 4}}, cache_);
    EXPECT_THAT([&] { client_.release(local); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    EXPECT_THAT(
        [&] {
            client_.put(local, {data_, {4, 4}});
        },
        ThrowsMessage<MemoryError>(HasSubstr("not held")));
    client_.release(again);
}

TEST_F(MemoryPinsTest, WhatIsPutMeanwhileIsSeenLater) {
    const GlobalRange global{data_, {0, 4}};
    cache_ = client_.create_cache(40);
    fetch(global);
    const ConstLocalRange before = client_.get_const(global, cache_);
    ASSERT_TRUE(needed_no_message(before));
    put(here_, own_of_here_, global, "ABCD");
    const ConstLocalRange after = client_.get_const(global, cache_);
    EXPECT_FALSE(needed_no_message(after));
    EXPECT_EQ(text_of(after), "ABCD");
    EXPECT_EQ(text_of(before), "abcd");
    // A client's own put that has not ended yet, too.
    const MutableLocalRange own = client_.allocate_local(4, cache_);
    std::memcpy(own.pointer(), "1234", 4);
    OperationFuture putting = client_.execute(op::Put{own, global, {}, true});
    OperationFuture getting = client_.execute(op::GetConst{global, cache_});
    EXPECT_EQ(text_of(std::get<ConstLocalRange>(getting.get())), "1234");
    (void)putting.get();
}

TEST_F(MemoryPinsTest, WhatIsPinnedStaysAndItsRoomIsHadWhenItIsNot) {
    const GlobalRange global{data_, {0, 8}};
    fetch(global);
    const ConstLocalRange pinned = client_.get_const(global, cache_);
    ASSERT_TRUE(needed_no_message(pinned));
    EXPECT_THAT(
        [&] {
            (void)here_.get_const({data_, {8, 8}}, cache_);
        },
        ThrowsMessage<MemoryError>(HasSubstr("1 local range(s) are in use")));
    EXPECT_THAT([&] { here_.delete_cache(cache_); }, ThrowsMessage<Error>(HasSubstr("in use")));
    put(here_, own_of_here_, global, "12345678");
    EXPECT_THAT(
        [&] {
            (void)here_.get_const({data_, {8, 8}}, cache_);
        },
        ThrowsMessage<MemoryError>(HasSubstr("1 local range(s) are in use")));
    EXPECT_EQ(text_of(pinned), "abcdefgh");
    client_.release(pinned);
    here_.release(here_.get_const({data_, {8, 8}}, cache_));
    // A get to write takes over what nobody uses, and nothing that somebody does.
    const ConstLocalRange again = client_.get_const({data_, {8, 8}}, cache_);
    ASSERT_TRUE(needed_no_message(again));
    EXPECT_THROW((void)here_.get_mutable({data_, {8, 8}}, cache_), MemoryError);
    client_.release(again);
    here_.release(here_.get_mutable({data_, {8, 8}}, cache_));
    EXPECT_EQ(here_.statistics(cache_).free_bytes, 12U);
    here_.delete_cache(cache_);
    EXPECT_THROW((void)client_.get_const({data_, {8, 8}}, cache_), MemoryError);
}

TEST_F(MemoryPinsTest, WhatAClientHadPinnedIsFreeWhenItHasGone) {
    fetch({data_, {0, 12}});
    {
        Client other(path_);
        (void)other.statistics(cache_);
        ASSERT_TRUE(needed_no_message(other.get_const({data_, {0, 12}}, cache_)));
        put(here_, own_of_here_, {data_, {0, 2}}, "12");
        EXPECT_THROW((void)client_.allocate_local(1, cache_), MemoryError);
    }
    const auto is_free = [&] { return here_.statistics(cache_).free_bytes == 12; };
    EXPECT_TRUE(becomes_true(is_free));
    EXPECT_EQ(here_.statistics(cache_).hits, 1U) << "hits of clients that left are counted";
}

TEST_F(MemoryPinsTest, WhatIsHitIsNotTheNextToGo) {
    for (const uint64_t offset : {0, 4, 8}) fetch({data_, {offset, 4}});
    const ConstLocalRange oldest = client_.get_const({data_, {0, 4}}, cache_);
    ASSERT_TRUE(needed_no_message(oldest));
    client_.release(oldest);
    fetch({data_, {12, 4}});
    const ConstLocalRange still_there = client_.get_const({data_, {0, 4}}, cache_);
    EXPECT_TRUE(needed_no_message(still_there));
    client_.release(still_there);
    EXPECT_FALSE(needed_no_message(client_.get_const({data_, {4, 4}}, cache_)));
}

TEST_F(MemoryPinsTest, ItCanBePutFrom) {
    const GlobalRange from{data_, {0, 4}}, to{data_, {20, 4}};
    fetch(from);
    ConstLocalRange local = client_.get_const(from, cache_);
    ASSERT_TRUE(needed_no_message(local));
    put(here_, own_of_here_, from, "1234");  // what is held is put, not what is there now
    client_.put(local, to);
    EXPECT_EQ(text_of(here_.get_const(to, own_of_here_)), "abcd");
    ConstLocalRange part = local;
    part.range = {local.range.offset + 1, 2};
    client_.put(part, {data_, {24, 2}});
    EXPECT_EQ(text_of(here_.get_const({data_, {24, 2}}, own_of_here_)), "bc");
    part.range.size = 4;
    EXPECT_THAT([&] { client_.put(part, to); }, ThrowsMessage<MemoryError>(HasSubstr("not all in local")));
    client_.put_and_release(local, {data_, {10, 4}});
    EXPECT_EQ(text_of(here_.get_const({data_, {10, 4}}, own_of_here_)), "abcd");
    EXPECT_THAT([&] { client_.release(local); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    const Json there = status();
    EXPECT_EQ(there["caches"][1]["in_use"], 0);
    EXPECT_EQ(there["local_ranges"], 3) << "of the server's own client alone";
}

TEST_F(MemoryPinsTest, WhoHoldsManyAsksForTheRest) {
    const GlobalRange global{data_, {0, 4}};
    fetch(global);
    std::vector<ConstLocalRange> held;
    for (uint32_t i = 0; i < kPins + 10; ++i) held.push_back(client_.get_const(global, cache_));
    EXPECT_EQ(std::ranges::count_if(held, needed_no_message), kPins);
    EXPECT_EQ(status()["local_ranges"], 10);
    for (const ConstLocalRange& local : held) client_.release(local);
    EXPECT_TRUE(becomes_true([&] { return status()["local_ranges"] == 0; }));
    EXPECT_TRUE(needed_no_message(client_.get_const(global, cache_)));
}

TEST_F(MemoryPinsTest, WhatIsFreedIsNotHitAnyMore) {
    const DataId gone = here_.allocate_filled(std::as_bytes(std::span(content_)), segment_);
    fetch({gone, {0, 4}});
    const ConstLocalRange held = client_.get_const({gone, {0, 4}}, cache_);
    ASSERT_TRUE(needed_no_message(held));
    here_.free(gone);
    EXPECT_THROW((void)client_.get_const({gone, {0, 4}}, cache_), MemoryError);
    EXPECT_EQ(text_of(held), "abcd");
}

/// More copies than there are listings where they could be: the rest is had by messages.
TEST_F(MemoryPinsTest, MoreCopiesThanListings) {
    constexpr uint64_t kRanges = 2000;
    const DataId many = here_.allocate(kRanges, segment_);
    const CacheId cache = client_.create_cache(kRanges, {.shareable = true});
    size_t without = 0;
    for (const bool again : {false, true})
        for (uint64_t i = 0; i < kRanges; ++i) {
            const ConstLocalRange local = client_.get_const({many, {i, 1}}, cache);
            if (again && needed_no_message(local)) ++without;
            client_.release(local);
        }
    EXPECT_GT(without, listings_of(kRanges) / 2);
    EXPECT_LE(without, listings_of(kRanges));
    EXPECT_EQ(here_.statistics(cache).misses, kRanges);
    EXPECT_EQ(here_.statistics(cache).hits, kRanges);
}

/// A client that writes what it wants.
class Scribbler {
  public:
    Scribbler(const std::string& path, CacheId cache) : socket_(connect_to_packet_socket(path)) {
        (void)ask(1, ipc::Hello{"scribbler"});
        const ipc::Reply shown = ask(2, ipc::AttachCache{cache});
        size_ = std::get<ipc::CacheIs>(shown).size;
        pins_ = std::make_unique<MemoryRegion>(std::move(came_[3]), sizeof(PinPage), true);
        listings_ = std::make_unique<MemoryRegion>(std::move(came_[2]), bytes_of_listings(), false);
    }
    ipc::Reply ask(uint64_t number, const ipc::Request& request) {
        const Packet packet = ipc::packet_of(number, request);
        EXPECT_GT(::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL), 0);
        std::byte bytes[ipc::kMaxPacket];
        const ssize_t size = receive_packet(socket_.get(), bytes, came_);
        const auto reply = ipc::parse_reply({bytes, static_cast<size_t>(std::max<ssize_t>(size, 0))});
        EXPECT_TRUE(reply);
        return reply ? reply->content : ipc::Done{};
    }
    PinPage& page() { return *reinterpret_cast<PinPage*>(pins_->data()); }
    std::span<const CopyListing> listings() {
        return {reinterpret_cast<const CopyListing*>(listings_->data()), listings_of(size_)};
    }
    [[nodiscard]] uint64_t bytes_of_listings() const { return listings_of(size_) * sizeof(CopyListing); }
    [[nodiscard]] int listings_descriptor() const { return listings_->descriptor(); }

  private:
    Descriptor socket_;
    uint64_t size_ = 0;
    std::array<Descriptor, 4> came_;
    std::unique_ptr<MemoryRegion> pins_, listings_;
};

TEST_F(MemoryPinsTest, NobodyButTheServerWritesListings) {
    Scribbler scribbler(path_, cache_);
    EXPECT_THROW(
        MemoryRegion(Descriptor(::dup(scribbler.listings_descriptor())), scribbler.bytes_of_listings(), true),
        Error);
}

/// Each copy there is, and each there never was; outside, torn, too many: it holds what it could have got,
/// and nothing else; the others see what is in the memory, and have room as soon as it has gone.
TEST_F(MemoryPinsTest, NoNumberOfAClientIsBelieved) {
    fetch({data_, {0, 4}});
    fetch({data_, {4, 4}});
    std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
    {
        Scribbler scribbler(path_, cache_);
        PinPage& page = scribbler.page();
        page.reach = UINT32_MAX;
        page.hits = UINT64_MAX;
        for (std::atomic<Pin>& pin : page.pins) pin = random();
        for (std::atomic<uint8_t>& used : page.used) used = 255;
        fetch({data_, {8, 8}});
        // Turns that were and are to come, of each listing.
        size_t next = 0;
        for (uint32_t which = 0; which < scribbler.listings().size(); ++which)
            for (const uint64_t turn : {0, 2, 6, 1 << 20}) page.pins[next++ % kPins] = pin_of(which, turn);
        fetch({data_, {0, 12}});
        // Half of a pin is another one.
        for (std::atomic<Pin>& pin : page.pins) {
            const uint32_t half = static_cast<uint32_t>(random());
            std::memcpy(reinterpret_cast<std::byte*>(&pin) + 2, &half, sizeof half);
        }
        for (int i = 0; i < 100; ++i) {
            for (std::atomic<uint8_t>& used : page.used) used = 1;
            const uint64_t offset = random() % 14;
            const ConstLocalRange seen = client_.get_const({data_, {offset, 1 + random() % 12}}, cache_);
            EXPECT_EQ(text_of(seen), content_.substr(offset, seen.range.size));
            client_.release(seen);
            for (const Pin pin : {Pin{0}, Pin{random()}, pin_of(static_cast<uint32_t>(i), 1u << 20u)})
                EXPECT_TRUE(
                    std::holds_alternative<ipc::Failure>(scribbler.ask(3, ipc::HoldPinned{cache_, pin})));
        }
        // All that is there: as if it had got it.
        fetch({data_, {0, 12}});
        next = 0;
        for (uint32_t which = 0; which < scribbler.listings().size(); ++which)
            page.pins[next++] = pin_of(which, scribbler.listings()[which].turn);
        EXPECT_THROW((void)client_.allocate_local(1, cache_), MemoryError);
        EXPECT_TRUE(std::holds_alternative<ipc::Failure>(scribbler.ask(4, ipc::HoldPinned{{99}, 1})));
    }
    const auto has_room = [&] {
        try {
            client_.release(client_.allocate_local(12, cache_));
            return true;
        } catch (const MemoryError&) {
            return false;
        }
    };
    EXPECT_TRUE(becomes_true(has_room));
    EXPECT_TRUE(becomes_true([&] { return status()["caches"][1]["in_use"] == 0; }));
}

}  // namespace
}  // namespace heddle::test
