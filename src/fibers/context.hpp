// The switch of contexts: the few instructions beneath Fiber, and nobody else's business.
//
// Written in assembly for x86-64 (context_x86_64.S) and aarch64 (context_aarch64.S), on Boost.Context
// elsewhere (context_boost.cpp). A context is a flow of control that does not run: an address on its own
// stack, where its registers are. Valid until it is switched to. No state of its own; any thread.
#pragma once

#include "fibers/handoff.hpp"

#if !(defined(__x86_64__) || defined(__aarch64__)) || defined(__ILP32__)
#define HEDDLE_FIBERS_ON_BOOST
#endif

namespace heddle {

using Context = void*;

/// Boost's switch brings floating-point modes of its own along, on some processors.
#ifdef HEDDLE_FIBERS_ON_BOOST
inline constexpr bool kSwitchMayChangeModes = true;
#else
inline constexpr bool kSwitchMayChangeModes = false;
#endif

/// Saves the caller as *save and continues `to`. Returns when the caller is switched to, with what that
/// switch handed over; *save was written before. Called from Fiber::switch_to alone, which is not inlined: so
/// the processor predicts where it returns to (context_x86_64.S).
[[gnu::visibility("hidden")]] Handoff switch_context(Context* save, Context to,
                                                     Handoff handoff) __asm__("heddle_context_switch");

/// A context that, when switched to, calls fiber_main on the stack below `top`.
[[nodiscard, gnu::visibility("hidden")]] Context make_context(void* top,
                                                              void* fiber) __asm__("heddle_context_make");

/// Of fiber.cpp: where every fiber begins.
[[noreturn, gnu::visibility("hidden")]] void fiber_main(void* fiber, Handoff handoff) noexcept
    __asm__("heddle_fiber_main");

}  // namespace heddle
