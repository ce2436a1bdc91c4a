// The socket of a memory server whose system calls fail.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "memory/ipc_service.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::memory {
namespace {

using namespace test;
using test::TemporaryFolder;
using namespace std::chrono_literals;

/// accept() fails while there is an error.
class RefusingOs final : public Os {
  public:
    int accept(int fd) override {
        ++accepts;
        return error != 0 ? -error : Os::accept(fd);
    }
    std::atomic<int> error{0}, accepts{0};
};

class SlowToListen final : public Os {
  public:
    int bind_listen(int fd, const std::string& path, int backlog) override {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return -errno;
        std::this_thread::sleep_for(100ms);
        return ::listen(fd, backlog) == 0 ? 0 : -errno;
    }
};

TEST(MemoryServiceTest, WhoSeesItsSocketIsHeard) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/memory";
    std::thread comes([&] {
        EXPECT_TRUE(becomes_true([&] { return ::access(path.c_str(), F_OK) == 0; }));
        EXPECT_NO_THROW(Client client(path));
    });
    SlowToListen os;
    ServerState server(ServerOptions{});
    const IpcService service(server, path, os);
    comes.join();
}

TEST(MemoryServiceTest, WhereNobodyCanBeAcceptedItSleepsAndServesThoseItHas) {
    for (const int error : {ENOMEM, ENOBUFS}) {
        TemporaryFolder folder;
        RefusingOs os;
        ServerState server(ServerOptions{});
        const IpcService service(server, folder.path() + "/memory", os);
        Client old(service.path());
        os.error = error;
        std::atomic<bool> served{false};
        std::thread waits([&] {
            const Client next(service.path());
            served = true;
        });
        ASSERT_TRUE(becomes_true([&] { return os.accepts > 1; }));
        const int before = os.accepts;
        std::this_thread::sleep_for(200ms);
        EXPECT_LT(os.accepts - before, 80) << "it does not sleep";
        EXPECT_TRUE(old.inventory().segments.empty());
        EXPECT_FALSE(served);
        os.error = 0;
        EXPECT_TRUE(becomes_true([&] { return served.load(); }));
        waits.join();
    }
}

}  // namespace
}  // namespace heddle::memory
