// All threads of a program run out of memory at once, from each allocation on, while records flow through a
// network: it comes to its end, or says what it failed of, and what has come out of it is right.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <string>
#include <thread>

#include "heddle/error.hpp"
#include "heddle/streams.hpp"
#include "support/scarce_memory.hpp"

namespace heddle::snet {
namespace {

using Number = Tag<"number">;
using Name = Field<"name", std::string>;

constexpr int kRecords = 40;

/// Long calls by several at once, in order; many records of one call; and short ones behind that.
Net chain() {
    const Net named = box<In<Number>, Out<Name, Number>>(
        "named",
        [](int number) {
            std::this_thread::yield();
            return std::tuple(std::string(40, static_cast<char>('a' + number % 26)), number);
        },
        {.calls = 2, .ordered = true});
    const Net many = box<In<Name, Number>, Out<Name, Number>>(
        "many", [](Emit<Out<Name, Number>>& emit, const std::string& name, int number) {
            for (int i = 0; i < 20; ++i) emit(name, 20 * number + i);
        });
    const Net again = box<In<Name, Number>, Out<Name, Number>>(
        "again", [](std::string name, int number) { return std::tuple(std::move(name), number); });
    return named >> many >> again >> filter("{<number>} -> {<number=number>}");
}

class StreamsWithoutMemory : public testing::TestWithParam<bool> {
  protected:
    /// What a call does for want of memory: nothing.
    template <class Call>
    static bool tries(Call call) {
        try {
            call();
            return true;
        } catch (const std::bad_alloc&) {
        } catch (const Error&) {
        }
        return false;
    }
};
INSTANTIATE_TEST_SUITE_P(DeadLetters, StreamsWithoutMemory, testing::Bool(),
                         [](const auto& which) { return which.param ? "go_on" : "stop_it"; });

TEST_P(StreamsWithoutMemory, ANetworkComesToItsEnd) {
    const Net net = chain();
    bool enough = false;
    for (long nth = 0; !enough; nth += 1 + nth / 20) {
        SCOPED_TRACE("after allocation " + std::to_string(nth));
        std::atomic<int> dead{0};
        NetworkOptions options;
        options.workers = 2;
        options.queue_bound = 4;
        if (GetParam()) options.dead_letter = [&](const Record&, const std::string&) { ++dead; };
        int pushed = 0, pulled = 0;
        bool failed = false;
        {
            Network network(net, std::move(options));
            // A worker that has no memory to begin with tries again: who pushes may have to wait for it.
            std::promise<void> all_pushed;
            std::thread pusher([&] {
                for (int i = 0; i < kRecords; ++i) {
                    const bool went = tries([&] {
                        Record record;
                        record.set<Number>(i);
                        network.push(std::move(record));
                    });
                    went ? (void)++pushed : (void)(failed = true);
                }
                all_pushed.set_value();
            });
            memory_of_all.limit(nth);
            (void)all_pushed.get_future().wait_for(std::chrono::milliseconds(20));
            enough = memory_of_all.lift();
            pusher.join();
            (void)tries([&] { network.close(); });
            while (true) {
                std::optional<Record> out;
                if (!tries([&] { out = network.pull(); })) {
                    failed = true;
                    continue;
                }
                if (!out) break;
                EXPECT_EQ(out->get<Name>()[0], 'a' + out->get<Number>() / 20 % 26);
                ++pulled;
            }
        }
        ASSERT_LT(nth, 1'000'000);
        if (failed || dead > 0) continue;
        EXPECT_EQ(pulled, 20 * pushed);
    }
}

}  // namespace
}  // namespace heddle::snet
