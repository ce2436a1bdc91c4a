// Memory servers as `heddle memory serve` has them: a user who is not theirs, several ranks, and one that
// dies.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/packet_socket.hpp"
#include "heddle/memory.hpp"
#include "memory/ipc_wire.hpp"
#include "support/child.hpp"
#include "support/memory_text.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::memory {
namespace {

using namespace test;
using test::TemporaryFolder;
using test::text_of;

/// What a server says to hello.
std::optional<ipc::Reply> answer_at(const std::string& path) {
    const Descriptor socket = connect_to_packet_socket(path);
    if (!socket.valid()) return {};
    const Packet hello = ipc::packet_of(1, ipc::Hello{"stranger"});
    (void)!::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    std::byte bytes[ipc::kMaxPacket];
    const ssize_t size = receive_packet(socket.get(), bytes, {});
    if (size <= 0) return {};
    const auto reply = ipc::parse_reply({bytes, static_cast<size_t>(size)});
    return reply ? std::optional(reply->content) : std::nullopt;
}

class MemoryServers : public testing::Test {
  protected:
    std::string socket(size_t rank) const { return folder_.path() + "/" + std::to_string(rank); }
    void start(size_t ranks) {
        for (size_t rank = 0; rank < ranks; ++rank)
            servers_.emplace_back(
                std::vector<std::string>{HEDDLE_BUILD_DIR "/bin/heddle", "memory", "serve", "--socket",
                                         folder_.path() + "/%r", "--segment", "shm,64K"},
                std::vector<std::string>{"HEDDLE_RANK=" + std::to_string(rank) + "/" + std::to_string(ranks),
                                         "HEDDLE_MESH=" + folder_.path()});
        for (size_t rank = 0; rank < ranks; ++rank)
            ASSERT_TRUE(becomes_true([&] { return answer_at(socket(rank)).has_value(); })) << rank;
    }
    static void put(Client& client, CacheId cache, const GlobalRange& global, const std::string& text) {
        const MutableLocalRange own = client.allocate_local(text.size(), cache);
        std::memcpy(own.pointer(), text.data(), text.size());
        client.put_and_release(own, global);
    }

    TemporaryFolder folder_;
    std::deque<Child> servers_;
};

TEST_F(MemoryServers, AnotherUserIsRefused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    start(1);
    ::chmod(folder_.path().c_str(), 0755);
    const auto as_nobody = [&](auto act) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(::setresuid(65534, 65534, 65534) == 0 && act() ? 0 : 1);
        int status = 1;
        ::waitpid(child, &status, 0);
        return status == 0;
    };
    EXPECT_TRUE(as_nobody([&] { return !answer_at(socket(0)).has_value(); })) << "its socket is open to all";
    ::chmod(socket(0).c_str(), 0666);
    EXPECT_TRUE(as_nobody([&] {
        const auto reply = answer_at(socket(0));
        const auto* const refused = reply ? std::get_if<ipc::Failure>(&*reply) : nullptr;
        return refused != nullptr && refused->code == ErrorCode::kPermission &&
               refused->text.find("serves user 0 only") != std::string::npos;
    }));
    EXPECT_NO_THROW((void)Client(socket(0)).create_cache(10));
}

TEST_F(MemoryServers, ClientsOfAllRanksHaveOneMemory) {
    start(3);
    std::deque<Client> clients;
    std::vector<CacheId> caches;
    for (size_t rank = 0; rank < 3; ++rank) {
        clients.emplace_back(socket(rank));
        EXPECT_EQ(clients.back().rank(), rank);
        caches.push_back(clients.back().create_cache(100, {.shareable = true}));
    }
    const DataId data = clients[2].allocate(30, SegmentId{1});
    for (size_t writer = 0; writer < 3; ++writer) {
        const std::string text(30, static_cast<char>('a' + writer));
        put(clients[writer], caches[writer], {data, {0, 30}}, text);
        for (size_t reader = 0; reader < 3; ++reader)
            for (const bool again : {false, true}) {
                const ConstLocalRange seen = clients[reader].get_const({data, {0, 30}}, caches[reader]);
                EXPECT_EQ(text_of(seen), text) << writer << " to " << reader << (again ? " again" : "");
                clients[reader].release(seen);
            }
    }
    // What lay on the one that dies fails, the rest goes on.
    servers_[1].signal(SIGKILL);
    (void)servers_[1].reap();
    const auto fails = [&] {
        try {
            clients[0].release(clients[0].get_mutable({data, {5, 20}}, caches[0]));
            return false;
        } catch (const MemoryError& error) {
            return error.memory_code() == MemoryErrorCode::kTransfer;
        }
    };
    clients[0].delete_cache(caches[0]);
    caches[0] = clients[0].create_cache(100);
    EXPECT_TRUE(becomes_true(fails));
    put(clients[2], caches[2], {data, {20, 10}}, "0123456789");
    EXPECT_EQ(text_of(clients[0].get_const({data, {20, 10}}, caches[0])), "0123456789");
    const auto is_gone = [&] {
        try {
            (void)clients[1].create_cache(1);
            return false;
        } catch (const Error& error) {
            return error.code() == ErrorCode::kUnavailable;
        }
    };
    EXPECT_TRUE(becomes_true(is_gone));
    // Segments have a part on each rank; allocations go where there is somebody.
    EXPECT_THAT([&] { (void)clients[2].create_segment(100); },
                testing::ThrowsMessage<Error>(testing::StrEq("rank 1 is gone")));
    const uint64_t dead = 1;
    EXPECT_EQ(clients[2].free_bytes(SegmentId{1}).at(dead), 0U);
    const DataId next = clients[2].allocate(30, SegmentId{1});
    put(clients[2], caches[2], {next, {0, 30}}, std::string(30, 'n'));
    EXPECT_EQ(text_of(clients[0].get_const({next, {0, 30}}, caches[0])), std::string(30, 'n'));
    EXPECT_THAT(
        [&] {
            (void)clients[2].allocate(10, SegmentId{1}, {"by hand", [](uint64_t size, auto) {
                                                             return std::vector<Share>{{1, size}};
                                                         }});
        },
        testing::ThrowsMessage<Error>(testing::HasSubstr("rank 1 is gone, and the distribution")));
}

TEST_F(MemoryServers, ALauncherThatIsKilledTakesItsRanksWithIt) {
    const std::string said = folder_.path() + "/said", place = folder_.path() + "/place";
    std::filesystem::create_directory(place);
    Child launcher({HEDDLE_BUILD_DIR "/bin/heddle", "memory", "launch", "-n", "2", "--", "/bin/sh", "-c",
                    "echo $$; exec sleep 1000"},
                   {"XDG_RUNTIME_DIR=" + place}, -1, said);
    std::vector<pid_t> ranks;
    ASSERT_TRUE(becomes_true([&] {
        std::ifstream lines(said);
        ranks.assign(std::istream_iterator<pid_t>(lines), {});
        return ranks.size() == 2;
    }));
    EXPECT_FALSE(std::filesystem::is_empty(place));
    launcher.signal(SIGKILL);
    (void)launcher.reap();
    EXPECT_TRUE(becomes_true([&] {
        return std::filesystem::is_empty(place) && std::ranges::none_of(ranks, [](pid_t rank) {
                   return std::filesystem::exists(fmt::format("/proc/{}/exe", rank));
               });
    }));
}

TEST_F(MemoryServers, ACacheThatTheMachineCannotHoldIsRefused) {
    start(1);
    Client client(socket(0));
    for (const bool shareable : {false, true}) try {
            (void)client.create_cache(uint64_t{1} << 44u, {.shareable = shareable});
            FAIL() << "a cache of 16 TiB";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kLimit);
            EXPECT_NE(std::string(error.what()).find("bytes of memory are free"), std::string::npos)
                << error.what();
        }
    EXPECT_NO_THROW((void)client.create_cache(1 << 20));
}

}  // namespace
}  // namespace heddle::memory
