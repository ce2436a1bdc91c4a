// Checkpoints: back on another number of ranks and another kind of memory with the same bytes; cut, altered
// or in part they are told, and nothing of them is seen.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "golden.hpp"
#include "heddle/memory_checkpoint.hpp"
#include "memory/checkpoint_file.hpp"
#include "support/noise.hpp"
#include "support/on_ranks.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr uint64_t kFileBlock = CheckpointFile::kBlock;

std::vector<std::byte> content_of(Client& client, DataId data, uint64_t size) {
    const CacheId cache = client.create_cache(size);
    const ConstLocalRange local = client.get_const({data, {0, size}}, cache);
    std::vector<std::byte> bytes(local.pointer(), local.pointer() + size);
    client.release(local);
    client.delete_cache(cache);
    return bytes;
}

/// Calls the function on rank 0 of so many.
template <class Function>
void on_rank_0_of(memory::Rank ranks, const Function& function) {
    on_ranks(ranks, [&](Server& server, Client& client, Collective&) {
        if (server.rank() == 0) function(client);
    });
}

/// Around the borders of blocks and of the pieces that are moved at once.
const std::vector<uint64_t> kSizes{
    0, 1, 999, kFileBlock - 1, kFileBlock, kFileBlock + 1, 16 * kFileBlock, 16 * kFileBlock + 7};

using FromTo = std::pair<memory::Rank, memory::Rank>;
class CheckpointRanksTest : public testing::TestWithParam<FromTo> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CheckpointRanksTest,
                         testing::Values(FromTo(1, 1), FromTo(1, 3), FromTo(2, 1), FromTo(3, 4),
                                         FromTo(4, 2)),
                         [](const auto& which) {
                             return std::to_string(which.param.first) + "_to_" +
                                    std::to_string(which.param.second);
                         });

TEST_P(CheckpointRanksTest, TheSameBytesOnAnotherNumberOfRanks) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/state";
    std::vector<DataId> before;
    SegmentId segment, other;
    on_rank_0_of(GetParam().first, [&](Client& client) {
        segment = client.create_segment(10'000'000);
        (void)client.create_segment(100);
        other = client.create_segment(3, {"file", {{"path", folder.path()}}});
        for (size_t i = 0; i < kSizes.size(); ++i)
            before.push_back(
                client.allocate_filled(noise(kSizes[i], static_cast<uint32_t>(i)), segment,
                                       {i % 2 == 0 ? "equally_distributed" : "prefix_filled", {}}));
        before.push_back(client.allocate_filled(noise(3, 77), other));
        checkpoint(client, path);
    });
    on_rank_0_of(GetParam().second, [&](Client& client) {
        (void)client.create_segment(50);  // so that numbers are others
        const Restored there = restore(client, path);
        EXPECT_EQ(there.segments.size(), 3u);
        for (size_t i = 0; i < kSizes.size(); ++i)
            EXPECT_EQ(content_of(client, there.data.at(before[i]), kSizes[i]),
                      noise(kSizes[i], static_cast<uint32_t>(i)))
                << kSizes[i];
        EXPECT_EQ(content_of(client, there.data.at(before.back()), 3), noise(3, 77));
        for (const auto& one : client.inventory().segments)
            if (one.id == there.segments.at(other)) {
                EXPECT_EQ(one.kind, "file");
                EXPECT_EQ(one.options.at("path"), folder.path());
            }
        const auto prefix = there.data.at(before[7]);
        EXPECT_EQ(client.data_locality({{prefix, {0, kSizes[7]}}}).front().home, 0u);
    });
}

class CheckpointTest : public testing::Test {
  protected:
    CheckpointTest() {
        data_ = client_.allocate_filled(noise(600, 1), segment_);
        other_ = client_.allocate_filled(noise(kFileBlock + 100, 2), segment_);
        checkpoint(client_, path_);
    }
    [[nodiscard]] std::string file() const { return file_text(path_); }
    void write_file(const std::string& text) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    }
    /// What restoring says; "" where it succeeded. What it leaves is looked for.
    std::string refused() {
        const size_t segments = client_.inventory().segments.size();
        const size_t allocations = client_.inventory().allocations.size();
        try {
            (void)restore(client_, path_);
            return "";
        } catch (const Error& error) {
            EXPECT_EQ(client_.inventory().segments.size(), segments);
            EXPECT_EQ(client_.inventory().allocations.size(), allocations);
            EXPECT_THAT(error.what(), HasSubstr(path_));
            return error.what();
        }
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/state";
    Server server_;
    Client client_{server_};
    SegmentId segment_ = client_.create_segment(1 << 20);
    DataId data_, other_;
};

TEST_F(CheckpointTest, IsRefusedWhereverItWasCut) {
    const std::string whole = file();
    for (size_t size = 0; size < whole.size(); size += size < 400 ? 1 : 9'973) {
        write_file(whole.substr(0, size));
        ASSERT_NE(refused(), "") << size;
    }
    EXPECT_THAT(refused(), HasSubstr("it was cut"));
    write_file(whole + "x");
    EXPECT_THAT(refused(), HasSubstr("it was lengthened"));
    write_file("");
    EXPECT_THAT(refused(), HasSubstr("it ends at byte 0, within its header"));
    write_file(whole);
    EXPECT_EQ(refused(), "");
}

TEST_F(CheckpointTest, IsRefusedWhereverItWasAltered) {
    const std::string whole = file();
    for (size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 9'973) {
        std::string altered = whole;
        altered[at] = static_cast<char>(altered[at] ^ 4);
        write_file(altered);
        ASSERT_NE(refused(), "") << at;
    }
    std::string altered = whole;
    altered[200] = static_cast<char>(altered[200] ^ 1);
    write_file(altered);
    EXPECT_THAT(refused(), HasSubstr("block 0 (bytes"));
    altered = whole;
    altered[8] = 9;
    write_file(altered);
    EXPECT_THAT(refused(), HasSubstr("a checkpoint of version 9, and this heddle reads version 1"));
    write_file("GIF89a, for all that anybody knows, and long enough");
    EXPECT_THAT(refused(), HasSubstr("it is no checkpoint"));
}

TEST_F(CheckpointTest, BlocksInEachOthersPlacesAreSeen) {
    client_.free(data_);
    client_.free(other_);
    data_ = client_.allocate_filled(noise(2 * kFileBlock, 5), segment_);
    checkpoint(client_, path_);
    std::string text = file();
    const size_t length = kFileBlock + sizeof(uint32_t), first = text.size() - 2 * length;
    std::swap_ranges(text.begin() + static_cast<ptrdiff_t>(first),
                     text.begin() + static_cast<ptrdiff_t>(first + length),
                     text.begin() + static_cast<ptrdiff_t>(first + length));
    write_file(text);
    EXPECT_THAT(refused(), HasSubstr("block 0 (bytes"));
}

TEST_F(CheckpointTest, OfSomeSegments) {
    const SegmentId second = client_.create_segment(64);
    const DataId there = client_.allocate_filled(noise(64, 9), second);
    checkpoint(client_, path_, {second});
    const Restored made = restore(
        client_, path_, {.segments = SegmentDescription{"file", {{"path", folder_.path()}}}, .data = {}});
    ASSERT_EQ(made.segments.size(), 1u);
    EXPECT_EQ(content_of(client_, made.data.at(there), 64), noise(64, 9));
    EXPECT_THAT([&] { checkpoint(client_, path_, {SegmentId{99}}); },
                ThrowsMessage<Error>(HasSubstr("no segment 99")));
}

TEST_F(CheckpointTest, WhatCannotBeWrittenLeavesTheOlderOne) {
    const std::string whole = file();
    EXPECT_THAT([&] { checkpoint(client_, folder_.path() + "/no/state"); },
                ThrowsMessage<Error>(HasSubstr("cannot write")));
    std::filesystem::create_directory(folder_.path() + "/taken");
    EXPECT_THAT([&] { checkpoint(client_, folder_.path() + "/taken"); },
                ThrowsMessage<Error>(HasSubstr("/taken")));
    EXPECT_EQ(file(), whole);
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        files += entry.exists() ? 1 : 0;
    EXPECT_EQ(files, 2u) << "something was left";
}

/// As on a full disk.
TEST_F(CheckpointTest, AFileThatCannotGrowLeavesNothingInMemory) {
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{64 << 10, before.rlim_max};
    const size_t caches = server_.counters().caches.size();
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THAT([&] { checkpoint(client_, path_); }, ThrowsMessage<Error>(HasSubstr("cannot write")));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, ignored);
    EXPECT_EQ(server_.counters().caches.size(), caches);
    EXPECT_NO_THROW(checkpoint(client_, path_));
}

TEST_F(CheckpointTest, WhatDoesNotFitLeavesNothing) {
    EXPECT_THAT(
        [&] {
            (void)restore(client_, path_, {.segments = SegmentDescription{"tape", {}}, .data = {}});
        },
        ThrowsMessage<Error>(HasSubstr("tape")));
    EXPECT_THAT(
        [&] {
            (void)restore(client_, path_, {.segments = {}, .data = DataDescription{"odd", {}}});
        },
        ThrowsMessage<Error>(HasSubstr("odd")));
    EXPECT_EQ(client_.inventory().segments.size(), 1u);
    EXPECT_THAT([&] { (void)restore(client_, folder_.path() + "/none"); },
                ThrowsMessage<Error>(HasSubstr("cannot read")));
    EXPECT_THAT([&] { (void)restore(client_, folder_.path()); },
                ThrowsMessage<Error>(HasSubstr("it is no file")));
}

TEST_F(CheckpointTest, ByAClientInAnotherProcess) {
    const IpcServer door(server_, folder_.path() + "/memory");
    Client far(door.path());
    checkpoint(far, path_);
    const Restored made = restore(far, path_);
    EXPECT_EQ(content_of(far, made.data.at(other_), kFileBlock + 100), noise(kFileBlock + 100, 2));
    EXPECT_EQ(content_of(far, made.data.at(data_), 600), noise(600, 1));
}

TEST(CheckpointTablesTest, ThatCannotBeAreRefused) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/state";
    const auto refused = [&](const Inventory& table, std::span<const std::byte> content) {
        CheckpointWriter writer(path, table);
        writer.write(content);
        writer.keep();
        try {
            const CheckpointReader reader(path);
            return std::string();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kBadInput);
            return std::string(error.what());
        }
    };
    const std::vector<std::byte> ten(10);
    const Inventory::Segment segment{{1}, "shm", {{"a", "b"}}, 15};
    const Inventory::Allocation data{{2}, {1}, 10, "mine"};
    EXPECT_EQ(refused({{segment}, {data}}, ten), "");
    EXPECT_EQ(refused({{}, {}}, {}), "");
    EXPECT_THAT(refused({{segment, segment}, {data}}, ten), HasSubstr("segment 1 is in it twice"));
    EXPECT_THAT(refused({{}, {data}}, ten), HasSubstr("segment 1, which is not in it"));
    EXPECT_THAT(refused({{segment}, {data, {{3}, {1}, 6, ""}}}, ten), HasSubstr("it was cut"));
    EXPECT_THAT(refused({{{{1}, "shm", {}, 9}}, {data}}, ten), HasSubstr("smaller than what is in it"));
    EXPECT_THAT(refused({{{{1}, "shm", {}, 30}}, {data, data}}, {}), HasSubstr("it was cut"));
    EXPECT_THROW(CheckpointWriter(path, {{segment}, {{{2}, {1}, UINT64_MAX - 5, ""}}}), Error);
}

}  // namespace
}  // namespace heddle::test
