// Many threads, few CPUs: what callbacks tell must be what holds, whoever runs them. Run under TSan as well.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "cores/exchange.hpp"
#include "heddle/cores.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace heddle;

constexpr int kCpus = 8;

constexpr int kCalls = test::kSanitized ? 4'000 : 40'000;

/// A component that keeps its own books by what it is told, and several threads that call for it.
class Party {
  public:
    Party(Exchange& exchange, const CpuSet& owned, bool calls_back)
        : books_(owned), component_(exchange, "party", owned) {
        component_.on_enable_cpu([this, calls_back](int cpu) {
            const Inside inside(*this);
            if (books_.contains(cpu)) ++wrong_;
            books_.insert(cpu);
            if (calls_back && (++told_ % 3) == 0) (void)component_.lend_cpu(cpu);
        });
        component_.on_disable_cpu([this](int cpu) {
            const Inside inside(*this);
            if (!books_.contains(cpu)) ++wrong_;
            books_.erase(cpu);
        });
        component_.on_set_num_threads([this](int count) {
            const Inside inside(*this);
            if (count < 0 || count > kCpus) ++wrong_;
        });
    }

    void call(std::mt19937& random) {
        const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        switch (below(10)) {
            case 0:
                return (void)component_.lend();
            case 1:
                return (void)component_.lend_cpu(below(kCpus));
            case 2:
                return (void)component_.reclaim();
            case 3:
                return (void)component_.reclaim_cpu(below(kCpus));
            case 4:
                return (void)component_.acquire_cpu(below(kCpus));
            case 5:
                return (void)component_.acquire_cpus(below(3));
            case 6:
                return (void)component_.borrow();
            case 7:
                return (void)component_.borrow_cpu(below(kCpus));
            case 8:
                return (void)component_.set_max_parallelism(below(4) * below(3));
            default:
                return (void)component_.return_all();
        }
    }

    /// For a moment when nobody calls: the books are right.
    void expect_right() {
        EXPECT_EQ(wrong_, 0);
        EXPECT_EQ(books_.to_list(), component_.usable().to_list());
    }

  private:
    /// Notices two callbacks at a time; TSan notices books_ without order.
    struct Inside {
        explicit Inside(Party& p) : party(p) {
            if (party.inside_.exchange(true)) ++party.wrong_;
        }
        ~Inside() { party.inside_ = false; }
        Party& party;
    };

    CpuSet books_;
    int told_ = 0;
    std::atomic<bool> inside_{false};
    std::atomic<int> wrong_{0};
    Component component_;  // the last, and so the first to go: callbacks use the others
};

void run_threads(int count, const std::function<void(int, std::mt19937&)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
        threads.emplace_back([&body, i] {
            std::mt19937 random(static_cast<unsigned>(i + 1));
            body(i, random);
        });
    for (std::thread& thread : threads) thread.join();
}

std::string books_of(Exchange& exchange) {
    return exchange.ask([](const Ledger& ledger) { return ledger.check(); });
}

TEST(ExchangeStress, CallbacksTellWhatHolds) {
    Exchange exchange(Machine::synthetic("numa:2 core:4 pu:1"));
    // Nested callbacks alter what the outer call then finds; the books must be right all the same.
    std::vector<std::unique_ptr<Party>> parties;
    parties.push_back(std::make_unique<Party>(exchange, CpuSet{0, 1, 2}, false));
    parties.push_back(std::make_unique<Party>(exchange, CpuSet{3, 4}, true));
    parties.push_back(std::make_unique<Party>(exchange, CpuSet{}, true));
    run_threads(6, [&](int thread, std::mt19937& random) {
        for (int i = 0; i < kCalls; ++i) parties[static_cast<size_t>(thread % 3)]->call(random);
    });
    for (const auto& party : parties) party->expect_right();
    EXPECT_EQ(books_of(exchange), "");
}

TEST(ExchangeStress, ComponentsComeAndGo) {
    Exchange exchange(Machine::synthetic("numa:2 core:4 pu:1"));
    Party stays(exchange, {0, 1, 2, 3}, false);
    run_threads(4, [&](int thread, std::mt19937& random) {
        for (int i = 0; i < kCalls / 20; ++i) {
            if (thread == 0) {
                for (int j = 0; j < 10; ++j) stays.call(random);
                continue;
            }
            Party guest(exchange, CpuSet{3 + thread}, thread == 2);
            for (int j = 0; j < 10; ++j) guest.call(random);
        }
    });
    stays.expect_right();
    EXPECT_EQ(books_of(exchange), "");
    EXPECT_EQ(exchange.ask([](const Ledger& ledger) { return ledger.members().size(); }), 1U);
}

TEST(ExchangeStress, CallbacksAreReplacedWhileTheyRun) {
    Exchange exchange(Machine::synthetic("core:2 pu:1"));
    Component a(exchange, "a", {0});
    std::atomic<long> called{0};
    std::atomic<bool> done{false};
    EXPECT_EQ(a.on_disable_cpu([&called](int) { ++called; }), Outcome::kSuccess);
    std::thread replacer([&] {
        while (!done) {
            auto alive = std::make_shared<int>(1);
            EXPECT_EQ(a.on_disable_cpu([&called, alive](int) { called += *alive; }), Outcome::kSuccess);
        }
    });
    run_threads(2, [&](int, std::mt19937&) {
        for (int i = 0; i < kCalls; ++i) {
            EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess);
            (void)a.reclaim_cpu(0);
        }
    });
    done = true;
    replacer.join();
    EXPECT_GT(called, 0);
}

}  // namespace
