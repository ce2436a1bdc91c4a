// The arbiter without memory: from every allocation of a busy scene on there is none but the reserve. The
// scene goes on, every decision is whole, and once there is memory again the arbiter takes in clients as
// before.
//
// This program has an operator new of its own (support/scarce_memory.hpp), which fails on demand while the
// server turns and never else.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>

#include "arbiter/server.hpp"
#include "support/faulty_os.hpp"
#include "support/honest_client.hpp"
#include "support/scarce_memory.hpp"
#include "support/temporary_folder.hpp"

thread_local Memory memory;

void* operator new(size_t bytes) {
    while (true) {
        if (memory.gives(bytes) && memory_of_all.gives())
            if (void* block = std::malloc(std::max(bytes, size_t{1})); block != nullptr) {
                memory.took(block);
                return block;
            }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}
/// This and those of arrays as the standard library's, of which a sanitizer has some that do not call ours.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    try {
        return operator new(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* operator new[](size_t bytes) {
    return operator new(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
    return operator new(bytes, std::nothrow);
}
void operator delete(void* block) noexcept {
    memory.gave_back(block);
    std::free(block);
}
void operator delete(void* block, size_t) noexcept {
    operator delete(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
    operator delete(block);
}
void operator delete[](void* block) noexcept {
    operator delete(block);
}
void operator delete[](void* block, size_t) noexcept {
    operator delete(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
    operator delete(block);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
    const auto multiple = static_cast<size_t>(alignment);
    if (!memory.gives(bytes) || !memory_of_all.gives()) throw std::bad_alloc();
    void* block = std::aligned_alloc(multiple, (bytes + multiple - 1) / multiple * multiple);
    if (block == nullptr) throw std::bad_alloc();
    memory.took(block);
    return block;
}
void operator delete(void* block, std::align_val_t) noexcept {
    operator delete(block);
}
void operator delete(void* block, size_t, std::align_val_t) noexcept {
    operator delete(block);
}

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

class WithoutMemory : public testing::Test {
  protected:
    WithoutMemory() { os_.wait_at_most(0ns); }

    void start(MemoryReserve* reserve) {
        server_.reset();
        ServerConfig config;
        config.path = folder_.path() + "/arbiter.sock";
        config.state_path = config.path + ".state";
        config.reserve = reserve;
        std::filesystem::remove(config.path);
        server_.emplace(
            config, Arbiter(Machine::synthetic("core:8 pu:1"), make_policy("proportional"), {}, clock_.now()),
            os_, clock_);
    }
    void turn(int times) {
        for (int i = 0; i < times; ++i) {
            memory.counts = true;
            const bool goes_on = server_->turn();
            memory.counts = false;
            ASSERT_TRUE(goes_on);
            ASSERT_EQ(server_->arbiter().check(), "");
        }
    }
    WireClient call(const heddle_hello& hello) {
        WireClient client(folder_.path() + "/arbiter.sock");
        EXPECT_TRUE(client.connected());
        client.send(hello);
        turn(2);
        return client;
    }
    /// Everything that the server does for clients, once.
    void a_busy_scene() {
        std::vector<WireClient> clients;
        for (const char* name : {"first", "second", "third"}) {
            clients.push_back(call(handover_hello(name, 8)));
            clients.back().send(message_of<heddle_header>(HEDDLE_MAPPED));
        }
        WireClient watcher = call(hello_of("watcher", 0, HEDDLE_KIND_OBSERVER));
        watcher.send(message_of<heddle_header>(HEDDLE_WATCH));
        turn(1);
        auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
        limits.weight = 3;
        for (WireClient& client : clients) {
            client.send(message_of<heddle_header>(HEDDLE_DEMAND));
            client.send(message_of<heddle_header>(HEDDLE_STATUS));
            client.send_left(2);
            client.send(limits);
            client.send(message_of<heddle_header>(HEDDLE_RELEASED));
            turn(1);
        }
        clients.erase(clients.begin());
        turn(2);
    }
    /// In the words of WELCOME, within some pauses of the server.
    bool is_taken_in() {
        WireClient client = call(hello_of("next", 1));
        WireMessage message;
        const auto end = clock_.now() + 2s;
        while (clock_.now() < end) {
            turn(1);
            while (client.receive(message, 0) == WireClient::Got::kMessage)
                if (message.header.type == HEDDLE_WELCOME) return true;
        }
        return false;
    }

    SteadyClock clock_;
    FaultyOs os_;
    TemporaryFolder folder_;
    std::optional<Server> server_;
};

TEST_F(WithoutMemory, EveryTurnComesToItsEnd) {
    MemoryReserve reserve(MemoryReserve::kBytes);
    memory = {};
    start(&reserve);
    a_busy_scene();
    const long allocations = memory.allocations;
    ASSERT_GT(allocations, 100);
    for (long nth = 0; nth < allocations; nth += 1 + nth / 150) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        memory = {};
        start(&reserve);
        memory.exhausted_after = nth;
        ASSERT_NO_THROW(a_busy_scene());
        memory = {};
        ASSERT_TRUE(is_taken_in());
        ASSERT_FALSE(reserve.spent());
    }
}

TEST_F(WithoutMemory, NobodyNewIsTakenInAndThoseThatThereAreAreServed) {
    MemoryReserve reserve(MemoryReserve::kBytes);
    memory = {};
    start(&reserve);
    WireClient old = call(hello_of("old", 8));
    WireMessage message;
    ASSERT_TRUE(old.receive_type(message, HEDDLE_WELCOME, 1000));
    memory.exhausted = true;
    memory.left = -(1L << 20);  // others took some of what the reserve gave back
    old.send(message_of<heddle_header>(HEDDLE_DEMAND));
    WireClient next = call(hello_of("next", 8));
    turn(5);
    ASSERT_TRUE(reserve.spent());
    const bool answered = next.receive(message, 0) == WireClient::Got::kMessage;
    EXPECT_TRUE(!answered || message.header.type != HEDDLE_WELCOME);
    EXPECT_EQ(server_->arbiter().clients(clock_.now()).size(), 1U);
    old.send(message_of<heddle_header>(HEDDLE_STATUS));
    turn(2);
    ASSERT_TRUE(old.receive_type(message, HEDDLE_REFUSED, 1000));
    EXPECT_EQ(message.refused.code, uint32_t{HEDDLE_REFUSED_FULL}) << message.refused.text;
    memory = {};
    EXPECT_TRUE(is_taken_in());
}

TEST_F(WithoutMemory, WithoutAReserveItEnds) {
    memory = {};
    start(nullptr);
    WireClient client(folder_.path() + "/arbiter.sock");
    client.send(hello_of("client", 1));
    memory.exhausted = memory.counts = true;
    EXPECT_THROW((void)(server_->turn() && server_->turn()), std::bad_alloc);
    memory = {};
}

TEST_F(WithoutMemory, TheReserveServesTheLargestMachineTwice) {
    memory = {};
    memory.counts = true;
    Arbiter arbiter(Machine::synthetic("numa:8 core:128 pu:1"), make_policy("proportional"), {},
                    clock_.now());
    std::vector<ClientId> clients;
    for (uint32_t i = 0; i < 256; ++i) {
        memory.used = memory.most_used = 0;
        ClientId client;
        Registration registration;
        registration.name = "a client with a name of many characters";
        registration.user = i;
        registration.demand = 1024;
        ASSERT_EQ(arbiter.join(registration, clock_.now(), client), Refusal::kNone);
        arbiter.hands_over(client, clock_.now());
        clients.push_back(client);
        EXPECT_LT(memory.most_used, static_cast<long>(MemoryReserve::kBytes) / 2);
        (void)arbiter.take_actions();
    }
    memory.used = memory.most_used = 0;
    arbiter.set_cpus(CpuSet::range(0, 512), clock_.now());
    EXPECT_LT(memory.most_used, static_cast<long>(MemoryReserve::kBytes) / 2);
    memory = {};
}

}  // namespace
}  // namespace heddle::test
