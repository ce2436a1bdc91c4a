// Three threads call one Exchange at once, each as a component of its own. For each short history there must
// be an order of its calls, one after the other, in which the obvious model answers what they were answered;
// a call that ended before another began comes before it (M. P. Herlihy, J. M. Wing, Linearizability, 1990;
// the search is that of J. M. Wing, C. Gong, Testing and Verifying Concurrent Objects, 1993).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cores/exchange.hpp"
#include "model/ledger_model.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using test::LedgerModel;

constexpr int kThreads = 3, kCallsEach = 6, kCpus = 2;
constexpr int kHistories = test::kSanitized ? 1'000 : 10'000;

enum class Verb { kLend, kReclaim, kAcquire, kBorrow, kReturn, kBorrowAny, kLendAll };
constexpr std::array kNames{"lend_cpu",   "reclaim_cpu", "acquire_cpu", "borrow_cpu",
                            "return_cpu", "borrow",      "lend"};

struct Made {
    Verb verb;
    int cpu;
    uint64_t began = 0, ended = 0;
    Outcome outcome{};
};
using Calls = std::vector<Made>;  // of one thread, in order

Outcome make(Exchange& exchange, MemberId me, const Made& made) {
    const auto call = [&](auto member_function, auto... arguments) {
        return exchange.call([&](Ledger& ledger, Actions& actions) {
            return (ledger.*member_function)(me, arguments..., actions);
        });
    };
    switch (made.verb) {
        case Verb::kLend:
            return call(&Ledger::lend_cpu, made.cpu);
        case Verb::kReclaim:
            return call(&Ledger::reclaim_cpu, made.cpu);
        case Verb::kAcquire:
            return call(&Ledger::acquire_cpu, made.cpu);
        case Verb::kBorrow:
            return exchange.borrow_cpu(me, made.cpu);
        case Verb::kReturn:
            return call(&Ledger::return_cpu, made.cpu);
        case Verb::kBorrowAny:
            return exchange.borrow(me);
        case Verb::kLendAll:
            return call(&Ledger::lend);
    }
    return Outcome::kPermission;
}

Outcome ask(LedgerModel& model, int me, const Made& made) {
    switch (made.verb) {
        case Verb::kLend:
            return model.lend(me, {made.cpu});
        case Verb::kReclaim:
            return model.reclaim(me, {made.cpu});
        case Verb::kAcquire:
            return model.acquire_cpu(me, made.cpu);
        case Verb::kBorrow:
            return model.borrow_cpu(me, made.cpu);
        case Verb::kReturn:
            return model.return_cpu(me, made.cpu);
        case Verb::kBorrowAny:
            return model.borrow_n(me, LedgerModel::kMany, model.all());
        case Verb::kLendAll:
            return model.lend_all(me);
    }
    return Outcome::kPermission;
}

class Search {
  public:
    Search(const std::array<Calls, kThreads>& calls, std::vector<LedgerModel::Cpu> end)
        : calls_(calls), end_(std::move(end)) {}
    bool finds_an_order(const LedgerModel& from) {
        uint64_t first_end = UINT64_MAX;
        for (size_t i = 0; i < kThreads; ++i)
            if (next_[i] < calls_[i].size()) first_end = std::min(first_end, calls_[i][next_[i]].ended);
        if (first_end == UINT64_MAX) return ends_as_it_did(from);
        for (size_t i = 0; i < kThreads; ++i) {
            if (next_[i] == calls_[i].size() || calls_[i][next_[i]].began > first_end) continue;
            LedgerModel model = from;
            const Made& made = calls_[i][next_[i]];
            if (ask(model, static_cast<int>(i) + 1, made) != made.outcome) continue;
            ++next_[i];
            if (finds_an_order(model)) return true;
            --next_[i];
        }
        return false;
    }

  private:
    bool ends_as_it_did(const LedgerModel& model) const {
        return std::ranges::all_of(model.cpus(), [&](const auto& entry) {
            return entry.second == end_[static_cast<size_t>(entry.first)];
        });
    }
    const std::array<Calls, kThreads>& calls_;
    const std::vector<LedgerModel::Cpu> end_;
    std::array<size_t, kThreads> next_{};
};

std::string to_text(const std::array<Calls, kThreads>& calls) {
    std::string text;
    for (size_t i = 0; i < kThreads; ++i)
        for (const Made& made : calls[i])
            text += fmt::format("\n  {}: {}..{} {} {} -> {}", i + 1, made.began, made.ended,
                                kNames[static_cast<size_t>(made.verb)], made.cpu, to_string(made.outcome));
    return text;
}

/// What the threads of one history share. Members are named 1, 2 and 3; the first two own a CPU each.
struct Round {
    explicit Round(const Machine& machine) : exchange(machine, {.members = kThreads}) {
        for (int i = 0; i < kThreads; ++i)
            ids.push_back(exchange.attach(fmt::format("{}", i + 1), i < kCpus ? CpuSet{i} : CpuSet()));
    }
    ~Round() {
        for (const MemberId id : ids) (void)exchange.detach(id);
    }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;
    [[nodiscard]] std::vector<LedgerModel::Cpu> end() const {
        const auto name = [&](MemberId id) {
            return static_cast<int>(std::ranges::find(ids, id) - ids.begin() + 1) % (kThreads + 1);
        };
        return exchange.ask([&](const Ledger& ledger) {
            std::vector<LedgerModel::Cpu> cpus;
            for (int cpu = 0; cpu < kCpus; ++cpu) {
                LedgerModel::Cpu one;
                one.owner = name(ledger.owner(cpu));
                one.guest = name(ledger.guest(cpu));
                one.state = static_cast<LedgerModel::State>(ledger.state(cpu));
                for (const MemberId waits : ledger.requests(cpu)) one.queue.push_back(name(waits));
                cpus.push_back(one);
            }
            return cpus;
        });
    }
    Exchange exchange;
    std::vector<MemberId> ids;
    std::array<Calls, kThreads> calls;
    std::atomic<uint64_t> clock{0};
    std::atomic<size_t> ready{0};
};

/// Begins together with the others. Now and then they take turns between what a call says of itself and what
/// it does: so calls overlap on one CPU, too.
void call_all(Round& round, size_t i, std::mt19937& random) {
    round.ready.fetch_add(1);
    for (Patience patience; round.ready.load() < kThreads;) patience.wait();
    const auto pause = [&] {
        const auto drawn = random() % 8;
        if (drawn == 0) std::this_thread::yield();
        for (auto n = drawn; n > 0; --n) spin_pause();
    };
    for (Made& made : round.calls[i]) {
        pause();
        made.began = round.clock.fetch_add(1);
        pause();
        made.outcome = make(round.exchange, round.ids[i], made);
        pause();
        made.ended = round.clock.fetch_add(1);
    }
}

TEST(ExchangeHistory, CallsThatOverlapHaveAnOrder) {
    const Machine machine = Machine::synthetic(fmt::format("core:{} pu:1", kCpus));
    std::mt19937 random(1);
    std::unique_ptr<Round> round;
    std::barrier meeting(kThreads + 1);
    bool over = false;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            std::mt19937 pauses(static_cast<uint32_t>(i));
            for (meeting.arrive_and_wait(); !over; meeting.arrive_and_wait()) {
                call_all(*round, i, pauses);
                meeting.arrive_and_wait();
            }
        });
    int overlapped = 0;
    for (int history = 0; history < kHistories && !HasFailure(); ++history) {
        round = std::make_unique<Round>(machine);
        for (Calls& calls : round->calls)
            for (int n = 0; n < kCallsEach; ++n)
                calls.push_back(
                    {static_cast<Verb>(random() % kNames.size()), static_cast<int>(random() % kCpus)});
        meeting.arrive_and_wait();
        meeting.arrive_and_wait();

        LedgerModel model(machine, 8, 1024, false);
        for (int i = 0; i < kThreads; ++i)
            (void)model.attach(i + 1, i < kCpus ? LedgerModel::Cpus{i} : LedgerModel::Cpus{});
        EXPECT_TRUE(Search(round->calls, round->end()).finds_an_order(model))
            << "history " << history << to_text(round->calls);
        bool overlaps = false;
        for (const auto& [one, other] : {std::pair(0, 1), std::pair(1, 2), std::pair(0, 2)})
            for (const Made& a : round->calls[static_cast<size_t>(one)])
                for (const Made& b : round->calls[static_cast<size_t>(other)])
                    overlaps |= a.began < b.ended && b.began < a.ended;
        overlapped += overlaps ? 1 : 0;
    }
    over = true;
    meeting.arrive_and_wait();
    EXPECT_GT(overlapped, kHistories / 100) << "calls that do not overlap say nothing";
}

}  // namespace
}  // namespace heddle
