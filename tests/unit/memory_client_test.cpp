// Server and Client as programs use them, on each kind of segment that needs nothing but this machine, in the
// server's own process and by its socket.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <future>
#include <random>
#include <thread>

#include "heddle/memory.hpp"
#include "heddle/task.hpp"
#include "memory/server_state.hpp"
#include "support/kernels.hpp"
#include "support/memory_text.hpp"
#include "support/open_files.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

class MemoryClientTest : public testing::TestWithParam<const char*> {
  protected:
    static bool by_socket() { return std::string(GetParam()) == "by_socket"; }
    SegmentDescription kind() const {
        SegmentDescription description{by_socket() ? "shm" : GetParam(), {}};
        if (description.kind == "file") description.options["path"] = folder_.path();
        return description;
    }
    std::string get(const GlobalRange& global) { return get_text(client_, cache_, global); }

    Client new_client() { return by_socket() ? Client(socket_.path()) : Client(server_); }
    CacheId new_cache(Client& client, uint64_t size) {
        return client.create_cache(size, {.shareable = by_socket()});
    }

    TemporaryFolder folder_, meeting_;
    Server server_;
    IpcServer socket_{server_, meeting_.path() + "/memory"};
    Client client_ = new_client();
    SegmentId segment_ = client_.create_segment(100, kind());
    CacheId cache_ = new_cache(client_, 64);
};
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryClientTest, testing::Values("shm", "file", "by_socket"),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(MemoryClientTest, WhatWasPutIsGot) {
    const DataId data = client_.allocate(20, segment_);
    const MutableLocalRange own = client_.allocate_local(20, cache_);
    std::memcpy(own.pointer(), "a thread in the loom", 20);
    client_.put_and_release(own, {data, {0, 20}});
    EXPECT_EQ(get({data, {0, 20}}), "a thread in the loom");
    EXPECT_EQ(get({data, {16, 4}}), "loom");
    const CacheStatistics cache = client_.statistics(cache_);
    EXPECT_EQ(cache.hits, 2U);
    EXPECT_EQ(cache.misses, 0U);
}

TEST_P(MemoryClientTest, CountersTellWhatWasMovedAndWhatWasNot) {
    const DataId data = client_.allocate_filled(bytes_of("0123456789"), segment_);
    EXPECT_EQ(get({data, {0, 8}}), "01234567");
    EXPECT_EQ(get({data, {2, 3}}), "234");
    client_.release(client_.get_mutable({data, {1, 4}}, cache_));
    (void)client_.statistics(cache_);  // so that by a socket, too, all releases have been heard
    Counters all = server_.counters();
    EXPECT_EQ(all.rank, 0U);
    ASSERT_EQ(all.segments.size(), 1U);
    ASSERT_EQ(all.links.size(), 1U);
    EXPECT_EQ(all.segments[0].segment, segment_);
    EXPECT_EQ(all.segments[0].kind, kind().kind);
    EXPECT_EQ(all.segments[0].moved.bytes_written, 10U);
    EXPECT_EQ(all.segments[0].moved.reads, 1U);
    EXPECT_EQ(all.segments[0].moved.bytes_read, 8U);
    EXPECT_EQ(all.bytes_copied_within_caches, 4U);
    ASSERT_EQ(all.caches.size(), 1U);
    EXPECT_EQ(all.caches[0].counters.hits, 2U);
    EXPECT_EQ(to_json(all),
              "{\"bytes_copied_within_caches\":4,\"caches\":[{\"evictions\":0,\"free_bytes\":56,\"hits\":2,"
              "\"hits_pending\":0,\"id\":" +
                  std::to_string(cache_.value) +
                  ",\"invalidations\":0,\"misses\":1,\"size\":64}],\"links\":[{\"bytes_read\":8,"
                  "\"bytes_written\":10,\"kind\":\"" +
                  kind().kind +
                  "\",\"rank\":0,\"reads\":1,\"writes\":1}],\"rank\":0,\"segments\":[{\"bytes_read\":8,"
                  "\"bytes_written\":10,\"id\":" +
                  std::to_string(segment_.value) + ",\"kind\":\"" + kind().kind +
                  "\",\"reads\":1,\"writes\":1}]}");
    client_.free(data);
    client_.delete_segment(segment_);
    client_.delete_cache(cache_);
    all = server_.counters();
    EXPECT_TRUE(all.segments.empty() && all.caches.empty());
    EXPECT_EQ(all.links[0].moved.bytes_read, 8U);  // its link has moved it all the same
}

TEST_P(MemoryClientTest, APartOfALocalRangeIsPut) {
    const DataId data = client_.allocate_filled(bytes_of("0123456789"), segment_);
    MutableLocalRange own = client_.get_mutable({data, {2, 6}}, cache_);
    std::memcpy(own.pointer(), "ABCDEF", 6);
    MutableLocalRange part = own;
    part.range.offset += 2;
    part.range.size = 3;
    client_.put(part, {data, {7, 3}});
    client_.release(own);
    EXPECT_EQ(get({data, {0, 10}}), "0123456CDE");
}

TEST_P(MemoryClientTest, ScatterAndGatherByBatches) {
    const DataId data = client_.allocate_filled(bytes_of("abcdefghij"), segment_);
    const auto results =
        client_.execute_sync({op::GetConst{{data, {8, 2}}, cache_}, op::GetConst{{data, {0, 3}}, cache_},
                              op::Allocate{5, cache_}, op::GetConst{{data, {4, 0}}, cache_}});
    EXPECT_EQ(text_of(std::get<ConstLocalRange>(results[0])) + text_of(std::get<ConstLocalRange>(results[1])),
              "ijabc");
    EXPECT_EQ(std::get<ConstLocalRange>(results[3]).range.size, 0U);
    const auto own = std::get<MutableLocalRange>(results[2]);
    std::memcpy(own.pointer(), "VWXYZ", 5);
    MutableLocalRange head = own, tail = own;
    head.range.size = 2;
    tail.range = {own.range.offset + 2, 3};
    (void)client_.execute_sync({op::Put{head, {data, {8, 2}}}, op::Put{tail, {data, {0, 3}}}});
    EXPECT_EQ(get({data, {0, 10}}), "XYZdefghVW");
}

TEST_P(MemoryClientTest, FuturesAndTags) {
    const DataId data = client_.allocate(4, segment_);
    OperationFuture tagged = client_.execute(op::GetConst{{data, {0, 4}}, cache_, Tag{9}});
    EXPECT_FALSE(tagged.is_ready());
    const MutableLocalRange own = client_.allocate_local(4, cache_);
    std::memcpy(own.pointer(), "nine", 4);
    OperationFuture put = client_.execute(op::Put{own, {data, {0, 4}}, Tag{9}, true});
    EXPECT_EQ(text_of(std::get<ConstLocalRange>(tagged.get())), "nine");
    (void)put.get();
    EXPECT_FALSE(put.valid());
}

TEST_P(MemoryClientTest, ABunchSucceedsAsOne) {
    const DataId data = client_.allocate_filled(bytes_of("warp"), segment_);
    std::promise<std::string> text;  // perhaps of the server's thread
    client_.execute_bunch(
        {op::GetConst{{data, {2, 2}}, cache_}, op::Allocate{7, cache_}},
        [&](const std::vector<OperationResult>& results) {
            text.set_value(text_of(std::get<ConstLocalRange>(results.at(0))));
        },
        [](const BunchError&) { FAIL(); });
    EXPECT_EQ(text.get_future().get(), "rp");
}

/// In a cache of another client's, of which its connection has still to ask, and from a copy that it has
/// pinned by itself.
TEST_P(MemoryClientTest, TheFunctionOfABunchBeginsMore) {
    const DataId data = client_.allocate_filled(bytes_of("warp"), segment_);
    Client other = new_client();
    const CacheId others = new_cache(other, 16);
    std::string text = get({data, {0, 4}});
    const auto pinned = std::get<ConstLocalRange>(client_.execute_sync(op::GetConst{{data, {0, 2}}, cache_}));
    std::promise<std::pair<OperationFuture, OperationFuture>> more;
    client_.execute_bunch(
        {op::GetConst{{data, {2, 2}}, cache_}, op::Allocate{7, cache_}},
        [&](const std::vector<OperationResult>&) {
            more.set_value({client_.execute(op::GetConst{{data, {0, 3}}, others}),
                            client_.execute(op::Put{pinned, {data, {2, 2}}, {}, false})});
        },
        [](const BunchError&) { FAIL(); });
    auto [got, put] = more.get_future().get();
    (void)put.get();
    EXPECT_THAT(text_of(std::get<ConstLocalRange>(got.get())), testing::StartsWith("wa"));
    EXPECT_EQ(get({data, {0, 4}}), "wawa");
}

TEST_P(MemoryClientTest, ABunchThatFailsLeavesNothing) {
    const DataId data = client_.allocate(10, segment_);
    const uint64_t free_bytes = client_.statistics(cache_).free_bytes;
    std::atomic<bool> told{false};
    std::vector<size_t> failed;
    std::string text;
    client_.execute_bunch(
        {op::Allocate{10, cache_}, op::GetConst{{data, {0, 4}}, cache_, Tag{1}},
         op::GetConst{{data, {0, 100}}, cache_}, op::Allocate{65, cache_}},
        [](const std::vector<OperationResult>&) { FAIL(); },
        [&](const BunchError& error) {
            for (const auto& one : error.errors()) failed.push_back(one.first);
            text = error.what();
            EXPECT_FALSE(error.may_have_written());
            told = true;
        });
    while (!told) std::this_thread::yield();
    EXPECT_THAT(failed, testing::ElementsAre(1, 2, 3));
    EXPECT_THAT(text,
                HasSubstr("3 operation(s) of a bunch failed; operation 1: another operation of its bunch has "
                          "failed; operation 2: 100 bytes from offset 0"));
    EXPECT_EQ(client_.statistics(cache_).free_bytes, free_bytes);
    client_.free(data);
    EXPECT_NO_THROW(client_.delete_cache(cache_));
}

/// Whatever it is refused for: nobody waits for the others for ever, and nothing of them is left.
TEST_P(MemoryClientTest, AnOperationThatIsRefusedStopsNoOtherOfItsBatch) {
    const DataId data = client_.allocate_filled(bytes_of("0123456789"), segment_);
    const GlobalRange there{data, {0, 4}};
    const CacheId nowhere{77};
    const MutableLocalRange own = client_.allocate_local(4, cache_);
    std::memcpy(own.pointer(), "ABCD", 4);
    const std::vector<std::pair<Operation, std::string>> refused{
        {op::Put{own, {data, {0, 5}}}, "both are to be of one size"},
        {op::Put{own, there, {}, false, 1}, "needs a tag"},
        {op::GetConst{{data, {0, 4}}, nowhere}, "has no cache 77"}};
    for (const auto& [operation, why] : refused) {
        EXPECT_THAT(
            [&] {
                (void)client_.execute_sync({op::GetConst{there, cache_}, operation, op::Allocate{1, cache_}});
            },
            ThrowsMessage<Error>(HasSubstr(why)));
        EXPECT_EQ(get(there), "0123");
        std::atomic<bool> told{false};
        std::string text;
        client_.execute_bunch(
            {op::GetConst{{data, {5, 2}}, cache_}, operation, op::Allocate{1, cache_}},
            [](const std::vector<OperationResult>&) { FAIL(); },
            [&](const BunchError& error) {
                text = error.what();
                told = true;
            });
        EXPECT_TRUE(becomes_true([&] { return told.load(); }));
        EXPECT_THAT(
            text, testing::AllOf(HasSubstr("1 operation(s) of a bunch failed; operation 1"), HasSubstr(why)));
        OperationFuture future = client_.execute(operation);
        EXPECT_THAT([&] { (void)future.get(); }, ThrowsMessage<Error>(HasSubstr(why)));
    }
    EXPECT_THAT(
        [&] {
            (void)client_.execute_sync({op::Put{own, {data, {4, 4}}}, refused[0].first});
        },
        ThrowsMessage<Error>(HasSubstr("one size")));
    EXPECT_EQ(get({data, {4, 4}}), "ABCD");
    client_.release(own);
    EXPECT_NO_THROW(client_.delete_cache(cache_));
}

TEST_P(MemoryClientTest, PartsOfALocalRangeThatOverlapArePutAtOnce) {
    const DataId data = client_.allocate(40, segment_);
    const MutableLocalRange own = client_.allocate_local(10, cache_);
    const std::vector<Range> parts{{2, 4}, {0, 10}, {2, 4}, {4, 6}, {0, 3}};
    for (int round = 0; round < 100; ++round) {
        std::string text;
        for (int i = 0; i < 10; ++i) text += static_cast<char>('a' + (round + i) % 26);
        std::memcpy(own.pointer(), text.data(), text.size());
        std::vector<Operation> puts;
        std::string expected;
        uint64_t at = 0;
        for (const Range& part : parts) {
            MutableLocalRange source = own;
            source.range = {own.range.offset + part.offset, part.size};
            puts.push_back(op::Put{source, {data, {at, part.size}}});
            expected += text.substr(part.offset, part.size);
            at += part.size;
        }
        (void)client_.execute_sync(puts);
        ASSERT_EQ(get({data, {0, at}}), expected) << "round " << round;
    }
    client_.release(own);
}

TEST_P(MemoryClientTest, AWaitInATaskPausesTheTask) {
    const DataId data = client_.allocate(4, segment_);
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence sequence(runtime);
    std::atomic<int> got{0};
    for (int i = 0; i < 20; ++i)
        sequence.insert([&] {
            (void)client_.execute_sync(op::GetConst{{data, {0, 4}}, cache_, Tag{5}});
            ++got;
        });
    sequence.insert({.priority = -1}, [&] {
        const MutableLocalRange own = client_.allocate_local(4, cache_);
        (void)client_.execute_sync(op::Put{own, {data, {0, 4}}, Tag{5}, true});
    });
    sequence.wait();
    EXPECT_EQ(got, 20);
}

/// Inside a parallel region of its own a task cannot be paused: what it has begun there ends, and is its own,
/// all the same.
TEST_P(MemoryClientTest, AWaitInATaskThatCannotBePausedEndsToo) {
    for (const EngineInfo& engine : Runtime::engines())
        if (engine.name == "openmp" && !engine.available) GTEST_SKIP() << "skipped: " << engine.reason;
    constexpr int kTasks = 10;
    const DataId data = client_.allocate(4, segment_);
    Runtime runtime({.engine = "openmp", .cpus = {}, .workers = 1});
    Sequence sequence(runtime);
    std::atomic<int> begun{0}, got{0};
    const auto get = [&](int) {
        ++begun;
        const auto range =
            std::get<ConstLocalRange>(client_.execute_sync(op::GetConst{{data, {0, 4}}, cache_, Tag{5}}));
        client_.release(range);
        ++got;
    };
    for (int i = 0; i < kTasks; ++i) sequence.insert([&] { test::in_parallel("openmp", 1, get); });
    EXPECT_TRUE(becomes_true([&] { return begun > 0; }, std::chrono::seconds(60)));
    EXPECT_EQ(got, 0);
    Client other = new_client();
    const CacheId others = new_cache(other, 4);
    other.put_and_release_and_set_tag(other.allocate_local(4, others), {data, {0, 4}}, 5);
    sequence.wait();
    EXPECT_EQ(got, kTasks);
    EXPECT_NO_THROW(client_.delete_cache(cache_));
}

TEST_P(MemoryClientTest, WhatAClientHeldIsReleasedWithIt) {
    const DataId data = client_.allocate(50, segment_);
    {
        Client other = new_client();
        (void)other.get_exclusive({data, {0, 50}}, cache_);
        OperationFuture never = other.execute(op::GetConst{{data, {0, 5}}, cache_, Tag{4}});
    }
    const MutableLocalRange own = client_.get_exclusive({data, {0, 50}}, cache_);
    client_.release(own);
    EXPECT_EQ(client_.statistics(cache_).free_bytes, 64U);
}

TEST_P(MemoryClientTest, SegmentsComeAndGo) {
    for (int i = 0; i < 100; ++i) {
        const SegmentId segment = client_.create_segment(10, kind());
        const DataId data = client_.allocate_filled(bytes_of("0123456789"), segment);
        EXPECT_THROW(client_.delete_segment(segment), Error);
        EXPECT_EQ(get({data, {9, 1}}), "9");
        client_.free(data);
        client_.delete_segment(segment);
        EXPECT_THAT([&] { (void)client_.allocate(1, segment); },
                    ThrowsMessage<MemoryError>(HasSubstr("no segment")));
        EXPECT_THAT([&] { get({data, {9, 1}}); }, ThrowsMessage<MemoryError>(HasSubstr("no allocation")));
    }
    size_t files = 0;
    for (const OpenFile& file : open_files_in(folder_.path()))
        files += std::filesystem::is_regular_file(file.path) ? 1 : 0;
    EXPECT_EQ(files, kind().kind == "file" ? 1U : 0U);
}

/// Threads that put whole values and read them: none is ever seen torn, and none older than what its reader
/// has seen.
TEST_P(MemoryClientTest, ThreadsNeverSeeATornValue) {
    constexpr size_t kCells = 12;
    const DataId data =
        client_.allocate(kCells * sizeof(uint64_t), client_.create_segment(kCells * 8, kind()));
    const CacheId shared = new_cache(client_, 1000);
    std::vector<std::thread> threads;
    std::atomic<int> torn{0}, old{0};
    for (unsigned seed = 0; seed < 4; ++seed) {
        threads.emplace_back([&, seed] {
            Client client = new_client();
            const CacheId own = client.create_cache(500);
            std::mt19937 random(seed);
            uint64_t newest = 0;
            for (int i = 0; i < 400; ++i) {
                const CacheId cache = random() % 2 == 0 ? own : shared;
                const GlobalRange all{data, {0, kCells * 8}};
                if (random() % 4 == 0) {
                    const MutableLocalRange local = client.get_exclusive(all, cache);
                    uint64_t value = 0;
                    std::memcpy(&value, local.pointer(), 8);
                    ++value;
                    for (size_t cell = 0; cell < kCells; ++cell)
                        std::memcpy(local.pointer() + cell * 8, &value, 8);
                    client.put_and_release(local, all);
                } else {
                    const ConstLocalRange local = client.get_const(all, cache);
                    uint64_t values[kCells];
                    std::memcpy(values, local.pointer(), sizeof values);
                    for (const uint64_t value : values) torn += value != values[0] ? 1 : 0;
                    old += values[0] < newest ? 1 : 0;
                    newest = values[0];
                    client.release(local);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(old, 0);
}

TEST(MemoryServerTest, BadInputIsToldClearly) {
    Server server;
    Client client(server);
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(1, {"tape", {}});
        },
        ThrowsMessage<Error>(HasSubstr("no segments of kind \"tape\": there are shm, file")));
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(1, {"shm", {{"path", "/"}}});
        },
        ThrowsMessage<Error>(HasSubstr("have no option \"path\"")));
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(1, {"file", {}});
        },
        ThrowsMessage<Error>(HasSubstr("needs the option \"path\"")));
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(1, {"file", {{"path", "/no/such/folder"}}});
        },
        ThrowsMessage<Error>(HasSubstr("No such file or directory")));
    for (const uint64_t size : {uint64_t{1} << 52u, UINT64_MAX}) {  // more than any machine has
        EXPECT_THAT([&] { (void)client.create_cache(size); },
                    ThrowsMessage<Error>(HasSubstr("is larger than the memory that this process may have")));
        EXPECT_THAT(
            [&] {
                (void)client.create_segment(size, {"shm", {}});
            },
            ThrowsMessage<Error>(HasSubstr("is more than the memory that this process may have")));
    }
    const CacheId cache = client.create_cache(0);
    EXPECT_THAT([&] { (void)client.allocate_local(1, cache); },
                ThrowsMessage<MemoryError>(HasSubstr("never fit")));
    client.delete_cache(cache);
    EXPECT_THAT([&] { client.delete_cache(cache); }, ThrowsMessage<MemoryError>(HasSubstr("has no cache")));
}

TEST(MemoryServerTest, WhatCannotBeFilledHoldsNothing) {
    ServerState server(ServerOptions{});
    const ClientId client = server.add_client();
    const std::vector<std::byte> content(8);
    for (int i = 0; i < 3; ++i) EXPECT_THROW(server.put_memory(client, content, DataId{99}), MemoryError);
    EXPECT_EQ(server.status().local_ranges, 0U);
    server.drop_client(client);
}

TEST(MemoryServerTest, AFileThatIsCutShortFailsTheGetAndNothingElse) {
    TemporaryFolder folder;
    Server server;
    Client client(server);
    const SegmentId segment = client.create_segment(1 << 20, {"file", {{"path", folder.path()}}});
    const DataId data = client.allocate_filled(bytes_of("kept"), segment);
    const CacheId cache = client.create_cache(1 << 20);
    std::filesystem::resize_file(open_files_in(folder.path()).at(0).path, 0);
    EXPECT_THAT(
        [&] {
            (void)client.get_const({data, {0, 4}}, cache);
        },
        ThrowsMessage<MemoryError>(HasSubstr("could not be read")));
    EXPECT_EQ(client.statistics(cache).free_bytes, uint64_t{1} << 20);
    const MutableLocalRange own = client.allocate_local(4, cache);
    client.put(own, {data, {0, 4}});
    EXPECT_NO_THROW((void)client.get_const({data, {0, 4}}, cache));
}

}  // namespace
}  // namespace heddle::test
