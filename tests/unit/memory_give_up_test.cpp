// Operations that are given up, as their bunch has failed: they wait neither for readers nor for a tag, also
// where they had not begun to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/memory_world.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

class MemoryGiveUpTest : public testing::Test {
  protected:
    MemoryGiveUpTest() : data_(world_.allocate(100, world_.segment({400, 400}))) {}

    Ticket put(memory::Rank rank, std::optional<Tag> tag, uint32_t readers = 0) {
        const CacheId cache = rank == 0 ? here_ : there_;
        const auto local = world_.get<MutableLocalRange>(rank, op::Allocate{far_.range.size, cache});
        return world_.start(rank, op::Put{local, far_, tag, true, readers});
    }
    std::string error(Ticket ticket) {
        if (!world_.ended(ticket)) return "it has not ended";
        const auto* error = std::get_if<MemoryError>(&world_.outcome(ticket));
        return error == nullptr ? "" : error->what();
    }

    MemoryWorld world_{2};
    DataId data_;
    GlobalRange far_{data_, {60, 20}};  // on rank 1
    CacheId here_ = world_.cache(0, 400), there_ = world_.cache(1, 400);
};

TEST_F(MemoryGiveUpTest, APutThatIsRefusedLaterDoesNotWaitForReaders) {
    put(1, Tag{1}, 1);
    world_.run();
    const Ticket next = put(0, Tag{2});
    world_.give_up(0, next);  // its request is under way
    world_.run();
    EXPECT_THAT(error(next), testing::HasSubstr("another operation of its bunch has failed"));
    EXPECT_TRUE(world_[1].node.home().idle());
}

TEST_F(MemoryGiveUpTest, AnExclusiveOneNeither) {
    put(1, Tag{1}, 1);
    world_.run();
    const Ticket next = world_.start(0, op::GetExclusive{far_, here_});
    world_.give_up(0, next);
    world_.run();
    EXPECT_THAT(error(next), testing::HasSubstr("another operation of its bunch has failed"));
    EXPECT_TRUE(world_[1].node.home().idle());
}

TEST_F(MemoryGiveUpTest, OneThatNeedNotWaitComesToItsEnd) {
    const Ticket next = put(0, Tag{2});
    world_.give_up(0, next);
    world_.run();
    EXPECT_EQ(error(next), "");
}

/// Its tag was there when it asked, and another one is by the time it is answered.
TEST_F(MemoryGiveUpTest, AGetWhoseTagIsAnotherOneByThenDoesNotWaitForIt) {
    put(1, Tag{1});
    world_.run();
    const Ticket get = world_.start(0, op::GetConst{far_, here_, Tag{1}});
    put(1, Tag{2});
    world_.give_up(0, get);
    world_.run();
    EXPECT_THAT(error(get), testing::AnyOf(std::string(), testing::HasSubstr("has failed")));
    EXPECT_TRUE(world_[1].node.home().idle());
}

}  // namespace
}  // namespace heddle::test
