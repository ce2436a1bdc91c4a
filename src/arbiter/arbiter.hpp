// Arbiter: the meta resource server (seed 002 section 5) as a pure state machine, (state, event, now) ->
// actions.
//
// It has no threads, sockets, pages or clock: the server around it (server.hpp) turns messages into events
// and actions into writes. One thread calls it. It records every CPU in a Ledger whose owner of all CPUs is
// the arbiter itself, so that a CPU has one guest at a time by construction, and never gets lost: a client
// that dies is detached, and what it held is free in the same call.
//
// How a CPU moves. A rebalance compares what each client holds with its target (policy.hpp) and acts only
// while some client lacks a CPU: it revokes from those above their target, core by core, largest surplus per
// demand first. A revoked CPU is out of its holder's grant at once but still its guest's in the ledger, until
// the holder says that its threads left, dies, or is fenced after a deadline. Only then is it granted to the
// client with the highest quotient of demand to CPUs held. CPUs that nobody demands stay with whoever has
// them, and free ones are spread, so that a program that starts on an idle machine has all of it at once.
//
// A CPU may also move without the arbiter, between programs of one user (docs/HANDOVER.md): for each grant it
// names, in advance, the client that gets the CPU if its holder releases it, and hears of it later. It then
// honours every client that it ever named for that grant, whatever it has decided since.
//
// Falling demand counts once it has lasted for `dwell`, or at once where the client says so: a program
// between two parallel regions does not lose its CPUs.
#pragma once

#include <chrono>
#include <climits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "arbiter/policy.hpp"
#include "arbiter/reservation.hpp"
#include "base/clock.hpp"
#include "cores/ledger.hpp"
#include "cores/protocol.h"
#include "heddle/machine.hpp"

namespace heddle {

using UserId = uint32_t;

struct ArbiterLimits {
    int clients = 256;
    int clients_per_user = 64;     ///< so that no user takes all the places
    int owned_per_user = INT_MAX;  ///< CPUs that the clients of one user may own together
    Nanoseconds dwell = std::chrono::milliseconds(1);
    Nanoseconds sample_every = std::chrono::milliseconds(2);  ///< while someone may have to give way
    Nanoseconds fence_after = std::chrono::milliseconds(10);
    /// How long a peak of demand still counts as competition.
    Nanoseconds remember_peak = std::chrono::seconds(1);
    /// After a client came with CPUs from an earlier arbiter, others of its kind may follow: nothing moves
    /// until then.
    Nanoseconds recovery = std::chrono::milliseconds(300);
    /// So long after the start such clients are waited for at all; later, a claim to hold something is only a
    /// wish.
    Nanoseconds recovery_ends = std::chrono::seconds(2);
    /// Whether those go on that are stopped is looked at so often where nobody competes.
    Nanoseconds look_at_stopped = std::chrono::milliseconds(250);
    /// How long a client has the machine where gangs take turns (turns.cpp).
    Nanoseconds turn = std::chrono::milliseconds(20);
};

/// What a program says when it registers; already decoded and within bounds.
struct Registration {
    std::string name;
    uint32_t pid = 0;
    UserId user = 0;
    int demand = 1;
    int min = 0;
    int max = 0;  ///< 0: no limit
    int weight = 1;
    CpuSet allowed;       ///< empty: all
    CpuSet held;          ///< what it holds already, under an arbiter that went away
    ClientId returns;     ///< the restored client that it is; what that one holds is free for it
    CpuSet owned;         ///< what it claims as its own; means nothing under a policy without owners
    uint32_t around = 0;  ///< the process whose reservation it shares; 0: none
    JobId job = {};       ///< of one that is restored; those of one job had the same
};

/// Threads of a client that need a CPU each at the same time; 0 or 1: any number of CPUs serves it.
struct Gangs {
    int spinning = 0;  ///< wait for each other by spinning: with fewer CPUs they hardly get on
    int meeting = 0;   ///< of parallel regions that run and often meet: with fewer they sleep each time
    friend bool operator==(const Gangs&, const Gangs&) = default;
};

/// The grant of a client is new: show it.
struct Publish {
    ClientId client;
    CpuSet cpus;
    uint32_t epoch;
    bool contended;
    int noticed;            ///< the demand that was taken into account
    bool wake;              ///< cpus or contended changed: the client should look
    bool leaving;           ///< it has CPUs to leave
    bool parked = false;    ///< no thread of it is to run until the next grant
    bool has_turn = false;  ///< clients take turns, and this one need not share its CPUs
    friend bool operator==(const Publish&, const Publish&) = default;
};
/// The client did not leave in time: keep its threads on `cpus` by force, and report by fenced().
struct Fence {
    ClientId client;
    CpuSet cpus;
    friend bool operator==(const Fence&, const Fence&) = default;
};
/// The client's grant of the CPU has ended by force, without its doing: show it, before anybody else gets the
/// CPU, so that the client does not claim it from the next arbiter.
struct EndByForce {
    ClientId client;
    int cpu;
    uint32_t generation;
    friend bool operator==(const EndByForce&, const EndByForce&) = default;
};
/// Where a CPU goes when its holder releases it: show it in the holder's page. Empty `successor`: nowhere.
struct NameSuccessor {
    ClientId holder;
    int cpu;
    uint32_t generation;
    ClientId successor;
    friend bool operator==(const NameSuccessor&, const NameSuccessor&) = default;
};
/// Who may hand a CPU to the client: show it in the client's page. Comes before the NameSuccessor it belongs
/// to. Empty `lender`: nobody any more.
struct NameLender {
    ClientId client;
    int cpu;
    uint32_t generation;
    ClientId lender;
    friend bool operator==(const NameLender&, const NameLender&) = default;
};
/// For those who watch.
struct Event {
    enum class Kind { kJoined, kLeft, kCpu, kDemand } kind;
    ClientId client;  ///< of kCpu: ClientId{0} for nobody
    int cpu = -1;
    uint32_t value = 0;  ///< kJoined: pid; kLeft: 0 left, 1 died; kDemand: CPUs
    std::string name;
    friend bool operator==(const Event&, const Event&) = default;
};
using ArbiterAction = std::variant<Publish, Fence, EndByForce, NameSuccessor, NameLender, Event>;

/// The present grant of a CPU.
struct CpuGrant {
    static constexpr size_t kMostSuccessors = 4;  ///< named for one grant; each has to be honoured
    uint32_t generation = 0;
    ClientId holder;                   ///< ClientId{0}: nobody
    ClientId successor;                ///< the one named last
    std::vector<ClientId> successors;  ///< all that were ever named
};
/// What a holder's release word says: the CPU went to a client, or, with an empty `to`, back to the arbiter.
struct Release {
    int cpu;
    uint32_t generation;
    ClientId to;
};

struct ClientStatus {
    ClientId client;
    std::string name;
    uint32_t pid;
    UserId user;
    int demand, min, max, weight, target;
    CpuSet granted;
    CpuSet leaving;  ///< asked back, not left yet
    CpuSet owned;
    bool away;  ///< restored, and not back yet
    Nanoseconds cpu_time;
};

/// Core-time since the start, of the CPUs that may be handed out: used and idle are all of it.
struct CoreTime {
    Nanoseconds used;  ///< granted to clients, those that have left included
    Nanoseconds lent;  ///< of that, on CPUs that another client owns
    Nanoseconds idle;  ///< nobody's
};

enum class Refusal {
    kNone,
    kFull,
    kUserFull,
    kNoCpus,
    kOwned,     ///< somebody else owns one of the CPUs that it calls its own
    kNotThere,  ///< it calls CPUs its own that the machine does not have
    kOwnsTooMany,
};

class Arbiter {
  public:
    /// Hands out `cpus` of the machine; empty: all.
    Arbiter(Machine machine, std::unique_ptr<Policy> policy, const ArbiterLimits& limits, Time now,
            const CpuSet& cpus = {});
    ~Arbiter();
    Arbiter(Arbiter&&) noexcept;

    /// On success `client` is set and a Publish for it is among the actions.
    [[nodiscard]] Refusal join(const Registration& registration, Time now, ClientId& client);
    /// A client of an earlier arbiter that lives and has not come back yet: it keeps what it holds and owns,
    /// as far as nobody else does, and takes no part, until it joins (Registration::returns) or leaves.
    /// Nothing where there is no place.
    [[nodiscard]] std::optional<ClientId> restore(const Registration& registration, Time now);
    /// A client that is not there is ignored, here and below: it may have died with messages under way.
    void leave(ClientId client, bool died, Time now);
    /// The client can release CPUs to a successor, and be one.
    void hands_over(ClientId client, Time now);
    /// The client released these CPUs. What is not of the CPU's present grant, or goes to a client that was
    /// not named for it, is a stale word or a lie, and ignored. Who releases CPUs means the demand that it
    /// shows, or it would get others for them. With `join_follows` what is free now waits for the newcomer.
    void released(ClientId client, const std::vector<Release>& releases, int demand, Time now,
                  bool join_follows = false);
    /// The client's threads obey this epoch of its grant.
    void obeyed(ClientId client, uint32_t epoch, Time now);
    /// The demand that the client shows since `since`; `urgent` where it asked to be looked at.
    void observe(ClientId client, int demand, Time since, bool urgent, Time now);
    void needs_together(ClientId client, const Gangs& gangs, Time now);
    /// None of its threads runs, whatever demand it shows (SIGSTOP), until it goes on.
    void was_stopped(ClientId client, Time now);
    void goes_on(ClientId client, Time now);
    [[nodiscard]] bool is_stopped(ClientId client) const;
    [[nodiscard]] std::vector<ClientId> stopped() const;
    void set_limits(ClientId client, int min, int max, int weight, Time now);
    /// What is allowed to the client's process from outside, by its groups and by its affinity now.
    struct Bounds {
        CpuSet cpuset{};    ///< empty: any
        CpuSet affinity{};  ///< empty: any
        int quota = 0;      ///< in CPUs; 0: any number
    };
    /// What its affinity did not have when it came stays forbidden, unless it is all that it has now.
    void limit(ClientId client, const Bounds& bounds, Time now);
    /// Answers a Fence: its threads were bound (or could not be, which is counted).
    void fenced(ClientId client, bool bound, Time now);
    /// What there is to hand out has changed: a cpuset, a quota. Holders are asked to leave what is gone.
    void set_cpus(const CpuSet& cpus, Time now);
    /// To be called at next_deadline().
    void tick(Time now);

    /// When tick() wants to be called next; nothing while nobody lacks anything and nothing is under way.
    [[nodiscard]] std::optional<Time> next_deadline() const;
    /// The server should read every client's page before the next tick.
    [[nodiscard]] bool sampling() const { return sampling_; }
    /// Somebody lacks CPUs that its target gives it: what others released to nobody should be taken now.
    [[nodiscard]] bool lacking() const { return lack() > 0; }
    /// What was decided since the last call, in order.
    [[nodiscard]] std::vector<ArbiterAction> take_actions();

    [[nodiscard]] std::vector<ClientStatus> clients(Time now) const;
    [[nodiscard]] CoreTime core_time(Time now) const;
    [[nodiscard]] ClientId holder(int cpu) const { return grant_of(cpu).holder; }
    /// Whose own the CPU is; ClientId{0}: nobody's.
    [[nodiscard]] ClientId owner_of(int cpu) const { return owners_[static_cast<size_t>(cpu)]; }
    /// Of a CPU of the machine.
    [[nodiscard]] const CpuGrant& grant_of(int cpu) const { return grants_[static_cast<size_t>(cpu)]; }
    /// All that the client may still be on; empty for one that is not there.
    [[nodiscard]] CpuSet cpus_of(ClientId client) const;
    /// What it asked for itself and its job.
    [[nodiscard]] Reservation reservation_of(ClientId client) const;
    [[nodiscard]] JobId job_of(ClientId client) const;
    [[nodiscard]] CpuSet leaving_of(ClientId client) const;
    [[nodiscard]] bool leaving(int cpu) const;  ///< its holder was asked to leave it
    [[nodiscard]] const Policy& policy() const { return *policy_; }
    [[nodiscard]] const Machine& machine() const { return machine_; }
    /// The CPUs that there are to hand out.
    [[nodiscard]] const CpuSet& cpus() const { return cpus_; }
    [[nodiscard]] uint64_t failed_fences() const { return failed_fences_; }
    /// The first broken invariant in words, or "".
    [[nodiscard]] std::string check() const;

  private:
    struct Client;

    [[nodiscard]] Client* find(ClientId id) const;
    /// The ledger's answer to a call that its rules cannot refuse here.
    static void must(Outcome outcome, Outcome expected, const char* what);
    void grant(Client& client, const CpuSet& cpus, Time now);
    void revoke(Client& client, const CpuSet& cpus, Time now);
    void vacate(Client& client, const CpuSet& cpus, Time now);
    void end_grant(int cpu);
    /// Clients of the arbiter before, that live, may come back any moment.
    [[nodiscard]] bool awaits_restored(Time now) const;
    void note_claims(Client& client, const CpuSet& held);
    void honour_claims(Time now);
    void name_successors();
    void name_successor(int cpu, Client* successor);
    void account(Client& client, Time now);
    /// To be called before the CPUs that are free, or their owners, change.
    void account(Time now);
    void own(Client& client, const CpuSet& cpus);
    void disown(Client& client);
    /// `before`: the restored client that wants them, or nullptr.
    [[nodiscard]] Refusal refusal_of_owned(const CpuSet& owned, UserId user, JobId job,
                                           const Client* before) const;
    [[nodiscard]] const Client* kin_of(const Registration& registration, const Reservation& asks) const;
    void share_reservations(Time now);
    void share_minimum(std::span<Client* const> job);
    void share_owned(std::span<Client* const> job, Time now);
    [[nodiscard]] static std::vector<int> parts(std::span<Client* const> job, int reserved,
                                                const std::vector<int>& most);
    [[nodiscard]] std::vector<CpuSet> divide(std::span<Client* const> job, const CpuSet& reserved) const;
    [[nodiscard]] std::string check_jobs() const;
    [[nodiscard]] int own_missing(const Client& client) const;
    [[nodiscard]] CpuSet keep(const Client& client, int count) const;
    [[nodiscard]] CpuSet spare(const Client& client, const CpuSet& wished) const;
    /// One more or fewer of the CPUs that another client than their owner holds.
    void count_lent(int cpu, ClientId holder, int change);
    [[nodiscard]] int most(const Client& client) const;
    [[nodiscard]] int wanted(const Client& client) const;
    [[nodiscard]] CpuSet choose(const Client& client, const CpuSet& from, int count) const;

    Refusal admit(const Registration& registration, Time now, ClientId& client);
    Client& enter(const Registration& registration, Time now);
    void remove(Client& client, bool died, Time now);
    void note_demand(Client& client, int demand, Time now);
    void rebalance(Time now);
    void compute_targets();
    [[nodiscard]] bool turns_fill_the_machine() const;
    void take_turns(Time now);
    void enforce_maxima(Time now);
    [[nodiscard]] int lack() const;
    void grant_to_the_needy(Time now);
    [[nodiscard]] std::vector<int> room_of_the_rich(const CpuSet& wished) const;
    void revoke_from_the_rich(Time now);
    void grant_own(Time now);
    void take_back_owned(Time now);
    void swap_for_affinity(Time now);
    [[nodiscard]] CpuSet make_room_in_steps(Time now);
    void spread_the_rest(CpuSet rest, Time now);
    void update_contention(Time now);
    void publish();
    void say(Event event) { actions_.emplace_back(std::move(event)); }

    Machine machine_;
    std::unique_ptr<Policy> policy_;
    ArbiterLimits limits_;
    Ledger ledger_;
    MemberId pool_;
    CpuSet cpus_;
    CpuSet free_;
    std::vector<CpuGrant> grants_;  // by CPU
    bool successors_named_ = false;
    /// Lenders that are none any more. Shown after the grants, so that a client that took a CPU and finds its
    /// lender gone also finds the CPU in its grant, if it is.
    std::vector<NameLender> ended_;
    std::vector<ClientId> owners_;  // by CPU
    int lent_ = 0;                  // CPUs that another client than their owner holds
    CoreTime core_time_;  // until accounted_at_; of clients that are there, used is in their own accounts
    Time accounted_at_;
    std::vector<std::unique_ptr<Client>> clients_;  // by age
    uint32_t last_id_ = 0;
    uint32_t last_job_ = 0;
    static constexpr uint32_t kMostClientsEver = HEDDLE_TAKEN - 1;
    bool contended_ = false;
    bool sampling_ = false;
    ClientId turn_;  ///< whose turn it is; ClientId{0}: there are no turns
    Time turn_ends_;
    long turns_had_ = 0;        ///< by the client whose turn it is, before this one; never falls
    uint64_t turn_number_ = 0;  ///< of the last turn
    Time last_sample_;
    Time started_;
    Time recovering_until_;
    uint64_t failed_fences_ = 0;
    std::vector<ArbiterAction> actions_;
};

}  // namespace heddle
