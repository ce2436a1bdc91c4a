// ArbiterLink: what a process needs of its arbiter to use CPUs and to share them: ArbiterClient, or a fake in
// a test.
//
// Belongs to whoever made it, who gives the callbacks to its constructor. Any thread may make any call, also
// from inside a callback. Callbacks come one at a time, without a lock, from a thread of the link's; none
// comes once the destructor has returned. Nothing outlives the process: what it held is free when it ends.
#pragma once

#include <functional>
#include <string>

#include "cores/protocol.h"
#include "heddle/cpu_set.hpp"

namespace heddle {

class ArbiterLink {
  public:
    struct Callbacks {
        /// The process may use these from now on. Not called for what the constructor found.
        std::function<void(const CpuSet&)> gained;
        /// The process has to leave these, and to call released() for each soon (the arbiter fences after 10
        /// ms).
        std::function<void(const CpuSet&)> asked_back;
        /// The page to show the process's components on (component_table.hpp): for each registration, before
        /// anything else is told of it, for the first one inside the constructor. Null: there is none now,
        /// and the last one goes when this has returned.
        std::function<void(heddle_client_page*)> page = {};
        /// In a forked child, inside fork(2): the page is gone. Must take no lock.
        std::function<void()> forked = {};
        /// Somebody looks at the status: what the components have done is to be shown on the page.
        std::function<void()> count = {};
    };
    enum class Lent {
        kHandedOver,  ///< another process has it; take it back by demand
        kLent,        ///< nobody has it yet: reclaim() may succeed
        kNotHeld,     ///< it is not ours to lend
    };

    ArbiterLink() = default;
    virtual ~ArbiterLink() = default;
    ArbiterLink(const ArbiterLink&) = delete;
    ArbiterLink& operator=(const ArbiterLink&) = delete;

    /// True while an arbiter manages this process; false also between one that died and the next.
    [[nodiscard]] virtual bool managed() const noexcept = 0;
    /// The arbiter has bound threads of this process, which did not leave CPUs in time: where they may run
    /// now says nothing of what the process may use.
    [[nodiscard]] virtual bool fenced() const noexcept { return false; }
    /// Why it is alone, in words; "" where it is managed or was told to be alone.
    [[nodiscard]] virtual std::string problem() const = 0;
    /// The CPUs that the process may use now. Those it was asked to leave are not among them.
    [[nodiscard]] virtual CpuSet held() const = 0;
    [[nodiscard]] virtual bool holds(int cpu) const noexcept = 0;
    /// Some process wants more CPUs than it has: what we do not need should be lent at once.
    [[nodiscard]] virtual bool others_wait() const noexcept = 0;

    /// How many CPUs the process could use now, those that it holds included. `soon`: others should act on a
    /// decrease at once, not only once it has lasted.
    virtual void set_demand(int cpus, bool soon = false) = 0;
    /// Lets others use a CPU; no thread of the process may run there any more. Lower the demand first, or the
    /// arbiter makes up for it.
    virtual Lent lend(int cpu) = 0;
    /// Takes back what was lent and nobody took. False: it is somebody else's now.
    [[nodiscard]] virtual bool reclaim(int cpu) = 0;
    /// The CPU was asked back, and no thread of the process is on it any more.
    virtual void released(int cpu) = 0;
};

}  // namespace heddle
