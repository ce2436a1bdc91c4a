// spin_pause(): tells the processor that this thread looks at a word again and again.
#pragma once

namespace heddle {

/// Static, because the explorer's tests link two compilations of it (tests/explored).
static inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

}  // namespace heddle
