// SavedClients: what one arbiter leaves is what the next one finds, and whatever else the file says is not.
#include "arbiter/saved_clients.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "support/temporary_folder.hpp"

namespace heddle {
namespace {

class SavedClientsTest : public testing::Test {
  protected:
    SavedClientsTest() { path_ = folder_.path() + "/state"; }

    std::map<int, SavedClient> left_behind() { return SavedClients(path_, os_).left_behind(); }
    /// Overwrites bytes of the file.
    void scribble(long offset, const std::string& bytes) {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(offset);
        file << bytes;
    }

    Os os_;
    test::TemporaryFolder folder_;
    std::string path_;
};

TEST_F(SavedClientsTest, TheNextArbiterFindsWhatWasSavedLast) {
    {
        SavedClients saved(path_, os_);
        EXPECT_EQ(saved.problem(), "");
        const int a = saved.add({17, 1000, 4711, "first", {}});
        const int b =
            saved.add({18, 1001, 4712, "second", CpuSet{1}, {3, CpuSet::parse("7-8,1023")}, JobId{9}});
        const int c = saved.add({19, 1001, 4713, "third", CpuSet{2}});
        saved.update(a, CpuSet::parse("0-3,1023"));
        saved.update(b, CpuSet{7});
        saved.remove(c);
    }
    const auto found = left_behind();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found.at(0).pid, 17);
    EXPECT_EQ(found.at(0).user, 1000U);
    EXPECT_EQ(found.at(0).started, 4711U);
    EXPECT_EQ(found.at(0).name, "first");
    EXPECT_EQ(found.at(0).cpus, CpuSet::parse("0-3,1023"));
    EXPECT_EQ(found.at(0).reserves, Reservation{});
    EXPECT_EQ(found.at(1).cpus, CpuSet{7});
    EXPECT_EQ(found.at(1).reserves, (Reservation{3, CpuSet::parse("7-8,1023")}));
    EXPECT_EQ(found.at(1).job, JobId{9});
    EXPECT_EQ(left_behind().size(), 2U) << "an arbiter may die before it has made anything of them";
    {
        SavedClients next(path_, os_);
        ASSERT_EQ(next.left_behind().size(), 2U);
        EXPECT_EQ(next.add({20, 1000, 4714, "third", CpuSet{4}}), 2) << "their places are theirs";
        next.remove(0);
        next.remove(1);
    }
    EXPECT_EQ(left_behind().at(2).name, "third");
}

TEST_F(SavedClientsTest, OfAPlaceThatWasHalfWrittenTheProcessAloneIsKnown) {
    {
        SavedClients saved(path_, os_);
        (void)saved.add({17, 1000, 4711, "first", CpuSet{3}, {2, CpuSet{3}}, JobId{9}});
    }
    scribble(48, std::string(1, '\x01'));  // the sequence number of the first place, odd
    {
        SavedClients next(path_, os_);
        ASSERT_EQ(next.left_behind().size(), 1U);
        next.update(0, CpuSet{4});  // whole again
    }
    const auto found = left_behind();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.at(0).pid, 17);
    EXPECT_EQ(found.at(0).started, 4711U);
    EXPECT_EQ(found.at(0).name, "");
    EXPECT_EQ(found.at(0).cpus, CpuSet{4});
    EXPECT_EQ(found.at(0).reserves, Reservation{});
    EXPECT_EQ(found.at(0).job, JobId{});
}

TEST_F(SavedClientsTest, OneThatMovesHasTheWholePlaceAlone) {
    constexpr long kFirst = 48, kSecond = kFirst + 360;
    for (const bool is_whole : {true, false}) {
        std::filesystem::remove(path_);
        {
            SavedClients saved(path_, os_);
            (void)saved.add({17, 1000, 4711, "under the one before", CpuSet{3}});
            (void)saved.add({17, 1000, 4711, "under this one", CpuSet{4}});
        }
        scribble(kSecond + 4, std::string(1, '\x01'));  // takes the place of the first
        if (!is_whole) scribble(kSecond, std::string(1, '\x01'));
        const auto found = left_behind();
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found.begin()->second.cpus, is_whole ? CpuSet{4} : CpuSet{3});
        EXPECT_EQ(left_behind(), found) << "and that is all there is";
    }
    {
        SavedClients next(path_, os_);
        ASSERT_EQ(next.left_behind().size(), 1U);
        EXPECT_EQ(next.add({17, 1000, 4711, "under the next", CpuSet{5}}, 0), 1);
    }
    EXPECT_EQ(left_behind().at(1).name, "under the next");
    EXPECT_EQ(left_behind().size(), 1U);
}

TEST_F(SavedClientsTest, AnotherBootOrVersionCountsAsNothing) {
    for (const long offset : {0, 4, 12}) {
        {
            SavedClients saved(path_, os_);
            (void)saved.add({17, 1000, 4711, "first", CpuSet{3}});
        }
        scribble(offset, "x");
        EXPECT_TRUE(left_behind().empty()) << "byte " << offset;
    }
}

TEST_F(SavedClientsTest, AnyBytesAreSurvived) {
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        {
            SavedClients saved(path_, os_);
            (void)saved.add({17, 1000, 4711, "first", CpuSet{3}});
        }
        for (int i = 0; i < 2000; ++i)
            scribble(48 + static_cast<long>(random() % 80'000), std::string(1, static_cast<char>(random())));
        SavedClients next(path_, os_);
        for (const auto& [place, client] : next.left_behind()) {
            EXPECT_LE(client.name.size(), size_t{HEDDLE_NAME_BYTES});
            next.remove(place);
        }
    }
    EXPECT_TRUE(left_behind().empty());
}

TEST_F(SavedClientsTest, WhatIsNoFileOfOursIsNotTouched) {
    ASSERT_EQ(::symlink("/etc/passwd", path_.c_str()), 0);
    SavedClients linked(path_, os_);
    EXPECT_NE(linked.problem(), "");
    EXPECT_EQ(linked.add({17, 1000, 4711, "first", {}}), -1);
    linked.update(-1, CpuSet{1});
    EXPECT_TRUE(linked.left_behind().empty());
    SavedClients nowhere(folder_.path() + "/none/state", os_);
    EXPECT_NE(nowhere.problem(), "");
    SavedClients unwanted("", os_);
    EXPECT_EQ(unwanted.problem(), "");
}

TEST_F(SavedClientsTest, HasABound) {
    SavedClients saved(path_, os_);
    for (size_t i = 0; i < SavedClients::kPlaces; ++i) EXPECT_GE(saved.add({17, 1000, 4711, "many", {}}), 0);
    EXPECT_EQ(saved.add({17, 1000, 4711, "one more", {}}), -1);
    saved.remove(3);
    EXPECT_EQ(saved.add({17, 1000, 4711, "in its place", {}}), 3);
}

TEST(Os, KnowsAProcess) {
    Os os;
    const auto self = os.process_status(::getpid());
    ASSERT_TRUE(self);
    EXPECT_EQ(self->state, 'R');
    EXPECT_EQ(self->parent, ::getppid());
    EXPECT_GT(self->started, 0U);
    EXPECT_EQ(self->started, os.process_status(::getpid())->started);
    EXPECT_FALSE(os.process_status(0));
}

}  // namespace
}  // namespace heddle
