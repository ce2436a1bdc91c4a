// What clients in other processes may ask of a memory server, what it does at its own limits, and what
// becomes of what they had sent when they went.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "memory/ipc_wire.hpp"
#include "support/memory_stranger.hpp"
#include "support/memory_text.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "topology/cgroup.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it
using testing::HasSubstr;
using testing::ThrowsMessage;
using Json = nlohmann::json;

/// So many descriptors can be had, as long as it lives.
class FewDescriptors {
  public:
    explicit FewDescriptors(size_t left) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        int highest = 0;
        for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
            highest = std::max(highest, std::atoi(one.path().filename().c_str()));
        rlimit few = before_;
        few.rlim_cur = static_cast<rlim_t>(highest) + 1 + left;
        ::setrlimit(RLIMIT_NOFILE, &few);
        while (true) {
            Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            if (!one.valid()) break;
            taken_.push_back(std::move(one));
        }
        taken_.resize(taken_.size() - left);
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    rlimit before_{};
    std::vector<Descriptor> taken_;
};

class MemoryIpcLimitsTest : public testing::Test {
  protected:
    Json status() {
        IpcConnection connection(path_);
        return Json::parse(connection.status());
    }
    static ErrorCode code_of(const std::optional<ipc::Numbered<ipc::Reply>>& reply) {
        const auto* const failure = reply ? std::get_if<ipc::Failure>(&reply->content) : nullptr;
        return failure == nullptr ? ErrorCode{} : failure->code;
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    Server server_;
    IpcServer socket_{server_, path_};
    Client here_{server_};
    DataId data_ = here_.allocate(100, here_.create_segment(100));
};

TEST_F(MemoryIpcLimitsTest, ACacheThatCannotBeShownIsNotLeftBehind) {
    if (kSanitized) GTEST_SKIP() << "the sanitizers make pipes to look at memory";
    Stranger client(path_);
    client.say(ipc::packet_of(1, ipc::Hello{"poor"}));
    ASSERT_TRUE(client.hears());
    uint64_t number = 1;
    // A cache has a payload, listings, pins, and a shareable one what its client may write.
    for (const bool shareable : {false, true})
        for (size_t left = 0; left < (shareable ? 4 : 3); ++left) {
            const FewDescriptors few(left);
            client.say(ipc::packet_of(++number, ipc::CreateCache{100, {.shareable = shareable}}));
            EXPECT_EQ(code_of(client.hears()), ErrorCode::kSystem) << left;
        }
    EXPECT_EQ(status()["caches"].size(), 0U);
    client.say(ipc::packet_of(++number, ipc::CreateCache{100, {.shareable = true}}));
    EXPECT_EQ(code_of(client.hears()), ErrorCode{});
    EXPECT_EQ(status()["caches"].size(), 1U);
}

/// Each client of a shareable cache has as much again for what it writes.
TEST_F(MemoryIpcLimitsTest, WhatClientsMayWriteIsPromisedToo) {
    const MemoryRoom room = read_memory_room(SystemFiles());
    const uint64_t size = room.free / 4;
    std::deque<Stranger> clients;
    CacheId cache{};
    ErrorCode code{};
    const size_t most = room.total / size + 2;
    while (code == ErrorCode{} && clients.size() < most) {
        const Stranger& client = clients.emplace_back(path_);
        client.say(ipc::packet_of(1, ipc::Hello{"many"}));
        ASSERT_TRUE(client.hears());
        if (cache == CacheId{})
            client.say(ipc::packet_of(2, ipc::CreateCache{size, {.shareable = true}}));
        else
            client.say(ipc::packet_of(2, ipc::AttachCache{cache}));
        const auto reply = client.hears();
        code = code_of(reply);
        if (code == ErrorCode{}) cache = std::get<ipc::CacheIs>(reply->content).cache;
    }
    EXPECT_EQ(code, ErrorCode::kLimit);
    EXPECT_LE(clients.size() * size, room.total);
}

/// Of what it has registered for at once, that is.
TEST_F(MemoryIpcLimitsTest, AReaderMayRegisterForOneAfterTheOther) {
    const Stranger client(path_);
    client.say(ipc::packet_of(1, ipc::Hello{"reader"}));
    ASSERT_TRUE(client.hears());
    uint64_t number = 1;
    for (int round = 0; round < 1100; ++round) {
        for (int i = 0; i < 64; ++i)
            for (const bool reads : {true, false})
                client.say(ipc::packet_of(++number, ipc::RegisterReader{{data_, {50, 4}}, reads}));
        for (int i = 0; i < 128; ++i) {
            const auto reply = client.hears();
            ASSERT_TRUE(reply && std::holds_alternative<ipc::Done>(reply->content)) << number;
        }
    }
}

/// A client that has read what was put, says that it leaves, and goes with much that it has not heard.
class MemoryIpcEndsTest : public MemoryIpcLimitsTest {
  protected:
    void put(Tag tag) {
        writer_.put_and_release_and_set_tag(writer_.allocate_local(4, cache_), {data_, {0, 4}}, tag, 1);
    }
    void read_and_leave() const {
        const Stranger reader(path_);
        reader.say(ipc::packet_of(1, ipc::Hello{"leaves"}));
        reader.say(ipc::packet_of(2, ipc::AttachCache{cache_}));
        reader.say(ipc::packet_of(3, op::GetConst{{data_, {0, 4}}, cache_, Tag{1}}));
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader.hears());
        // More than there is room for: the server stops to listen.
        for (uint64_t number = 4; number < 404; ++number)
            reader.say(ipc::packet_of(number, ipc::AskStatistics{cache_}));
        reader.say(ipc::packet_of(0, ipc::Goodbye{}));
    }
    void expect_left_in_order() {
        EXPECT_TRUE(becomes_true([&] { return status()["clients"].size() == 2; }));
        EXPECT_NO_THROW(put(2));
    }

    Client writer_{path_};
    CacheId cache_ = writer_.create_cache(40, {.shareable = true});
};

TEST_F(MemoryIpcEndsTest, WhatWasSentBeforeTheSocketWasClosedIsHeard) {
    put(1);
    read_and_leave();
    expect_left_in_order();
}

TEST_F(MemoryIpcEndsTest, WhatWasSentBeforeTheProcessEndedIsHeard) {
    put(1);
    const pid_t child = ::fork();
    if (child == 0) {
        read_and_leave();
        ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    expect_left_in_order();
}

/// It neither reads nor sends, and lives on: what it was to be told is no reason to keep it.
TEST_F(MemoryIpcEndsTest, WhoHasShutItsSocketIsGone) {
    const Stranger gone(path_);
    gone.say(ipc::packet_of(1, ipc::Hello{"gone"}));
    ASSERT_TRUE(gone.hears());
    for (uint64_t number = 2; number < 12; ++number)
        gone.say(ipc::packet_of(number, ipc::AttachCache{cache_}));
    ASSERT_EQ(status()["clients"].size(), 3);
    ::shutdown(gone.descriptor(), SHUT_RDWR);
    EXPECT_TRUE(becomes_true([&] { return status()["clients"].size() == 2; }));
}

TEST_F(MemoryIpcEndsTest, ACacheThatSomebodyElseDeletedIsGivenBackAllTheSame) {
    Client worker(path_);
    for (int job = 0; job < 150; ++job) {
        const CacheId of_job = writer_.create_cache(10, {.shareable = true});
        (void)worker.statistics(of_job);
        writer_.delete_cache(of_job);
        EXPECT_THAT([&] { worker.delete_cache(of_job); },
                    ThrowsMessage<MemoryError>(HasSubstr("has no cache")))
            << job;
    }
}

/// The system allows a user so many descriptors on their way: one client that does not read has few of them.
TEST_F(MemoryIpcEndsTest, WhoDoesNotReadHasFewDescriptorsOnTheirWay) {
    const Stranger deaf(path_);
    deaf.say(ipc::packet_of(1, ipc::Hello{"deaf"}));
    ASSERT_TRUE(deaf.hears());
    constexpr uint64_t kAsked = 100;
    const Packet reply = ipc::packet_of(2, ipc::CacheIs{cache_, 40, false});
    for (uint64_t number = 2; number < 2 + kAsked; ++number)
        deaf.say(ipc::packet_of(number, ipc::AttachCache{cache_}));
    for (int i = 0; i < 10; ++i) (void)writer_.statistics(cache_);  // until it has been heard
    int unread = 0;
    ASSERT_EQ(::ioctl(deaf.descriptor(), FIONREAD, &unread), 0);
    EXPECT_LE(static_cast<size_t>(unread), 2 * reply.size());
    for (uint64_t i = 0; i < kAsked; ++i) ASSERT_TRUE(deaf.hears()) << i;
}

TEST_F(MemoryIpcLimitsTest, WhoComesWhenNoDescriptorIsLeftIsTold) {
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    std::byte bytes[ipc::kMaxPacket];
    ssize_t size = 0;
    {
        const FewDescriptors few(0);
        ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        pollfd ready{socket.get(), POLLIN, 0};
        ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
        size = ::recv(socket.get(), bytes, sizeof bytes, 0);
    }
    ASSERT_GT(size, 0);
    const auto reply = ipc::parse_reply({bytes, static_cast<size_t>(size)});
    EXPECT_EQ(code_of(reply), ErrorCode::kLimit);
    EXPECT_NO_THROW((void)Client(path_).create_cache(5));
}

/// A server that is slow to read: what was begun before the client went is sent, and that it has left.
TEST(MemoryIpcLeaveTest, AllThatWasSaidIsSent) {
    TemporaryFolder folder;
    const std::string path = folder.path() + "/memory";
    const Descriptor listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listening.get(), 1), 0);
    std::promise<void> goes;
    std::vector<ipc::Request> heard;
    std::thread server([&] {
        const Descriptor socket(::accept(listening.get(), nullptr, nullptr));
        std::byte bytes[ipc::kMaxPacket];
        const auto receive = [&] { return ::recv(socket.get(), bytes, sizeof bytes, 0); };
        if (receive() <= 0) return;
        const Packet welcome = ipc::packet_of(1, ipc::Welcome{0, 1});
        (void)!::send(socket.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
        goes.get_future().wait();
        for (ssize_t size = receive(); size > 0; size = receive())
            if (auto request = ipc::parse_request({bytes, static_cast<size_t>(size)}))
                heard.push_back(std::move(request->content));
    });
    constexpr size_t kBegun = 5000;
    {
        Client client(path);
        for (size_t i = 0; i < kBegun; ++i) (void)client.execute(op::GetConst{{{1}, {0, 1}}, {}});
        goes.set_value();
    }
    server.join();
    ASSERT_EQ(heard.size(), kBegun + 1);
    EXPECT_TRUE(std::holds_alternative<ipc::Goodbye>(heard.back()));
}

TEST_F(MemoryIpcLimitsTest, APutThatFailsKeepsWhatItWasToRelease) {
    Client client(path_);
    const CacheId cache = client.create_cache(20);
    const GlobalRange some{data_, {0, 4}};
    const MutableLocalRange mine = here_.get_exclusive(some, here_.create_cache(4));
    const MutableLocalRange own = client.allocate_local(4, cache);
    OperationFuture waits = client.execute(op::Put{own, some, {}, true});
    (void)client.statistics(cache);  // it is begun
    EXPECT_THAT([&] { client.release(own); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    here_.free(data_);
    EXPECT_THAT([&] { (void)waits.get(); }, ThrowsMessage<MemoryError>(HasSubstr("was freed meanwhile")));
    EXPECT_EQ(client.statistics(cache).free_bytes, 16U);
    EXPECT_NO_THROW(client.release(own));
    EXPECT_THAT([&] { client.release(own); }, ThrowsMessage<MemoryError>(HasSubstr("not held")));
    const MutableLocalRange other = client.allocate_local(4, cache);
    EXPECT_THAT([&] { client.put_and_release(other, some); },
                ThrowsMessage<MemoryError>(HasSubstr("no allocation")));
    EXPECT_NO_THROW(client.release(other));
    here_.release(mine);
}

}  // namespace
}  // namespace heddle::test
