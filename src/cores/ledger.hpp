// Ledger: who owns each CPU, who is on it, and who waits for it (seed 000 section 2.2.1; docs/LEDGER.md has
// the tables).
//
// A pure state machine: no threads, clocks, sockets. The same class serves a process, where the members are
// components, and the arbiter, where they are processes. Not thread-safe: its owner serialises the calls.
// Each call answers an Outcome and appends to a list what changes for whom. Calls on one CPU allocate
// nothing.
//
// For each CPU there are an owner, a guest (who is on it) and a state as the owner sees it:
//   disabled  nobody owns it, nobody may use it
//   busy      the owner may use it; a guest other than the owner has still to leave
//   lent      the guest may use it; without a guest it is free
// From these follows the one member that may use a CPU: the owner of a busy one, the guest of a lent one. The
// actions of a call are exactly the changes of that user, each announced once.
//
// A ledger may be shared(): then other processes use the same machine, and each CPU is either here or away.
// One that is away nobody here may use, whatever its state; its guest has still to leave. The state is what
// becomes of it when it is brought back. CPUs that nobody owns are lent to all. Where an owner had started
// beside a guest that had still to leave, both have to leave.
//
// Two invariants keep requests honest, and check() verifies them: no request waits for a CPU that is free,
// and no member waits that is disabled or at its maximum.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cores/action.hpp"
#include "heddle/cores.hpp"
#include "heddle/cpu_set.hpp"
#include "heddle/machine.hpp"

namespace heddle {

enum class CpuState : uint8_t { kDisabled, kBusy, kLent };

struct LedgerLimits {
    int members = 1024;
    int requests_per_cpu = 8;      ///< at most Ledger::kMaxRequestsPerCpu
    int petitions = 1024;          ///< requests for "n CPUs of these", of all members
    bool lend_after_exit = false;  ///< CPUs of a member that detaches stay lent instead of disabled
};

class Ledger {
  public:
    /// A member waits for so many of these CPUs.
    struct Petition {
        MemberId member;
        int wanted;
        CpuSet allowed;
    };

    static constexpr int kMaxMembers = 4096;
    static constexpr int kMaxRequestsPerCpu = 8;
    /// The part of an id that numbers the members attached at one time: below LedgerLimits::members for all
    /// that exist, below kMaxMembers for any other.
    [[nodiscard]] static constexpr size_t slot(MemberId member) noexcept {
        return member.value % kMaxMembers;
    }

    /// Throws kInvalidArgument for limits outside 1..their maximum.
    explicit Ledger(Machine machine, const LedgerLimits& limits = {});

    /// A new member, owner of `owned` (which may be empty), enabled, without a maximum. Its CPUs are
    /// announced to it; who was on them is told to leave. Throws kPermission, and changes nothing, where a
    /// CPU has an owner or is not in the machine; kLimit where the members are at their limit.
    [[nodiscard]] MemberId attach(std::string_view name, const CpuSet& owned, Actions& actions);
    /// Gives back all it borrowed, drops its requests and its ownership. Nothing is announced to itself.
    [[nodiscard]] Outcome detach(MemberId member, Actions& actions);

    /// disable also ends what others borrowed from the member and what it borrowed, whatever its maximum.
    [[nodiscard]] Outcome enable(MemberId member, Actions& actions);
    [[nodiscard]] Outcome disable(MemberId member, Actions& actions);
    [[nodiscard]] Outcome set_max_parallelism(MemberId member, int max, Actions& actions);

    [[nodiscard]] Outcome lend(MemberId member, Actions& actions);
    [[nodiscard]] Outcome lend_cpu(MemberId member, int cpu, Actions& actions);
    [[nodiscard]] Outcome lend_cpus(MemberId member, int count, Actions& actions);
    [[nodiscard]] Outcome lend_cpu_mask(MemberId member, const CpuSet& cpus, Actions& actions);

    [[nodiscard]] Outcome reclaim(MemberId member, Actions& actions);
    [[nodiscard]] Outcome reclaim_cpu(MemberId member, int cpu, Actions& actions);
    [[nodiscard]] Outcome reclaim_cpus(MemberId member, int count, Actions& actions);
    [[nodiscard]] Outcome reclaim_cpu_mask(MemberId member, const CpuSet& cpus, Actions& actions);

    /// For a CPU of somebody else, acquire_cpu is the directed request: granted at once where the CPU is
    /// free, otherwise queued at that CPU, before all petitions.
    [[nodiscard]] Outcome acquire(MemberId member, Actions& actions);
    [[nodiscard]] Outcome acquire_cpu(MemberId member, int cpu, Actions& actions);
    [[nodiscard]] Outcome acquire_cpus(MemberId member, int count, Actions& actions);
    [[nodiscard]] Outcome acquire_cpu_mask(MemberId member, const CpuSet& cpus, Actions& actions);
    /// `count` CPUs out of `allowed`; what cannot be had now becomes a petition for these.
    [[nodiscard]] Outcome acquire_cpus_in(MemberId member, int count, const CpuSet& allowed,
                                          Actions& actions);
    /// Takes back the member's requests for one CPU.
    [[nodiscard]] Outcome withdraw(MemberId member, int cpu);

    [[nodiscard]] Outcome borrow(MemberId member, Actions& actions);
    [[nodiscard]] Outcome borrow_cpu(MemberId member, int cpu, Actions& actions);
    [[nodiscard]] Outcome borrow_cpus(MemberId member, int count, Actions& actions);
    [[nodiscard]] Outcome borrow_cpu_mask(MemberId member, const CpuSet& cpus, Actions& actions);

    /// No actions: whoever must leave was told when that was decided.
    [[nodiscard]] Outcome return_all(MemberId member, Actions& actions);
    [[nodiscard]] Outcome return_cpu(MemberId member, int cpu, Actions& actions);
    [[nodiscard]] Outcome return_cpus(MemberId member, int count, Actions& actions);
    [[nodiscard]] Outcome return_cpu_mask(MemberId member, const CpuSet& cpus, Actions& actions);

    /// From now on CPUs come and go, and those of `here` are here. Once for a ledger.
    void share(const CpuSet& here, Actions& actions);
    [[nodiscard]] bool shared() const noexcept { return shared_; }
    /// Others use these from now on, or will when their guests have left: each returns or lends its CPU.
    void take_away(const CpuSet& cpus, Actions& actions);
    /// These are here again: their owners' that want them, of who waits for them, or free.
    void bring_back(const CpuSet& cpus, Actions& actions);

    // Questions about a CPU. One outside the machine is disabled and nobody's.
    [[nodiscard]] bool exists(int cpu) const noexcept;
    [[nodiscard]] MemberId owner(int cpu) const noexcept;
    [[nodiscard]] MemberId guest(int cpu) const noexcept;
    [[nodiscard]] CpuState state(int cpu) const noexcept;
    /// The one member that may use it, or kNobody.
    [[nodiscard]] MemberId user(int cpu) const noexcept;
    [[nodiscard]] bool here(int cpu) const noexcept { return exists(cpu) && at(cpu).here; }
    /// It is away, and its owner has still to leave it, as well as its guest.
    [[nodiscard]] bool owner_leaves(int cpu) const noexcept { return exists(cpu) && at(cpu).owner_leaves; }
    /// Who waits for this very CPU, in order.
    [[nodiscard]] std::vector<MemberId> requests(int cpu) const;
    /// kSuccess: the member may use it and is alone there; kNoted: a guest has still to leave; kPermission:
    /// it may not.
    [[nodiscard]] Outcome check_cpu(MemberId member, int cpu) const noexcept;

    // Questions about a member. One that is not attached owns and uses nothing.
    [[nodiscard]] bool attached(MemberId member) const noexcept;
    [[nodiscard]] bool enabled(MemberId member) const noexcept;
    [[nodiscard]] int max_parallelism(MemberId member) const noexcept;
    [[nodiscard]] std::string_view name(MemberId member) const noexcept;
    [[nodiscard]] int usable_count(MemberId member) const noexcept;
    [[nodiscard]] CpuSet usable(MemberId member) const;  ///< what it may use
    [[nodiscard]] CpuSet owned(MemberId member) const;
    [[nodiscard]] CpuSet lent(MemberId member) const;       ///< of its own
    [[nodiscard]] CpuSet to_return(MemberId member) const;  ///< it must leave
    [[nodiscard]] CpuSet awaited(MemberId member) const;    ///< it may use, and others wait for
    /// CPUs that its petitions still ask for, directed requests not counted.
    [[nodiscard]] int petitioned(MemberId member) const noexcept;

    [[nodiscard]] std::vector<MemberId> members() const;
    [[nodiscard]] CpuSet free_cpus() const;
    /// While this is 0 every borrow fails, which a caller may know without the lock.
    [[nodiscard]] int free_count() const noexcept { return free_count_; }
    /// CPUs that are away and that nobody is on.
    [[nodiscard]] CpuSet vacated() const;
    /// CPUs that are away and that somebody wants: their owners, or who waits for this very one.
    [[nodiscard]] CpuSet missed() const;
    /// How many CPUs the members use or could use now: those in use, those that owners want back, and what
    /// waiting requests ask for.
    [[nodiscard]] int demand() const noexcept;
    /// Of these, what petitions still ask for.
    [[nodiscard]] int petitioned() const noexcept { return petitioned_; }
    /// The petitions themselves, oldest first.
    [[nodiscard]] const std::vector<Petition>& petitions() const noexcept { return petitions_; }
    /// Grows whenever a guest has left a CPU that is away.
    [[nodiscard]] uint32_t departures() const noexcept { return departures_; }
    [[nodiscard]] const Machine& machine() const noexcept { return machine_; }

    /// The first broken invariant in words, or "".
    [[nodiscard]] std::string check() const;

  private:
    struct Cpu {
        MemberId owner, guest;
        CpuState state = CpuState::kDisabled;
        bool exists = false;
        bool here = true;
        bool owner_leaves = false;  // busy, away, and with another guest
        uint8_t waiting = 0;
        std::array<MemberId, kMaxRequestsPerCpu> queue{};
    };
    struct Member {
        MemberId id;  // kNobody while the slot is unused
        bool enabled = true;
        bool detaching = false;
        int max = 0;
        int usable = 0;
        int requests = 0;  // places in queues of CPUs
        int petitions = 0;
        uint32_t uses = 0;  // of this slot
        std::string name;
    };
    [[nodiscard]] static MemberId user_of(MemberId owner, MemberId guest, CpuState state, bool here) noexcept;
    [[nodiscard]] static MemberId user_of(const Cpu& cpu) noexcept {
        return user_of(cpu.owner, cpu.guest, cpu.state, cpu.here);
    }
    [[nodiscard]] static bool leaves_as_owner(MemberId member, const Cpu& cpu) noexcept {
        return cpu.owner_leaves && cpu.owner == member;
    }
    /// Its part of demand(): 0 or 1.
    [[nodiscard]] static int wanted(const Cpu& cpu) noexcept;
    /// Who is on a CPU that its owner may use: nobody yet while it is away.
    [[nodiscard]] static MemberId guest_for(const Cpu& cpu, MemberId owner) noexcept;
    [[nodiscard]] Member* find(MemberId id) noexcept;
    [[nodiscard]] const Member* find(MemberId id) const noexcept;
    [[nodiscard]] Member& at(MemberId id) noexcept;
    [[nodiscard]] Cpu& at(int cpu) noexcept { return cpus_[static_cast<size_t>(cpu)]; }
    [[nodiscard]] const Cpu& at(int cpu) const noexcept { return cpus_[static_cast<size_t>(cpu)]; }
    [[nodiscard]] static int room(const Member& member) noexcept;

    /// The only place where a CPU changes hands: keeps the counts, the free set, and says what changed.
    void change(int cpu, MemberId owner, MemberId guest, CpuState state, Actions& actions) {
        change(cpu, owner, guest, state, at(cpu).here, actions);
    }
    void change(int cpu, MemberId owner, MemberId guest, CpuState state, bool here, Actions& actions);
    void set_free(int cpu, bool free) noexcept;
    /// The guest has left, and the CPU goes to the owner, who waits for it, or nobody.
    void vacate(int cpu, MemberId owner, CpuState state, Actions& actions);
    [[nodiscard]] MemberId next_guest(int cpu);
    void drop_requests(Member& member);
    void withdraw(Member& member, int cpu);
    void leave_queue(Member& member, Cpu& cpu);

    void lend_one(Member& member, int cpu, Actions& actions);
    [[nodiscard]] Outcome reclaim_one(Member& member, int cpu, Actions& actions);
    [[nodiscard]] Outcome acquire_one(Member& member, int cpu, Actions& actions);
    [[nodiscard]] Outcome queue_one(Member& member, int cpu);
    [[nodiscard]] Outcome borrow_one(Member& member, int cpu, Actions& actions);
    /// What others use from now on is left by its guest though that is disabled.
    [[nodiscard]] bool returns_disabled(MemberId id, const CpuSet& cpus) const;
    [[nodiscard]] Outcome return_one(Member& member, int cpu, Actions& actions);

    void lend_excess(Member& member, int keep, Actions& actions);
    [[nodiscard]] Outcome take_own(Member& member, const CpuSet& from, int& count, Actions& actions);
    [[nodiscard]] Outcome miss_own(Member& member, const CpuSet& from, int& count, Actions& actions);
    [[nodiscard]] Outcome take_free(Member& member, const CpuSet& from, int& count, Actions& actions);
    [[nodiscard]] Outcome petition(Member& member, int count, const CpuSet& allowed);
    [[nodiscard]] CpuSet choose(const Member& member, const CpuSet& from, int count) const;
    template <class Predicate>
    [[nodiscard]] CpuSet cpus_where(Predicate predicate) const;

    Machine machine_;
    LedgerLimits limits_;
    std::vector<Cpu> cpus_;  // by the operating system's index
    std::vector<Member> members_;
    std::vector<Petition> petitions_;  // oldest first
    std::vector<uint64_t> free_;       // a bit a CPU: lent and without a guest
    int free_count_ = 0;
    bool shared_ = false;
    int wanted_ = 0;      // the sum of wanted() of all CPUs
    int petitioned_ = 0;  // the sum of what petitions want
    uint32_t departures_ = 0;
};

}  // namespace heddle
