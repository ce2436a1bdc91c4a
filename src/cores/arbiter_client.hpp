// ArbiterClient: this process as a client of the arbiter: which CPUs it holds, how many it could use, and
// handing single CPUs to other processes without the arbiter in between (docs/HANDOVER.md).
//
// Thread-safe. A thread of its own listens to the arbiter and runs the callbacks, one at a time and without a
// lock; it sleeps while nothing changes. Without an arbiter (none can be had, or HEDDLE_ARBITER=off) the
// process holds all CPUs that it may run on, and every call works on that. When the arbiter dies, the process
// keeps what it holds, and registers again as soon as there is one. A forked child registers as a client of
// its own, where the options say so, holding nothing that its parent holds. Nothing outlives the process:
// what it held is free when it ends.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "cores/arbiter_connection.hpp"
#include "cores/arbiter_link.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct ArbiterClientOptions {
    std::string name;  ///< empty: HEDDLE_NAME, or the program's name
    int demand = 1;
    int min = 0, max = 0, weight = 1;  ///< overridden by HEDDLE_MIN, HEDDLE_MAX, HEDDLE_WEIGHT
    CpuSet allowed;                    ///< empty: the calling thread's affinity
    /// The process's own CPUs, under a policy with owners: it lends what it does not need, and always wins
    /// them back. No other may own them but processes that it starts and that name the same minimum and
    /// CPUs: they share both. Overridden by HEDDLE_OWN.
    CpuSet owned;
    bool in_children = true;  ///< a forked child is a client, too; else it holds nothing
    /// Where the arbiter listens. Empty: as HEDDLE_ARBITER says, and one of the user's own is started where
    /// none listens.
    std::string path;
};

class ArbiterClient final : public ArbiterLink {
  public:
    /// Registers, and returns when it knows what it holds; alone where that fails, see problem(). Throws
    /// kInvalidArgument for counts that make no sense, kBadInput for a HEDDLE_* variable that does not parse.
    ArbiterClient(ArbiterClientOptions options, Callbacks callbacks);
    /// Leaves: what it held is free.
    ~ArbiterClient() override;

    [[nodiscard]] bool managed() const noexcept override;
    [[nodiscard]] bool fenced() const noexcept override;
    [[nodiscard]] std::string problem() const override;
    /// The options' own CPUs, where the arbiter's policy has owners; else none.
    [[nodiscard]] CpuSet owned() const;
    [[nodiscard]] CpuSet held() const override;
    [[nodiscard]] bool others_wait() const noexcept override;
    [[nodiscard]] bool holds(int cpu) const noexcept override {
        return valid(cpu) && (state(cpu) == kHeld || state(cpu) == kTaken);
    }

    void set_demand(int cpus, bool soon = false) override;
    /// Some 100 ns, and a system call only where somebody waits.
    Lent lend(int cpu) override;
    [[nodiscard]] bool reclaim(int cpu) override;
    void released(int cpu) override;

    /// True where another process has just handed us the CPU: it is held from now on. Takes no lock and makes
    /// no system call where it fails.
    [[nodiscard]] bool take(int cpu);
    /// Waits until the process holds the CPU, looking all the time for `active`, then asleep. False at
    /// `until` (Time::max(): never), or when the client is being destroyed.
    [[nodiscard]] bool wait_for(int cpu, Nanoseconds active, Time until);

    /// Called by fork(2)'s handlers; not for users.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

  private:
    void show_demand(bool soon);
    enum State : uint8_t {
        kAbsent,   // not ours
        kHeld,     // ours, as the arbiter knows
        kTaken,    // handed to us; the arbiter is about to learn of it
        kPassing,  // taken, and lent before the arbiter knew: released as soon as it does
        kLent,     // released to nobody in particular
        kLeaving,  // asked back, and not released yet
    };
    /// A process that may hand CPUs to us, or we to it.
    struct Peer {
        uint32_t client = 0;
        PageMapping page;
        [[nodiscard]] const heddle_client_page& words() const { return *page.as<const heddle_client_page>(); }
    };
    /// One registration. `watched` is written by the link thread and read without a lock under a Reader, both
    /// seq_cst: see readers_.
    struct Link {
        Link(const std::string& path, const ClientDescription& description) : connection(path, description) {}
        ArbiterConnection connection;
        std::vector<std::unique_ptr<Peer>> peers;                         // this and the next under mutex_
        uint32_t obeyed = 0;                                              // the epoch that states_ are of
        std::array<std::atomic<const Peer*>, HEDDLE_MAX_CPUS> watched{};  // by CPU: whose word to look at
    };
    /// While one lives, no page is unmapped.
    class Reader;
    class Waiter;

    void start();
    void be_alone();
    void run();
    void reregister();
    std::unique_ptr<Link> connect();
    CpuSet let_go(const Link& link);
    void listen(Link& link);
    void obey(Link& link);
    void say_left(Link& link);
    void watch_lenders(Link& link);
    void forget_peer(Link& link, uint32_t client);
    void retire(std::unique_ptr<Peer> peer);
    void retire(std::unique_ptr<Link> link);
    void free_retired();
    void changed();
    [[nodiscard]] ClientDescription describe() const;
    [[nodiscard]] bool handed(const Link& link, int cpu, uint64_t& lender) const noexcept;
    [[nodiscard]] bool take_from(Link& link, int cpu);
    Lent release(Link& link, int cpu, State after_lending);
    void announce(const CpuSet& gained, const CpuSet& asked_back);
    void show_page(const Link* link);
    [[nodiscard]] State state(int cpu) const noexcept {
        return static_cast<State>(states_[static_cast<size_t>(cpu)].load(std::memory_order_acquire));
    }
    void set_state(int cpu, State to) noexcept {
        states_[static_cast<size_t>(cpu)].store(to, std::memory_order_release);
    }
    [[nodiscard]] static bool valid(int cpu) noexcept { return cpu >= 0 && cpu < HEDDLE_MAX_CPUS; }

    ArbiterClientOptions options_;
    Callbacks callbacks_;
    std::string path_;
    bool on_demand_ = false;    // the arbiter is the user's own
    mutable std::mutex mutex_;  // for changes of states_, link_, retired pages
    std::string problem_;
    // Written under mutex_ (release), read by take() and wait_for() without it (acquire).
    std::array<std::atomic<uint8_t>, HEDDLE_MAX_CPUS> states_{};
    std::array<uint32_t, HEDDLE_MAX_CPUS> taken_generation_{};  // under mutex_; of CPUs in kTaken
    // Under mutex_, while a new arbiter is asked: lent, and not described to it as held, so that they are its
    // own if it takes us in; and of these, those that somebody wanted back meanwhile.
    CpuSet withdrawn_, wanted_back_;
    std::atomic<int> demand_{1};
    std::atomic<Link*> link_{nullptr};
    // Readers of link_ and of what it leads to. seq_cst with the link thread's removal of a page: either the
    // reader does not find the page any more, or the thread sees the reader.
    mutable std::atomic<int> readers_{0};
    std::atomic<int> waiters_{0};  // threads in wait_for(), which the destructor lets go first
    std::vector<std::unique_ptr<Peer>> retired_peers_;
    std::vector<std::unique_ptr<Link>> retired_links_;
    std::atomic<uint32_t> bell_{0};  // a futex: counts changes of states_ and link_ that waiters look at
    std::atomic<bool> stopping_{false};
    Descriptor stop_event_;
    bool started_ = false;  // before the thread is made: what start() finds is asked for, not announced
    std::unique_ptr<std::thread> thread_;
};

}  // namespace heddle
