// Segments in files whose blocks have checksums: what is altered, torn or does not fit is told, and nothing
// else is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "base/crc32c.hpp"
#include "heddle/memory.hpp"
#include "memory/segments/file/part_file.hpp"
#include "support/noise.hpp"
#include "support/on_ranks.hpp"
#include "support/open_files.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

void flip_a_bit(const std::string& path, uint64_t offset) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    std::byte byte{};
    ASSERT_EQ(::pread(file.get(), &byte, 1, static_cast<off_t>(offset)), 1);
    byte ^= std::byte{4};
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, static_cast<off_t>(offset)), 1);
}

TEST(Crc32c, IsThatOfTheStandardByBothWays) {
    const char* const digits = "123456789";
    const std::span<const std::byte> text(reinterpret_cast<const std::byte*>(digits), 9);
    EXPECT_EQ(crc32c(text), 0xE3069283u);  // of the catalogue of checksums
    EXPECT_EQ(crc32c_by_table(text), 0xE3069283u);
    for (size_t size = 0; size < 70; ++size) {
        const std::vector<std::byte> bytes = noise(size, static_cast<unsigned>(size));
        EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes)) << size;
    }
}

class PartFileTest : public testing::Test {
  protected:
    static constexpr uint64_t kSize = 5 * PartFile::kBlock + 77;
    std::string path_of(const char* name) const { return folder_.path() + "/" + name; }
    TemporaryFolder folder_;
};

TEST_F(PartFileTest, AnyRangeIsReadAsItWasWritten) {
    PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
    PartFile same(PartFile::Access::kOpen, path_of("part"), kSize, true);
    std::vector<std::byte> model(kSize), found(kSize);
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const uint64_t offset = random() % kSize, size = random() % (kSize - offset + 1);
        const std::vector<std::byte> bytes = noise(size, static_cast<unsigned>(random()));
        (round % 2 == 0 ? part : same).write(offset, bytes.data(), size);
        std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
        const uint64_t first = random() % kSize;
        found.assign(kSize, std::byte{1});
        (round % 3 == 0 ? part : same).read(first, found.data(), kSize - first);
        ASSERT_TRUE(std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kSize - first),
                               model.begin() + static_cast<std::ptrdiff_t>(first)))
            << round;
    }
}

TEST_F(PartFileTest, AFlippedBitIsToldWithFileAndBlock) {
    PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
    const std::vector<std::byte> bytes = noise(kSize, 1);
    std::vector<std::byte> found(kSize);
    part.write(0, bytes.data(), kSize);
    for (const uint64_t block : {uint64_t{0}, uint64_t{3}, uint64_t{5}}) {
        const uint64_t start = block * PartFile::kBlock;
        const uint64_t length = std::min(PartFile::kBlock, kSize - start);
        flip_a_bit(path_of("part"), start + length - 1);
        const auto told =
            ThrowsMessage<Error>(AllOf(HasSubstr("block " + std::to_string(block) + " of " + path_of("part")),
                                       HasSubstr("is not what was put there")));
        EXPECT_THAT([&] { part.read(0, found.data(), kSize); }, told);
        EXPECT_THAT([&] { part.read(start, found.data(), 1); }, told) << "also where another byte is read";
        EXPECT_THAT([&] { part.write(start + 1, bytes.data(), 2); }, told)
            << "it is not made right by a part";
        if (block > 0) part.read(0, found.data(), start);
        part.write(start, bytes.data() + start, length);
        part.read(0, found.data(), kSize);
        EXPECT_EQ(found, bytes);
    }
}

TEST_F(PartFileTest, WhereNobodyHasWrittenAreZerosAndTheyAreCheckedToo) {
    PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
    std::vector<std::byte> found(kSize, std::byte{1});
    part.read(0, found.data(), kSize);
    EXPECT_EQ(found, std::vector<std::byte>(kSize));
    EXPECT_LT(std::filesystem::file_size(path_of("part.sums")), 100u);
    flip_a_bit(path_of("part"), kSize - 1);
    EXPECT_THAT([&] { part.read(0, found.data(), kSize); }, ThrowsMessage<Error>(HasSubstr("block 5 of ")));
}

TEST_F(PartFileTest, AnAlteredChecksumIsTold) {
    PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
    flip_a_bit(path_of("part.sums"), 2 * sizeof(uint32_t));
    std::vector<std::byte> found(kSize);
    EXPECT_THAT([&] { part.read(0, found.data(), kSize); }, ThrowsMessage<Error>(HasSubstr("block 2 of ")));
}

/// Neighbours in one block, by way of two descriptions of the files, as two processes have them.
TEST_F(PartFileTest, WritersOfOneBlockDoNotTakeEachOthersBytesForDamage) {
    PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
    PartFile same(PartFile::Access::kOpen, path_of("part"), kSize, true);
    const auto work = [](PartFile& file, uint64_t first) {
        for (unsigned round = 0; round < 300; ++round) {
            const std::vector<std::byte> bytes = noise(40, round);
            std::vector<std::byte> found(40);
            file.write(first, bytes.data(), 40);
            file.read(first, found.data(), 40);
            EXPECT_EQ(found, bytes);
        }
    };
    std::vector<std::thread> threads;
    threads.emplace_back(work, std::ref(part), PartFile::kBlock - 20);
    threads.emplace_back(work, std::ref(part), 100);
    threads.emplace_back(work, std::ref(same), PartFile::kBlock + 20);
    threads.emplace_back(work, std::ref(same), 140);
    for (std::thread& thread : threads) thread.join();
}

TEST_F(PartFileTest, FilesGoWithTheSegmentAndNobodyElsesAreTaken) {
    {
        PartFile part(PartFile::Access::kCreate, path_of("part"), kSize, true);
        EXPECT_THAT([&] { PartFile(PartFile::Access::kCreate, path_of("part"), kSize, true); },
                    ThrowsMessage<Error>(HasSubstr("cannot create")));
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
    EXPECT_THAT([&] { PartFile(PartFile::Access::kOpen, path_of("part"), kSize, true); },
                ThrowsMessage<Error>(HasSubstr("cannot open")));
    EXPECT_THAT([&] { PartFile(PartFile::Access::kCreate, path_of("part"), UINT64_MAX, true); },
                ThrowsMessage<Error>(HasSubstr("cannot give its size to")));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(PartFileTest, OnAFullDiskNothingIsHalfWritten) {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=128k") != 0)
        GTEST_SKIP() << "skipped: a file system of 128 KiB needs root";
    for (const bool checksums : {false, true}) {
        PartFile part(PartFile::Access::kCreate, path_of("part"), 1 << 20, checksums);
        const std::vector<std::byte> old = noise(1000, 1), much = noise(300'000, 2);
        std::vector<std::byte> found(1000);
        part.write(0, old.data(), old.size());
        EXPECT_THAT([&] { part.write(0, much.data(), much.size()); },
                    ThrowsMessage<Error>(HasSubstr("free some room there")));
        part.read(0, found.data(), found.size());
        EXPECT_EQ(found, old);
    }
    ::umount2(folder_.path().c_str(), MNT_DETACH);
}

/// Of another process that had our number.
TEST(MemoryFileSegment, NamesThatAreTakenAreNoObstacle) {
    const TemporaryFolder folder;
    const auto taken = [&](uint64_t segment, const char* more) {
        std::ofstream(folder.path() + "/heddle-segment-" + std::to_string(::getpid()) + "-" +
                      std::to_string(segment) + ".0" + more)
            << "another's";
    };
    for (uint64_t segment = 1; segment < 10; ++segment) {
        taken(segment, "");
        taken(segment, "-1.sums");
    }
    Server server;
    Client client(server);
    for (const char* checksums : {"none", "crc32c"}) {
        const SegmentId segment =
            client.create_segment(100, {"file", {{"path", folder.path()}, {"checksums", checksums}}});
        client.delete_segment(segment);
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 18);
}

/// So that none stays, whoever is killed.
TEST(MemoryFileSegment, FilesHaveNoNamesOnceAllRanksHaveOpenedThem) {
    const TemporaryFolder folder;
    on_ranks(3, [&](Server&, Client& client, Collective& collective) {
        const SegmentId segment =
            collective.create_segment(300, {"file", {{"path", folder.path()}, {"checksums", "crc32c"}}});
        EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
        const DataId data = collective.allocate(300, segment);
        const CacheId cache = client.create_cache(300);
        client.release(client.get_const({data, {0, 300}}, cache));
        collective.barrier();
    });
}

TEST(MemoryFileSegment, ChecksumsAreAnOptionOfTheSegment) {
    TemporaryFolder folder;
    Server server;
    Client client(server);
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(10, {"file", {{"path", folder.path()}, {"checksums", "md5"}}});
        },
        ThrowsMessage<Error>(HasSubstr("one of none, crc32c")));
    const SegmentId segment =
        client.create_segment(100'000, {"file", {{"path", folder.path()}, {"checksums", "crc32c"}}});
    const std::vector<std::byte> content = noise(100'000, 3);
    const DataId data = client.allocate_filled(content, segment);
    const CacheId cache = client.create_cache(100'000);
    client.release(client.get_const({data, {5, 60'000}}, cache));
    for (const OpenFile& file : open_files_in(folder.path()))
        if (!file.name.ends_with(".sums")) flip_a_bit(file.path, 70'000);
    EXPECT_THAT(
        [&] {
            (void)client.get_const({data, {0, 100'000}}, cache);
        },
        ThrowsMessage<MemoryError>(HasSubstr("block 4 of ")));
    const MutableLocalRange own = client.allocate_local(100'000, cache);
    std::memcpy(own.pointer(), content.data(), content.size());
    client.put(own, {data, {0, 100'000}});
    client.release(own);
    const ConstLocalRange again = client.get_const({data, {0, 100'000}}, cache);
    EXPECT_EQ(std::memcmp(again.pointer(), content.data(), content.size()), 0);
    client.release(again);
}

/// The second piece cannot be written; the first one would have been by then.
TEST(MemoryFileSegment, OfAPutInPiecesAllIsWrittenOrNothing) {
    constexpr uint64_t kBlock = PartFile::kBlock;
    const TemporaryFolder folder;
    Server server;
    Client client(server);
    const SegmentId segment =
        client.create_segment(4 * kBlock, {"file", {{"path", folder.path()}, {"checksums", "crc32c"}}});
    const DataId before = client.allocate(kBlock, segment), between = client.allocate(kBlock, segment);
    client.free(before);
    const DataId data = client.allocate(3 * kBlock, segment);  // blocks 0, 2 and 3
    const CacheId cache = client.create_cache(8 * kBlock);
    const GlobalRange most{data, {0, kBlock + kBlock / 2}};
    const auto put = [&](int value) {
        const MutableLocalRange own = client.allocate_local(most.range.size, cache);
        std::memset(own.pointer(), value, most.range.size);
        client.put_and_release(own, most);
    };
    put(1);
    for (const OpenFile& file : open_files_in(folder.path()))
        if (!file.name.ends_with(".sums")) flip_a_bit(file.path, 2 * kBlock + kBlock - 1);
    client.delete_cache(cache);
    const CacheId fresh = client.create_cache(8 * kBlock);
    const MutableLocalRange own = client.allocate_local(most.range.size, fresh);
    std::memset(own.pointer(), 2, most.range.size);
    EXPECT_THAT([&] { client.put(own, most); }, ThrowsMessage<MemoryError>(HasSubstr("block 2")));
    client.release(own);
    const ConstLocalRange seen = client.get_const({data, {0, kBlock}}, fresh);
    EXPECT_EQ(seen.pointer()[0], std::byte{1});
    client.release(seen);
    client.free(data);
    client.free(between);
}

}  // namespace
}  // namespace heddle::test
