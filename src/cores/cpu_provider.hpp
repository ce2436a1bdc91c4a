// CpuProvider: where the CPUs of a WorkerPool come from.
//
// A pool tells its provider how many CPUs it could use, and the provider tells the pool that the set it may
// use has changed; the pool then asks for it, so no two announcements can overtake each other. The provider
// belongs to whoever made it and outlives the pool. The pool makes its calls one at a time, from any thread
// and without a lock of its own, except for usable(), which any thread may call at any time and which must
// neither block nor call the pool.
#pragma once

#include <functional>

#include "heddle/cpu_set.hpp"

namespace heddle {

class CpuProvider {
  public:
    virtual ~CpuProvider() = default;

    /// From now on `changed` is called, from any thread, whenever usable() may have changed; the pool asks
    /// for what is usable at first by itself. Calls of the provider may cause calls of `changed` inside them.
    virtual void start(std::function<void()> changed) = 0;
    /// After it has returned, `changed` is not called any more. The pool is on no CPU then.
    virtual void stop() = 0;
    [[nodiscard]] virtual CpuSet usable() const = 0;

    /// The pool could use so many CPUs now, those that it has included. A demand that falls is told before
    /// what is given back with it, one that rises after.
    virtual void set_demand(int cpus) = 0;
    /// These were usable, and are not any more; nobody of the pool is on them now. Once for each loss.
    virtual void returned(const CpuSet& cpus) = 0;
    /// Those that were usable, are not any more, and have not been returned. Any thread, as usable(): some
    /// may have come and gone between two looks at that, and somebody waits for them all the same.
    [[nodiscard]] virtual CpuSet to_return() const { return {}; }
    /// Of those that are usable, what others wait for, who get what is given back. As usable(). Only where
    /// tells_awaited(): elsewhere such CPUs are taken away.
    [[nodiscard]] virtual CpuSet awaited() const { return {}; }
    [[nodiscard]] virtual bool tells_awaited() const { return false; }
    /// The pool has no use for these at present, and is not on them. Only where shares(). They are not usable
    /// until the provider says so again, which it does for as many as demand asks for beyond the rest.
    virtual void give_back(const CpuSet& cpus) = 0;
    /// Others can use what this pool gives back. Otherwise it keeps unused CPUs at hand.
    [[nodiscard]] virtual bool shares() const = 0;
};

}  // namespace heddle
