#include "fibers/fiber.hpp"

#include <cxxabi.h>

#include <cassert>
#include <exception>
#include <utility>

namespace heddle {

Fiber::Fiber() : modes_(FloatModes::current()) {}

Fiber::Fiber(StackSpan stack, Entry entry, void* argument)
    : context_(make_context(stack.top, this)),
      modes_(FloatModes::current()),
      entry_(entry),
      argument_(argument),
      sanitizers_(stack.bottom, stack.top) {}

/// Changes what the thread keeps of a flow's state in memory and control registers from this fiber's to
/// `to`'s. Done before the switch, so that nothing need be found again after it, when the thread may be
/// another.
void Fiber::leave_for(Fiber& to) noexcept {
    auto* const exceptions = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
    exceptions_ = std::exchange(*exceptions, to.exceptions_);
    modes_ = FloatModes::current();
    if (!(modes_ == to.modes_)) to.modes_.apply();
}

void Fiber::switch_to(Fiber& from, Fiber& to, Handoff handoff) noexcept {
    assert(to.context_ != nullptr);  // it would run already
    from.leave_for(to);
    from.sanitizers_.leave_for(to.sanitizers_);
    const Handoff arrived = switch_context(&from.context_, std::exchange(to.context_, nullptr), handoff);
    from.sanitizers_.arrive();
    if constexpr (kSwitchMayChangeModes) from.modes_.apply();
    if (arrived.run != nullptr) arrived.run(arrived.argument);
}

void Fiber::exit_to(Fiber& from, Fiber& to, Handoff handoff) noexcept {
    from.sanitizers_.ends();
    switch_to(from, to, handoff);
    std::terminate();  // somebody resumed what had ended
}

void fiber_main(void* fiber, Handoff handoff) noexcept {
    Fiber& self = *static_cast<Fiber*>(fiber);
    self.sanitizers_.arrive();
    if constexpr (kSwitchMayChangeModes) self.modes_.apply();
    if (handoff.run != nullptr) handoff.run(handoff.argument);
    self.entry_(self.argument_);
    std::terminate();  // an entry leaves by exit_to
}

}  // namespace heddle
