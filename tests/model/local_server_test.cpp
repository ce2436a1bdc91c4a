// Random histories of the local server against a slow, obvious model: the counters of seed 002 section 3 kept
// as a list of workers, and placement by trying every set of CPUs.
#include "cores/local_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <sstream>

#include "cores/compact_set.hpp"

using namespace heddle;

namespace {

struct ModelWorker {
    WorkerState state = WorkerState::kSearching;
    int cpu = -1;
    int from = -1;
    Time slept{}, looked{};
};

/// Plays the system around a LocalServer and checks each decision.
class World {
  public:
    World(unsigned seed, const Machine& machine) : random_(seed), machine_(machine) {
        limits_.idle_delay = std::chrono::milliseconds(pick(3) * 5);
        limits_.min = pick(4) == 0 ? 1 + pick(2) : 0;
        limits_.max = pick(3) == 0 ? std::max(limits_.min, 1 + pick(6)) : 0;
        if (cpus() > 1 && pick(4) == 0) limits_.reserved = {pick(cpus())};
        limits_.give_back_unused = pick(3) == 0;
        limits_.first_look = std::chrono::microseconds(pick(2) * 700);
        most_ = (machine.cpus() - limits_.reserved).count();
        if (limits_.max != 0) most_ = std::min(most_, limits_.max);
        server_.emplace(machine, limits_);
        workers_.resize(static_cast<size_t>(server_->capacity()));
    }

    void step() {
        now_ += std::chrono::milliseconds(pick(3));
        const auto choice = pick(16);
        if (choice == 0) return usable(random_cpus());
        if (choice == 1) return usable(server_->usable() | random_cpus());
        if (choice < 5) return arrived();
        if (choice == 5) {
            awaited_ = pick(2) == 0 ? random_cpus() : CpuSet{};
            log_ << "tick, awaited " << awaited_.to_list() << "\n";
            const int leaving = count(WorkerState::kLeaving);
            const auto due = std::ranges::count_if(workers_, [&](const auto& w) { return is_to_end(w); });
            const auto ends = std::min<long>(due, std::max(0, active() - limits_.min));
            server_->tick(awaited_, now_);
            check();
            EXPECT_EQ(count(WorkerState::kLeaving) - leaving, ends);
            for (ModelWorker& w : workers_) w.looked = now_;
            awaited_ = {};
            return;
        }
        worker_event(pick(static_cast<int>(workers_.size())));
    }

    [[nodiscard]] std::string log() const { return log_.str(); }

  private:
    [[nodiscard]] int cpus() const { return machine_.cpus().count(); }
    int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
    CpuSet random_cpus() {
        CpuSet set;
        const int density = pick(4);
        for (const int cpu : machine_.cpus())
            if (pick(4) <= density) set.insert(cpu);
        return set;
    }
    [[nodiscard]] int count(WorkerState state) const {
        return static_cast<int>(
            std::ranges::count_if(workers_, [&](const auto& w) { return w.cpu >= 0 && w.state == state; }));
    }
    [[nodiscard]] int active() const {
        return count(WorkerState::kSearching) + count(WorkerState::kBusy) + count(WorkerState::kIdle);
    }
    [[nodiscard]] int demand() const {
        return std::clamp(count(WorkerState::kBusy) + (input_ ? 1 : 0), std::min(limits_.min, most_), most_);
    }
    /// Its idle delay is over, or others wait for its CPU and one of its looks was due since the last tick.
    [[nodiscard]] bool is_to_end(const ModelWorker& w) const {
        if (w.cpu < 0 || w.state != WorkerState::kIdle) return false;
        if (w.slept + limits_.idle_delay <= now_) return true;
        if (limits_.first_look == Nanoseconds(0) || !awaited_.contains(w.cpu)) return false;
        for (Nanoseconds look = limits_.first_look; look < limits_.idle_delay; look *= 2)
            if (w.slept + look > w.looked && w.slept + look <= now_) return true;
        return false;
    }
    [[nodiscard]] CpuSet held(bool leaving_too) const {
        CpuSet set;
        for (const ModelWorker& w : workers_) {
            if (w.cpu < 0 || (!leaving_too && w.state == WorkerState::kLeaving)) continue;
            set.insert(w.cpu);
            if (leaving_too && w.from >= 0) set.insert(w.from);
        }
        return set;
    }

    void usable(const CpuSet& set) {
        log_ << "usable " << set.to_list() << "\n";
        owed_ |= granted_ - set;
        owed_ -= set;
        granted_ = set;
        server_->cpus_changed(set, now_);
        check();
    }
    void arrived() {
        log_ << "arrived\n";
        input_ = true;
        server_->work_arrived(now_);
        check();
    }

    void worker_event(int index) {
        ModelWorker& w = workers_[static_cast<size_t>(index)];
        const WorkerId id{static_cast<uint32_t>(index)};
        if (w.cpu < 0) return;
        const int choice = pick(3);
        if (w.state == WorkerState::kLeaving) {
            const bool left_work = choice == 0;
            log_ << "ended " << index << (left_work ? " with work\n" : "\n");
            w = {};
            if (left_work)
                input_ = true;
            else if (count(WorkerState::kSearching) == 0 && count(WorkerState::kLeaving) == 0)
                input_ = false;
            server_->ended(id, left_work, now_);
        } else if (w.state == WorkerState::kIdle) {
            return;
        } else if (w.from >= 0 && choice == 0) {
            log_ << "moved " << index << "\n";
            w.from = -1;
            server_->moved(id, now_);
        } else if (w.state == WorkerState::kSearching && choice == 1) {
            log_ << "found " << index << "\n";
            w.state = WorkerState::kBusy;
            input_ = true;
            const int before = server_->demand();
            server_->found_work(id, now_);
            // Below the minimum, demand does not show.
            EXPECT_TRUE(limits_.min > 0 || server_->demand() == std::min(before + 1, most_)) << "up by one";
        } else {
            log_ << "out " << index << "\n";
            w.state = WorkerState::kIdle;
            w.slept = w.looked = now_;
            w.from = -1;
            if (count(WorkerState::kSearching) == 0) input_ = false;
            server_->out_of_work(id, now_);
        }
        check();
    }

    /// Follows the actions of the last event and compares what it led to.
    void check() {
        for (const WorkerAction& action : server_->take_actions()) follow(action);
        EXPECT_EQ(server_->workers(), active());
        EXPECT_EQ(server_->busy(), count(WorkerState::kBusy));
        EXPECT_EQ(server_->demand(), demand());
        EXPECT_EQ(told_demand_, demand());
        EXPECT_EQ(server_->occupied(), held(true));
        EXPECT_EQ(server_->wants_news(), !input_);
        EXPECT_LE(active(), most_);
        const CpuSet usable = (granted_ & machine_.cpus()) - limits_.reserved;
        EXPECT_TRUE(usable.contains(held(false))) << "a worker stays on a CPU that is gone";
        EXPECT_FALSE(owed_.intersects(granted_));
        EXPECT_TRUE(held(true).contains(owed_)) << "a free CPU was not returned";
        const CpuSet free = usable - held(true);
        EXPECT_TRUE(free.empty() || demand() <= active()) << "there is room for a worker that is wanted";
        EXPECT_TRUE(free.empty() || !limits_.give_back_unused) << "an unused CPU was kept";
        const bool sleeps_over_work =
            input_ && count(WorkerState::kSearching) == 0 && count(WorkerState::kIdle) > 0;
        EXPECT_TRUE(!sleeps_over_work || count(WorkerState::kBusy) >= most_) << "nobody looks for the work";
        check_compact(held(false), free);
    }

    void follow(const WorkerAction& action) {
        using Kind = WorkerAction::Kind;
        ModelWorker& w = workers_[action.worker.value];
        switch (action.kind) {
            case Kind::kStart: {
                log_ << "  start " << action.worker.value << "@" << action.cpu << "\n";
                EXPECT_LT(w.cpu, 0) << "the place is taken";
                EXPECT_EQ(count(WorkerState::kIdle), active() >= limits_.min ? 0 : count(WorkerState::kIdle));
                EXPECT_FALSE(held(true).contains(action.cpu)) << "two workers on a CPU";
                EXPECT_LT(active(), demand());
                w = {WorkerState::kSearching, action.cpu, -1, {}};
                break;
            }
            case Kind::kWake: {
                log_ << "  wake " << action.worker.value << "\n";
                EXPECT_EQ(w.state, WorkerState::kIdle);
                EXPECT_EQ(w.cpu, action.cpu);
                for (const ModelWorker& other : workers_)
                    EXPECT_FALSE(other.cpu >= 0 && other.state == WorkerState::kIdle &&
                                 other.slept > w.slept);
                w.state = WorkerState::kSearching;
                break;
            }
            case Kind::kMove:
                log_ << "  move " << action.worker.value << "@" << action.cpu << "\n";
                EXPECT_FALSE(held(true).contains(action.cpu)) << "two workers on a CPU";
                if (w.state != WorkerState::kIdle && w.from < 0) w.from = w.cpu;
                w.cpu = action.cpu;
                break;
            case Kind::kEnd:
                log_ << "  end " << action.worker.value << "\n";
                if (granted_.contains(w.cpu)) {
                    EXPECT_EQ(w.state, WorkerState::kIdle) << "only sleepers end without being revoked";
                    EXPECT_TRUE(is_to_end(w));
                    EXPECT_GT(active(), limits_.min);
                }
                if (w.state == WorkerState::kBusy) input_ = true;
                w.state = WorkerState::kLeaving;
                break;
            case Kind::kReturn:
                log_ << "  return " << action.cpu << "\n";
                EXPECT_TRUE(owed_.contains(action.cpu)) << "returned unasked, or twice";
                owed_.erase(action.cpu);
                break;
            case Kind::kGiveBack:
                log_ << "  give " << action.cpu << "\n";
                EXPECT_TRUE(granted_.contains(action.cpu) && !limits_.reserved.contains(action.cpu));
                granted_.erase(action.cpu);
                break;
            case Kind::kDemand:
                log_ << "  demand " << action.count << "\n";
                EXPECT_NE(told_demand_, action.count);
                told_demand_ = action.count;
                break;
        }
    }

    void check_compact(const CpuSet& used, const CpuSet& free) {
        const CpuSet available = used | free;
        const std::vector<int> all(available.begin(), available.end());
        const Extent now = extent(machine_, used);
        for (unsigned bits = 0; bits < 1U << all.size(); ++bits) {
            if (std::popcount(bits) != used.count()) continue;
            CpuSet other;
            for (size_t i = 0; i < all.size(); ++i)
                if ((bits >> i & 1) != 0) other.insert(all[i]);
            EXPECT_LE(now, extent(machine_, other)) << used.to_list() << " could be " << other.to_list();
        }
    }

    std::mt19937 random_;
    Machine machine_;
    WorkerLimits limits_;
    int most_ = 0;
    std::optional<LocalServer> server_;
    std::vector<ModelWorker> workers_;
    CpuSet granted_, owed_;
    CpuSet awaited_;  // while a tick is told
    bool input_ = true;
    int told_demand_ = 0;
    Time now_{};
    std::ostringstream log_;
};

}  // namespace

TEST(LocalServerModel, AgreesOnRandomHistories) {
    const std::vector<Machine> machines = {
        Machine::synthetic("package:2 core:2 pu:2"), Machine::synthetic("numa:2 core:3 pu:1"),
        Machine::synthetic("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)"), Machine::synthetic("core:1 pu:1")};
    for (unsigned seed = 0; seed < 1500; ++seed) {
        World world(seed, machines[seed % machines.size()]);
        for (int step = 0; step < 300; ++step) {
            world.step();
            if (HasFailure()) FAIL() << "seed " << seed << ", step " << step << "\n" << world.log();
        }
    }
}
