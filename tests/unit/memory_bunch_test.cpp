// What the functions of bunches may do, which a thread of the server calls, or of the connection with it.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "heddle/memory.hpp"
#include "support/memory_text.hpp"
#include "support/on_ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using namespace memory;  // NOLINT: each name here is of it

class MemoryBunchTest : public testing::TestWithParam<const char*> {
  protected:
    static bool by_socket() { return std::string(GetParam()) == "by_socket"; }
    std::unique_ptr<Client> new_client() {
        return by_socket() ? std::make_unique<Client>(socket_.path()) : std::make_unique<Client>(server_);
    }
    /// By a thread of the server's or the connection's: its last operation waits until another one is put.
    void call_later(std::function<void()> function) {
        const DataId data = client_->allocate(8, segment_);
        const MutableLocalRange own = client_->allocate_local(8, cache_);
        client_->execute_bunch(
            {op::GetConst{{data, {0, 8}}, cache_, Tag{1}}},
            [function = std::move(function)](const auto&) { function(); },
            [](const BunchError& error) { FAIL() << error.what(); });
        if (by_socket()) return client_->put_and_release_and_set_tag(own, {data, {0, 8}}, Tag{1});
        // The mover of the server moves what nobody waits for.
        (void)client_->execute(op::Put{own, {data, {0, 8}}, Tag{1}, true});
    }

    TemporaryFolder meeting_;
    Server server_;
    IpcServer socket_{server_, meeting_.path() + "/memory"};
    std::unique_ptr<Client> client_ = new_client();
    SegmentId segment_ = client_->create_segment(1000, {"shm", {}});
    CacheId cache_ = client_->create_cache(100, {.shareable = true});
};
INSTANTIATE_TEST_SUITE_P(Ways, MemoryBunchTest, testing::Values("in_process", "by_socket"),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(MemoryBunchTest, TheirFunctionsAllocateAndFree) {
    std::promise<std::string> told;
    call_later([&] {
        const DataId data = client_->allocate(10, segment_);
        client_->reserve_versions(data, 3);
        client_->free(data);
        told.set_value(std::to_string(client_->free_bytes(segment_).at(0)));
    });
    EXPECT_EQ(told.get_future().get(), "992");
}

TEST_P(MemoryBunchTest, TheirFunctionsPutSoThatTheLastOneStays) {
    const DataId data = client_->allocate(10, segment_);
    std::promise<OperationFuture> told;
    call_later([&] {
        const MutableLocalRange own = client_->allocate_local(10, cache_);
        std::memset(own.pointer(), 'x', 10);
        told.set_value(client_->execute(op::Put{own, {data, {0, 10}}, Tag{1}, true, 0, 1}));
    });
    (void)told.get_future().get().get();
    EXPECT_EQ(get_text(*client_, cache_, {data, {0, 10}}), "xxxxxxxxxx");
}

TEST_P(MemoryBunchTest, TheirFunctionsWaitForOperations) {
    const DataId data = client_->allocate(10, segment_);
    std::promise<std::string> told;
    call_later([&] {
        const MutableLocalRange own = client_->allocate_local(10, cache_);
        std::memset(own.pointer(), 'y', 10);
        OperationFuture put = client_->execute(op::Put{own, {data, {0, 10}}, {}, true});
        OperationFuture got = client_->execute(op::GetConst{{data, {0, 10}}, cache_});
        (void)put.get();
        (void)got.get();
        told.set_value(get_text(*client_, cache_, {data, {0, 10}}));
    });
    EXPECT_EQ(told.get_future().get(), "yyyyyyyyyy");
}

/// What was begun before goes on meanwhile, and what comes of other clients.
TEST_P(MemoryBunchTest, TheServerGoesOnWhileTheirFunctionsWait) {
    const std::unique_ptr<Client> other = new_client();
    const CacheId others = other->create_cache(100, {.shareable = true});
    const DataId data = client_->allocate(10, segment_);
    std::promise<void> waits, told;
    call_later([&] {
        waits.set_value();
        client_->release(client_->get_const({data, {0, 10}}, cache_, Tag{5}));
        told.set_value();
    });
    waits.get_future().get();
    const DataId more = other->allocate(10, segment_);
    const MutableLocalRange own = other->allocate_local(10, others);
    (void)other->execute(op::Put{own, {more, {0, 10}}}).get();
    other->put_and_release_and_set_tag(own, {data, {0, 10}}, Tag{5});
    told.get_future().get();
}

TEST_P(MemoryBunchTest, TheirClientGoesInTheirFunction) {
    std::unique_ptr<Client> leaves = new_client();
    const CacheId cache = leaves->create_cache(100);
    const DataId data = leaves->allocate(8, segment_);
    std::atomic<int> left{0};
    std::atomic<int> given_up{0};
    std::promise<void> told;
    leaves->execute_bunch(
        {op::GetConst{{data, {0, 8}}, cache, Tag{7}}}, [](const auto&) { FAIL(); },
        [&](const BunchError&) { ++given_up; });
    leaves->execute_bunch(
        {op::GetConst{{data, {0, 8}}, cache, Tag{1}}},
        [&](const auto&) {
            leaves.reset();
            left = given_up.load() + 1;
            told.set_value();
        },
        [](const BunchError& error) { FAIL() << error.what(); });
    const MutableLocalRange own = client_->allocate_local(8, cache_);
    (void)client_->execute(op::Put{own, {data, {0, 8}}, Tag{1}, true}).get();
    told.get_future().get();
    EXPECT_EQ(left, 2);  // what the client had begun has ended before it is gone
    EXPECT_NO_THROW(client_->free(data));
}

/// What lies on another rank: the answer has to be received meanwhile.
TEST(MemoryBunchRanksTest, TheirFunctionsWaitForOtherRanks) {
    constexpr memory::Rank kRanks = 2;
    constexpr uint64_t kSize = 100;
    std::atomic<int> wrong{0};
    on_ranks(kRanks, [&](Server& server, Client& client, Collective& collective) {
        const SegmentId segment = collective.create_segment(10 * kSize, {"shm", {}});
        const CacheId cache = client.create_cache(10 * kSize);
        const DataId data = collective.allocate(kSize, segment);
        for (int round = 0; round < 50; ++round) {
            const Tag tag{static_cast<uint64_t>(round + 1)};
            std::promise<void> told;
            client.execute_bunch(
                {op::GetConst{{data, {server.rank() * kSize / kRanks, 1}}, cache, tag}},
                [&](const std::vector<OperationResult>& results) {
                    client.release(std::get<ConstLocalRange>(results.at(0)));
                    const ConstLocalRange all = client.get_const({data, {0, kSize}}, cache, tag);
                    for (uint64_t i = 0; i < kSize; ++i)
                        wrong += all.pointer()[i] != static_cast<std::byte>(round) ? 1 : 0;
                    client.release(all);
                    told.set_value();
                },
                [&](const BunchError&) {
                    ++wrong;
                    told.set_value();
                });
            if (static_cast<memory::Rank>(round) % kRanks == server.rank()) {
                const MutableLocalRange own = client.allocate_local(kSize, cache);
                std::memset(own.pointer(), round, kSize);
                client.put_and_release_and_set_tag(own, {data, {0, kSize}}, tag);
            }
            told.get_future().get();
            collective.barrier();
        }
    });
    EXPECT_EQ(wrong, 0);
}

/// Who waits beside a bunch goes on before the bunch's function, which waits for him.
TEST_P(MemoryBunchTest, TheirFunctionsDoNotKeepOthersWaiting) {
    const DataId data = client_->allocate(20, segment_);
    const CacheId own_cache = client_->create_cache(100, {.shareable = true});
    for (int round = 0; round < 20; ++round) {
        const Tag first{static_cast<uint64_t>(2 * round + 1)}, second{static_cast<uint64_t>(2 * round + 2)};
        std::promise<void> told;
        client_->execute_bunch(
            {op::GetConst{{data, {0, 10}}, cache_, first}},
            [&](const std::vector<OperationResult>& results) {
                client_->release(std::get<ConstLocalRange>(results.at(0)));
                client_->release(client_->get_const({data, {10, 10}}, cache_, second));
                told.set_value();
            },
            [](const BunchError& error) { FAIL() << error.what(); });
        std::thread other([&] {
            client_->release(client_->get_const({data, {0, 10}}, cache_, first));
            const MutableLocalRange own = client_->allocate_local(10, own_cache);
            client_->put_and_release_and_set_tag(own, {data, {10, 10}}, second);
        });
        const MutableLocalRange own = client_->allocate_local(10, own_cache);
        (void)client_->execute(op::Put{own, {data, {0, 10}}, first, true}).get();
        told.get_future().get();
        other.join();
    }
}

}  // namespace
}  // namespace heddle::test
