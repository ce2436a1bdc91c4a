// Clients of a memory server in other processes, here in this one: what they share, what they keep apart,
// what stays of them, and what the server says to those that do not keep to the protocol.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "memory/ipc_wire.hpp"
#include "support/memory_stranger.hpp"
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

void write(const MutableLocalRange& own, const std::string& text) {
    std::memcpy(own.pointer(), text.data(), text.size());
}

class MemoryIpcTest : public testing::Test {
  protected:
    Json status() {
        IpcConnection connection(path_);
        return Json::parse(connection.status());
    }
    DataId allocated(const std::string& text) {
        Client client(server_);
        return client.allocate_filled(std::as_bytes(std::span(text)), segment_);
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    Server server_;
    std::optional<IpcServer> socket_{std::in_place, server_, path_};
    SegmentId segment_ = Client(server_).create_segment(1000);
};

TEST_F(MemoryIpcTest, AShareableCacheIsHitByAll) {
    const DataId data = allocated("woven");
    Client first(path_), second(path_), here(server_);
    const CacheId cache = first.create_cache(10, {.shareable = true});
    EXPECT_EQ(get_text(first, cache, {data, {0, 5}}), "woven");
    EXPECT_EQ(get_text(second, cache, {data, {0, 5}}), "woven");
    EXPECT_EQ(get_text(here, cache, {data, {1, 3}}), "ove");
    const CacheStatistics statistics = second.statistics(cache);
    EXPECT_EQ(statistics.misses, 1U);
    EXPECT_EQ(statistics.hits, 2U);
}

TEST_F(MemoryIpcTest, ACacheOfTheServersProcessIsSharedToo) {
    const DataId data = allocated("woven");
    Client here(server_), there(path_);
    const CacheId cache = here.create_cache(10, {.shareable = true});
    EXPECT_EQ(get_text(there, cache, {data, {0, 5}}), "woven");
    EXPECT_EQ(get_text(here, cache, {data, {0, 5}}), "woven");
    EXPECT_EQ(here.statistics(cache).hits, 1U);
}

TEST_F(MemoryIpcTest, WhatOneWritesNobodySeesBeforeItIsPut) {
    const DataId data = allocated("0123456789");
    Client writer(path_), reader(path_);
    const CacheId cache = writer.create_cache(20, {.shareable = true});
    const MutableLocalRange own = writer.get_mutable({data, {0, 10}}, cache);
    EXPECT_EQ(std::memcmp(own.pointer(), "0123456789", 10), 0);
    write(own, "abcdefghij");
    EXPECT_EQ(get_text(reader, cache, {data, {0, 10}}), "0123456789");
    MutableLocalRange part = own;
    part.range = {own.range.offset + 2, 3};
    writer.put(part, {data, {2, 3}});
    EXPECT_EQ(get_text(reader, cache, {data, {0, 10}}), "01cde56789");
    writer.put_and_release(own, {data, {0, 10}});
    // The copy that stays is not one that its writer can change.
    const ConstLocalRange copy = reader.get_const({data, {0, 10}}, cache);
    EXPECT_EQ(reader.statistics(cache).misses, 3U);
    write(own, "XXXXXXXXXX");
    EXPECT_EQ(text_of(copy), "abcdefghij");
}

TEST_F(MemoryIpcTest, ACopyCannotBeWrittenByWhoReadsIt) {
    const DataId data = allocated("woven");
    Client client(path_);
    const CacheId cache = client.create_cache(5, {.shareable = true});
    const ConstLocalRange local = client.get_const({data, {0, 5}}, cache);
    auto* const page =
        reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(local.pointer()) & ~uintptr_t{4095});
    EXPECT_EQ(::mprotect(page, 4096, PROT_READ | PROT_WRITE), -1);
}

TEST_F(MemoryIpcTest, CachesOfOthersAreNotForOne) {
    Client first(path_), second(path_), here(server_);
    const CacheId own = first.create_cache(10);
    const CacheId in_process = here.create_cache(10);
    for (const CacheId cache : {own, in_process})
        EXPECT_THAT([&] { (void)second.allocate_local(1, cache); },
                    ThrowsMessage<MemoryError>(HasSubstr("is another client's own")));
    EXPECT_THAT([&] { (void)second.allocate_local(1, CacheId{77}); },
                ThrowsMessage<MemoryError>(HasSubstr("has no cache 77")));
    const CacheId shared = first.create_cache(10, {.shareable = true});
    const MutableLocalRange held = first.allocate_local(4, shared);
    (void)second.statistics(shared);
    EXPECT_THAT([&] { second.release(held); },
                ThrowsMessage<MemoryError>(HasSubstr("not held by this client")));
    EXPECT_THAT([&] { second.delete_cache(shared); },
                ThrowsMessage<Error>(HasSubstr("1 local range(s) in use")));
    first.release(held);
    EXPECT_THAT([&] { first.release(held); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    (void)first.statistics(shared);  // until it has been heard
    second.delete_cache(shared);
    EXPECT_THAT([&] { (void)first.allocate_local(1, shared); },
                ThrowsMessage<MemoryError>(HasSubstr("has no cache")));
}

TEST_F(MemoryIpcTest, ErrorsAreThoseOfTheServer) {
    const DataId data = allocated("0123456789");
    Client client(path_);
    const CacheId cache = client.create_cache(4);
    EXPECT_THAT(
        [&] {
            (void)client.get_const({data, {8, 3}}, cache);
        },
        ThrowsMessage<MemoryError>(HasSubstr("3 bytes from offset 8")));
    EXPECT_THAT(
        [&] {
            (void)client.get_const({data, {0, 5}}, cache);
        },
        ThrowsMessage<MemoryError>(HasSubstr("never fit")));
    const MutableLocalRange own = client.allocate_local(4, cache);
    EXPECT_THAT(
        [&] {
            client.put(own, {data, {0, 5}});
        },
        ThrowsMessage<Error>(HasSubstr("both are to be of one size")));
    MutableLocalRange wide = own;
    wide.range.size = 5;
    EXPECT_THAT(
        [&] {
            client.put(wide, {data, {0, 5}});
        },
        ThrowsMessage<MemoryError>(HasSubstr("are not all in local range")));
    EXPECT_THAT([&] { (void)client.create_cache(uint64_t{1} << 62u); },
                ThrowsMessage<Error>(HasSubstr("does not fit")));
    EXPECT_THAT([&] { (void)client.create_cache(1, {.shareable = false, .numa_node = 1023}); },
                ThrowsMessage<Error>(HasSubstr("no memory on NUMA node 1023")));
    EXPECT_NO_THROW((void)client.create_cache(1, {.shareable = true, .numa_node = 0}));
    EXPECT_THAT(
        [&] {
            (void)client.create_segment(1, {"shm", {{"long", std::string(20'000, 'x')}}});
        },
        ThrowsMessage<Error>(HasSubstr("is longer than")));
    client.release(own);
}

TEST_F(MemoryIpcTest, ARangeThatIsNamedWronglyIsHeldStill) {
    const DataId data = allocated("0123456789");
    Client client(path_);
    const CacheId cache = client.create_cache(8), other = client.create_cache(8);
    const MutableLocalRange own = client.allocate_local(4, cache);
    const auto refused = [&](const auto& spoil, const char* why) {
        MutableLocalRange spoilt = own;
        spoil(spoilt);
        EXPECT_THAT([&] { client.release(spoilt); }, ThrowsMessage<MemoryError>(HasSubstr(why)));
        EXPECT_THAT(
            [&] {
                client.put_and_release(spoilt, {data, {0, spoilt.range.size}});
            },
            ThrowsMessage<MemoryError>(HasSubstr(why)));
    };
    refused([&](LocalRange& local) { local.cache = other; }, "only its range may be changed");
    refused([](LocalRange& local) { local.base = nullptr; }, "begins elsewhere in memory");
    refused([](LocalRange& local) { local.range.size = 5; }, "are not all in local range");
    refused([](LocalRange& local) { ++local.id; }, "is not held by this client");
    MutableLocalRange part = own;
    part.range = {1, 2};
    client.put(part, {data, {3, 2}});
    client.put_and_release(part, {data, {3, 2}});
    EXPECT_THAT([&] { client.release(own); },
                ThrowsMessage<MemoryError>(HasSubstr("is not held by this client")));
    client.delete_cache(cache);
}

TEST_F(MemoryIpcTest, NothingStaysOfAClient) {
    const DataId data = allocated("0123456789");
    {
        Client client(path_);
        const CacheId own = client.create_cache(100);
        const CacheId shared = client.create_cache(100, {.shareable = true});
        (void)client.get_const({data, {0, 4}}, own);
        (void)client.get_mutable({data, {0, 4}}, shared);
        (void)client.get_exclusive({data, {5, 2}}, own);
        OperationFuture never = client.execute(op::GetConst{{data, {0, 2}}, own, Tag{4}});
        OperationFuture waits =
            client.execute(op::Put{client.allocate_local(3, own), {data, {4, 3}}, {}, true});
        const Json there = status();
        EXPECT_EQ(there["local_ranges"], 4) << "with what the put is to release";
        EXPECT_EQ(there["caches"].size(), 2U);
        EXPECT_EQ(there["operations"], 3);
    }
    const auto empty = [&] {
        const Json there = status();
        return there["local_ranges"] == 0 && there["operations"] == 0 && there["caches"].empty() &&
               there["clients"].size() == 1;
    };
    EXPECT_TRUE(becomes_true(empty, 5s)) << status().dump();
    Client client(path_);
    const MutableLocalRange own = client.get_exclusive({data, {0, 10}}, client.create_cache(10));
    EXPECT_EQ(own.range.size, 10U);
}

TEST_F(MemoryIpcTest, ASharedCacheLivesAsLongAsItsLastUser) {
    const DataId data = allocated("woven");
    std::optional<Client> first(path_), second(path_);
    const CacheId cache = first->create_cache(10, {.shareable = true});
    EXPECT_EQ(get_text(*second, cache, {data, {0, 5}}), "woven");
    first.reset();
    EXPECT_TRUE(becomes_true([&] { return status()["caches"][0]["clients"] == 1; }, 5s));
    EXPECT_EQ(get_text(*second, cache, {data, {0, 5}}), "woven");
    EXPECT_EQ(second->statistics(cache).hits, 1U);
    second.reset();
    EXPECT_TRUE(becomes_true([&] { return status()["caches"].empty(); }, 5s));
}

TEST_F(MemoryIpcTest, AServerThatGoesFailsWhatWaits) {
    const DataId data = allocated("woven");
    Client client(path_);
    const CacheId cache = client.create_cache(10);
    const ConstLocalRange held = client.get_const({data, {0, 5}}, cache);
    OperationFuture never = client.execute(op::GetConst{{data, {0, 2}}, cache, Tag{4}});
    socket_.reset();
    EXPECT_THAT([&] { (void)never.get(); },
                ThrowsMessage<Error>(testing::AnyOf(HasSubstr("is gone"), HasSubstr("has left"))));
    EXPECT_EQ(text_of(held), "woven");
    EXPECT_TRUE(becomes_true(
        [&] {
            try {
                (void)client.create_cache(1);
            } catch (const Error& error) {
                return error.code() == ErrorCode::kUnavailable;
            }
            return false;
        },
        5s));
    EXPECT_THAT([&] { (void)Client(path_).rank(); },
                ThrowsMessage<Error>(HasSubstr("no memory server listens at")));
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MemoryIpcTest, OneServerAPath) {
    EXPECT_THAT([&] { IpcServer(server_, path_); },
                ThrowsMessage<Error>(HasSubstr("in use by another program")));
    EXPECT_THAT([&] { IpcServer(server_, "/no/such/folder/memory"); },
                ThrowsMessage<Error>(HasSubstr("No such file")));
    EXPECT_THAT([&] { IpcServer(server_, std::string(200, 'x')); },
                ThrowsMessage<Error>(HasSubstr("is too long")));
    // What a killed one left is no obstacle, and a file is not touched.
    const std::string left = folder_.path() + "/left";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, left.c_str(), left.size() + 1);
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_NO_THROW(IpcServer(server_, left));
    std::filesystem::create_symlink("nowhere", folder_.path() + "/link");
    EXPECT_THROW(IpcServer(server_, folder_.path() + "/link"), Error);
    EXPECT_TRUE(std::filesystem::is_symlink(folder_.path() + "/link"));
}

/// Its socket's file is not the one that is there any more.
TEST_F(MemoryIpcTest, AServerThatEndsLeavesTheSocketOfAnother) {
    const std::string path = folder_.path() + "/taken";
    auto first = std::make_optional<IpcServer>(server_, path);
    std::filesystem::remove(path);
    const IpcServer second(server_, path);
    first.reset();
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_NO_THROW(IpcConnection{path});
}

TEST_F(MemoryIpcTest, TheServerOfAnotherUserIsSpokenToWhereItWasNamedAlone) {
    if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can be another user";
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
    const std::string path = folder_.path() + "/heddle-memory.sock";
    // One that listens as another user and says nothing.
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::seteuid(65534), 0);
    const int listens = ::listen(socket.get(), 4);
    ASSERT_EQ(::seteuid(0), 0);
    ASSERT_EQ(listens, 0);
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    ::unsetenv("HEDDLE_MEMORY");
    EXPECT_THAT([] { (void)IpcConnection(""); }, ThrowsMessage<Error>(HasSubstr("is of user 65534")));
    ::setenv("HEDDLE_MEMORY", path.c_str(), 1);
    EXPECT_THAT([] { (void)IpcConnection(""); }, ThrowsMessage<Error>(HasSubstr("does not answer")));
    ::unsetenv("HEDDLE_MEMORY");
    ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(MemoryIpcTest, RangesWithoutBytesLeaveNothing) {
    const DataId data = allocated("woven");
    Client client(path_), here(server_);
    const CacheId cache = client.create_cache(10), own = here.create_cache(10);
    for (uint64_t offset = 0; offset <= 5; ++offset)
        for (int again = 0; again < 2; ++again) {
            client.release(client.get_const({data, {offset, 0}}, cache));
            here.release(here.get_const({data, {offset, 0}}, own));
        }
    // Neither was kept, so that none was found again.
    EXPECT_EQ(client.statistics(cache).hits, 0u);
    EXPECT_EQ(here.statistics(own).hits, 0u);
    here.free(data);
    EXPECT_THROW((void)client.get_const({data, {0, 0}}, cache), Error);
    EXPECT_THROW((void)here.get_const({data, {0, 0}}, own), Error);
}

/// Its process is gone, and it has not said that it leaves: who puts the next version is told, once.
TEST_F(MemoryIpcTest, AReaderThatDiesHoldsNoPut) {
    const DataId data = allocated("0123");
    const GlobalRange all{data, {0, 4}};
    Client writer(path_);
    const CacheId cache = writer.create_cache(40, {.shareable = true});
    const auto put = [&](Tag tag) {
        writer.put_and_release_and_set_tag(writer.allocate_local(4, cache), all, tag, 1);
    };
    put(1);
    {
        const Stranger dies(path_);
        dies.say(ipc::packet_of(1, ipc::Hello{"dies"}));
        dies.say(ipc::packet_of(2, ipc::AttachCache{cache}));
        dies.say(ipc::packet_of(3, op::GetConst{all, cache, Tag{1}}));
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(dies.hears());
        const auto read = dies.hears();
        ASSERT_TRUE(read && std::holds_alternative<ipc::Got>(read->content));
    }
    ASSERT_TRUE(becomes_true([&] { return status()["clients"].size() == 2; }));
    EXPECT_THAT([&] { put(2); }, ThrowsMessage<MemoryError>(HasSubstr("have died")));
    Client leaves(path_);
    put(2);
    leaves.release(leaves.get_const(all, cache, Tag{2}));
    put(3);
}

TEST_F(MemoryIpcTest, ARegisteredReaderThatDiesBeforeItsFirstReadHoldsNoPut) {
    const DataId data = allocated("0123");
    const GlobalRange all{data, {0, 4}};
    Client writer(path_);
    const CacheId cache = writer.create_cache(40, {.shareable = true});
    const auto put = [&](Tag tag, uint32_t readers) {
        writer.put_and_release_and_set_tag(writer.allocate_local(4, cache), all, tag, readers);
    };
    {
        const Stranger dies(path_);
        dies.say(ipc::packet_of(1, ipc::Hello{"dies"}));
        dies.say(ipc::packet_of(2, ipc::RegisterReader{all, true}));
        dies.say(ipc::packet_of(3, ipc::RegisterReader{{data, {3, 2}}, true}));
        EXPECT_TRUE(dies.hears());
        const auto registered = dies.hears(), refused = dies.hears();
        ASSERT_TRUE(registered && std::holds_alternative<ipc::Done>(registered->content));
        EXPECT_TRUE(refused && std::holds_alternative<ipc::Failure>(refused->content));
        put(1, 1);
    }
    ASSERT_TRUE(becomes_true([&] { return status()["clients"].size() == 2; }));
    EXPECT_THAT([&] { put(2, 1); },
                ThrowsMessage<MemoryError>(HasSubstr("1 client(s) that were to read it have died")));
    put(2, 0);
}

TEST_F(MemoryIpcTest, WhoDoesNotKeepToTheProtocolIsClosed) {
    const Packet hello = ipc::packet_of(1, ipc::Hello{"stranger"});
    const Packet wish = ipc::packet_of(2, ipc::CreateCache{10, {}});
    Packet cut = wish;
    cut.pop_back();
    Packet longer = wish;
    longer.push_back({});
    Packet unknown = wish;
    unknown[6] = std::byte{99};
    const Packet nobodys = ipc::packet_of(0, ipc::AskStatus{});
    const Packet huge(ipc::kMaxPacket + 1);
    using Said = std::vector<Packet>;
    for (const Said& said : std::vector<Said>{Said{wish}, Said{hello, hello}, Said{hello, cut},
                                              Said{hello, longer}, Said{hello, unknown},
                                              Said{Packet{std::byte{1}}}, Said{hello, nobodys}, Said{huge}}) {
        const Stranger stranger(path_);
        for (const Packet& packet : said) stranger.say(packet);
        int heard = 0;
        while (const auto reply = stranger.hears()) {
            ++heard;
            EXPECT_TRUE(std::holds_alternative<ipc::Welcome>(reply->content));
        }
        EXPECT_LE(heard, 1);
    }
    const Stranger old(path_);
    Packet other = hello;
    other[4] = std::byte{200};
    old.say(other);
    const auto reply = old.hears();
    ASSERT_TRUE(reply && std::holds_alternative<ipc::Failure>(reply->content));
    EXPECT_EQ(std::get<ipc::Failure>(reply->content).code, ErrorCode::kVersionMismatch);
    EXPECT_FALSE(old.hears());
    EXPECT_NO_THROW((void)Client(path_).create_cache(5));
}

/// A client that asks and never reads is not listened to any more; the others are.
TEST_F(MemoryIpcTest, WhoDoesNotReadStopsNobody) {
    const DataId data = allocated("woven");
    const Stranger deaf(path_);
    deaf.say(ipc::packet_of(1, ipc::Hello{"deaf"}));
    std::thread asking([&] {
        for (uint64_t number = 2; number < 20'000; ++number)
            deaf.say(ipc::packet_of(number, ipc::AskStatistics{{1}}));
    });
    Client client(path_);
    const CacheId cache = client.create_cache(10);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(get_text(client, cache, {data, {0, 5}}), "woven");
    ::shutdown(deaf.descriptor(), SHUT_RDWR);
    asking.join();
}

/// Ranges, ids and offsets at random, many of them of others: each is refused or harmless.
TEST_F(MemoryIpcTest, NumbersOutOfThinAirAreRefused) {
    const DataId data = allocated("0123456789");
    Client honest(path_);
    const CacheId cache = honest.create_cache(64, {.shareable = true});
    const ConstLocalRange seen = honest.get_const({data, {0, 10}}, cache);
    const Stranger stranger(path_);
    stranger.say(ipc::packet_of(1, ipc::Hello{"stranger"}));
    stranger.say(ipc::packet_of(2, ipc::AttachCache{cache}));
    (void)stranger.hears();
    (void)stranger.hears();
    uint64_t number = 10;
    const auto refused = [&](const ipc::Request& request) {
        stranger.say(ipc::packet_of(++number, request));
        const auto reply = stranger.hears();
        ASSERT_TRUE(reply);
        EXPECT_TRUE(std::holds_alternative<ipc::Failure>(reply->content)) << number;
    };
    LocalRange forged = seen;
    refused(op::Release{forged});
    refused(op::Put{forged, {data, {0, 10}}});
    for (const Range& range :
         {Range{0, UINT64_MAX}, Range{UINT64_MAX, 2}, Range{UINT64_MAX - 1, 10}, Range{60, 10}}) {
        forged.range = range;
        refused(op::Put{forged, {data, {0, range.size}}});
        refused(op::GetConst{{data, range}, cache});
        refused(op::GetExclusive{{data, range}, cache});
        refused(op::Allocate{std::max<uint64_t>(range.size, 65), cache});
    }
    refused(ipc::FreeData{{12345}});
    refused(ipc::DeleteSegment{{12345}});
    refused(ipc::DeleteCache{{12345}});
    refused(ipc::AskStatistics{{12345}});
    EXPECT_EQ(text_of(seen), "0123456789");
}

}  // namespace
}  // namespace heddle::test
