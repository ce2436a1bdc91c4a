// FakeArbiter and the ArbiterLink to it: an arbiter that does what a test tells it, and knows who may be on
// each CPU of a process. It has a page to show components on.
//
// Any thread; callbacks run in the thread that calls grant() or ask_back(), one at a time. The fake outlives
// its links.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/shown_components.hpp"
#include "cores/arbiter_link.hpp"

namespace heddle::test {

class FakeArbiter {
  public:
    enum class State { kAway, kHeld, kLent, kLeaving };

    explicit FakeArbiter(const CpuSet& held) {
        for (const int cpu : held) states_[cpu] = State::kHeld;
    }

    /// The process may use those of them that it does not hold.
    void grant(const CpuSet& cpus) {
        const std::lock_guard one_at_a_time(callbacks_mutex_);
        CpuSet gained;
        ArbiterLink::Callbacks callbacks;
        {
            const std::lock_guard guard(mutex_);
            callbacks = callbacks_;
            for (const int cpu : cpus)
                if (const State before = state_of(cpu); before == State::kAway || before == State::kLeaving) {
                    states_[cpu] = State::kHeld;
                    gained.insert(cpu);
                }
        }
        if (!gained.empty() && callbacks.gained) callbacks.gained(gained);
    }
    /// The process has to leave those of them that it holds; what it has lent is gone without a word.
    void ask_back(const CpuSet& cpus) {
        const std::lock_guard one_at_a_time(callbacks_mutex_);
        CpuSet asked;
        ArbiterLink::Callbacks callbacks;
        {
            const std::lock_guard guard(mutex_);
            callbacks = callbacks_;
            for (const int cpu : cpus) {
                if (state_of(cpu) == State::kHeld) asked.insert(cpu);
                if (state_of(cpu) == State::kLent) states_[cpu] = State::kAway;
            }
            for (const int cpu : asked) states_[cpu] = State::kLeaving;
        }
        if (!asked.empty() && callbacks.asked_back) callbacks.asked_back(asked);
    }
    /// Somebody looks at the status.
    void count() {
        const std::lock_guard one_at_a_time(callbacks_mutex_);
        ArbiterLink::Callbacks callbacks;
        {
            const std::lock_guard guard(mutex_);
            callbacks = callbacks_;
        }
        if (callbacks.count) callbacks.count();
    }
    /// From now on somebody takes these as soon as they are lent.
    void set_takers(const CpuSet& cpus) {
        const std::lock_guard guard(mutex_);
        takers_ = cpus;
    }

    void set_others_wait(bool wait) { others_wait_ = wait; }
    void set_managed(bool managed) { managed_ = managed; }

    [[nodiscard]] CpuSet in(State state) const {
        const std::lock_guard guard(mutex_);
        CpuSet cpus;
        for (const auto& [cpu, is] : states_)
            if (is == state) cpus.insert(cpu);
        return cpus;
    }
    /// The process may have a thread there.
    [[nodiscard]] bool may_be_on(int cpu) const {
        const std::lock_guard guard(mutex_);
        return state_of(cpu) == State::kHeld || state_of(cpu) == State::kLeaving;
    }
    [[nodiscard]] int demand() const {
        const std::lock_guard guard(mutex_);
        return demand_;
    }
    /// What the process shows of its components, of CPUs that it has or not.
    [[nodiscard]] std::vector<ShownComponent> components() const {
        return shown_components(*page_, CpuSet::range(0, HEDDLE_MAX_CPUS));
    }
    /// What the process said, in order: "demand 2", "lend 3", ...
    [[nodiscard]] std::vector<std::string> said() const {
        const std::lock_guard guard(mutex_);
        return said_;
    }
    void forget() {
        const std::lock_guard guard(mutex_);
        said_.clear();
    }

    [[nodiscard]] std::unique_ptr<ArbiterLink> connect(ArbiterLink::Callbacks callbacks) {
        const std::lock_guard guard(mutex_);
        callbacks_ = std::move(callbacks);
        if (callbacks_.page) callbacks_.page(page_.get());
        return std::make_unique<Link>(*this);
    }

  private:
    class Link final : public ArbiterLink {
      public:
        explicit Link(FakeArbiter& fake) : fake_(fake) {}
        ~Link() override {
            const std::lock_guard one_at_a_time(fake_.callbacks_mutex_);
            const std::lock_guard guard(fake_.mutex_);
            if (fake_.callbacks_.page) fake_.callbacks_.page(nullptr);
            fake_.callbacks_ = {};
        }
        [[nodiscard]] bool managed() const noexcept override { return fake_.managed_; }
        [[nodiscard]] std::string problem() const override { return ""; }
        [[nodiscard]] CpuSet held() const override { return fake_.in(State::kHeld); }
        [[nodiscard]] bool holds(int cpu) const noexcept override {
            const std::lock_guard guard(fake_.mutex_);
            return fake_.state_of(cpu) == State::kHeld;
        }
        [[nodiscard]] bool others_wait() const noexcept override { return fake_.others_wait_; }
        void set_demand(int cpus, bool) override {
            const std::lock_guard guard(fake_.mutex_);
            fake_.demand_ = cpus;
            fake_.said_.push_back("demand " + std::to_string(cpus));
        }
        Lent lend(int cpu) override {
            const std::lock_guard guard(fake_.mutex_);
            fake_.said_.push_back("lend " + std::to_string(cpu));
            if (fake_.state_of(cpu) != State::kHeld) return Lent::kNotHeld;
            const bool taken = fake_.takers_.contains(cpu);
            fake_.states_[cpu] = taken ? State::kAway : State::kLent;
            return taken ? Lent::kHandedOver : Lent::kLent;
        }
        [[nodiscard]] bool reclaim(int cpu) override {
            const std::lock_guard guard(fake_.mutex_);
            fake_.said_.push_back("reclaim " + std::to_string(cpu));
            if (fake_.state_of(cpu) != State::kLent) return false;
            fake_.states_[cpu] = State::kHeld;
            return true;
        }
        void released(int cpu) override {
            const std::lock_guard guard(fake_.mutex_);
            fake_.said_.push_back("released " + std::to_string(cpu));
            if (fake_.state_of(cpu) == State::kLeaving) fake_.states_[cpu] = State::kAway;
        }

      private:
        FakeArbiter& fake_;
    };

    [[nodiscard]] State state_of(int cpu) const {
        const auto place = states_.find(cpu);
        return place == states_.end() ? State::kAway : place->second;
    }

    const std::unique_ptr<heddle_client_page> page_ = std::make_unique<heddle_client_page>();
    std::atomic<bool> others_wait_ = false, managed_ = true;
    std::mutex callbacks_mutex_;  // one callback at a time
    mutable std::mutex mutex_;    // for all below
    ArbiterLink::Callbacks callbacks_;
    std::map<int, State> states_;
    CpuSet takers_;
    int demand_ = -1;
    std::vector<std::string> said_;
};

}  // namespace heddle::test
