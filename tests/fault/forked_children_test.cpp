// Ranks and servers that die while a child that they have forked goes on, with all descriptors of theirs.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <utility>

#include "heddle/memory.hpp"
#include "memory/mesh.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::memory {
namespace {

using namespace test;
using test::TemporaryFolder;

class Counts final : public Transport::Listener {
  public:
    std::atomic<int> deaths{0};

  private:
    void received(memory::Rank, std::span<const std::byte>) override {}
    void lost(memory::Rank) override { ++deaths; }
};

class ForkedChildren : public testing::Test {
  protected:
    ForkedChildren() { EXPECT_EQ(::pipe(ends_), 0); }
    ~ForkedChildren() override {
        if (victim_ > 0) kill_victim();
        ::close(ends_[1]);  // the child of the victim ends
        ::close(ends_[0]);
    }
    /// A process that calls `act`, forks a child that goes on until the end of this test, and waits.
    template <class Act>
    void start(Act act) {
        victim_ = ::fork();
        if (victim_ != 0) return;
        ::close(ends_[1]);
        const auto kept = act();
        char byte = 0;
        if (::fork() == 0) ::_exit(::read(ends_[0], &byte, 1) == 0 ? 0 : 1);
        while (true) ::pause();
    }
    void kill_victim() {
        ::kill(victim_, SIGKILL);
        EXPECT_GT(::waitpid(std::exchange(victim_, -1), nullptr, 0), 0);
    }

    int ends_[2] = {-1, -1};
    pid_t victim_ = -1;
    TemporaryFolder folder_;
};

TEST_F(ForkedChildren, OfARankDoNotHideItsDeath) {
    start([&] {
        auto mesh = std::make_unique<Mesh>(1, 2, folder_.path(), std::chrono::seconds(30));
        mesh->start(*new Counts);
        return mesh;
    });
    Counts counts;
    Mesh mesh(0, 2, folder_.path(), std::chrono::seconds(30));
    mesh.start(counts);
    ::usleep(50'000);  // the child is there most of the time
    EXPECT_EQ(counts.deaths, 0);
    kill_victim();
    EXPECT_TRUE(becomes_true([&] { return counts.deaths == 1; }));
    mesh.stop();
    EXPECT_EQ(counts.deaths, 1);
}

TEST_F(ForkedChildren, OfAServerDoNotHideItsDeath) {
    const std::string path = folder_.path() + "/memory";
    start([&] {
        auto* const server = new Server;
        return std::make_unique<IpcServer>(*server, path);
    });
    ASSERT_TRUE(becomes_true([&] { return ::access(path.c_str(), F_OK) == 0; }));
    Client client(path);
    const SegmentId segment = client.create_segment(10, {"shm", {}});
    const DataId data = client.allocate(10, segment);
    OperationFuture waits = client.execute(op::GetConst{{data, {0, 10}}, client.create_cache(10), Tag{1}});
    ::usleep(50'000);
    EXPECT_FALSE(waits.is_ready());
    kill_victim();
    EXPECT_THAT([&] { (void)waits.get(); }, testing::ThrowsMessage<Error>(testing::HasSubstr("is gone")));
}

}  // namespace
}  // namespace heddle::memory
