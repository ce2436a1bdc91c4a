// Whose a process is: a child that was forked, another user's, another program.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string_view>

#include "heddle/memory.hpp"
#include "memory/ipc_connection.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

class MemoryIpcProcessTest : public testing::Test {
  protected:
    TemporaryFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    Server server_;
    IpcServer socket_{server_, path_};
    Client here_{server_};
    DataId data_ = here_.allocate(5, here_.create_segment(5));
};

TEST_F(MemoryIpcProcessTest, InAForkedChildAClientIsNotThere) {
    Client client(path_);
    const CacheId cache = client.create_cache(10);
    const GlobalRange all{data_, {0, 5}};
    client.release(client.get_const(all, cache));
    const pid_t child = ::fork();
    if (child == 0) {
        const auto is_refused = [&](const auto& act) {
            try {
                act();
            } catch (const Error& error) {
                return std::string_view(error.what()).find("make a new one here") != std::string::npos;
            }
            return false;
        };
        ::alarm(30);
        const bool refused = is_refused([&] { (void)client.get_const(all, cache); }) && is_refused([&] {
                                 (void)client.get_const({data_, {1, 2}}, cache);
                             }) &&
                             is_refused([&] {
                                 (void)client.execute(op::GetConst{all, cache}).get();
                             }) &&
                             is_refused([&] { (void)client.create_cache(10); });
        client.~Client();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // What it tried holds nothing, and the parent's is as it was.
    client.release(client.get_const(all, cache));
    client.delete_cache(cache);
    (void)client.create_cache(10);
}

TEST_F(MemoryIpcProcessTest, TheSocketOfAnotherProgramIsLeftToIt) {
    const std::string other = folder_.path() + "/other";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, other.c_str(), other.size() + 1);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const Descriptor used(::socket(AF_UNIX, type, 0));
        ASSERT_EQ(::bind(used.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(type == SOCK_STREAM ? ::listen(used.get(), 1) : 0, 0);
        EXPECT_THAT([&] { IpcServer(server_, other); },
                    testing::ThrowsMessage<Error>(testing::HasSubstr("in use by another program")));
        EXPECT_TRUE(std::filesystem::remove(other)) << "it is not ours";
    }
}

TEST_F(MemoryIpcProcessTest, ASocketThatOneMayNotUseIsNamedSo) {
    if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can become another user";
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::none);
    ASSERT_EQ(::seteuid(65534), 0);
    ErrorCode code{};
    try {
        (void)IpcConnection(path_);
    } catch (const Error& error) {
        code = error.code();
    }
    ASSERT_EQ(::seteuid(0), 0);
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
    EXPECT_EQ(code, ErrorCode::kPermission);
}

}  // namespace
}  // namespace heddle::test
