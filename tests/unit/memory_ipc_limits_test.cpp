// What clients in other processes may ask of a memory server, what it does at its own limits, and what
// becomes of what they had sent when they went.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "memory/ipc_wire.hpp"
#include "support/memory_stranger.hpp"
#include "support/memory_text.hpp"
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

}  // namespace
}  // namespace heddle::test
