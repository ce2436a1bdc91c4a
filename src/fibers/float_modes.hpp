// FloatModes: how a thread computes with floating-point numbers: rounding, denormals, which exceptions trap.
//
// A fiber keeps its own over a pause. A task may leave others behind than it found: the engine takes the
// modes of the program once, at its start, and applies them where a task begins. Reading costs a nanosecond;
// writing MXCSR costs up to a hundred, and is done only where a mode differs. The flags that say which
// exceptions have occurred are no modes: they stay with the thread. A value; any thread.
#pragma once

#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#endif

namespace heddle {

class FloatModes {
  public:
    /// Those of the calling thread.
    [[nodiscard]] static FloatModes current() noexcept { return FloatModes(read()); }

    /// Gives the calling thread these modes.
    void apply() const noexcept {
        const Registers now = read();
        if (((now.simd ^ registers_.simd) & kSimdModes) != 0)
            write_simd((now.simd & ~kSimdModes) | (registers_.simd & kSimdModes));
        if (now.x87 != registers_.x87) write_x87(registers_.x87);
    }

    [[nodiscard]] bool operator==(const FloatModes& other) const noexcept {
        return ((registers_.simd ^ other.registers_.simd) & kSimdModes) == 0 &&
               registers_.x87 == other.registers_.x87;
    }

  private:
    struct Registers {
        uint64_t simd = 0;  // MXCSR; FPCR; else the rounding of fegetround
        uint16_t x87 = 0;
    };
    explicit FloatModes(Registers registers) noexcept : registers_(registers) {}

#if defined(__x86_64__)
    static constexpr uint64_t kSimdModes = 0xffc0;  // the lower bits are flags
    static Registers read() noexcept {
        Registers now;
        __asm__ volatile("fnstcw %0" : "=m"(now.x87));
        now.simd = __builtin_ia32_stmxcsr();
        return now;
    }
    static void write_simd(uint64_t value) noexcept {
        __builtin_ia32_ldmxcsr(static_cast<uint32_t>(value));
    }
    static void write_x87(uint16_t value) noexcept {
        __asm__ volatile("fldcw %0" : : "m"(value));
    }
#elif defined(__aarch64__)
    static constexpr uint64_t kSimdModes = ~uint64_t{0};
    static Registers read() noexcept {
        Registers now;
        __asm__ volatile("mrs %0, fpcr" : "=r"(now.simd));
        return now;
    }
    static void write_simd(uint64_t value) noexcept {
        __asm__ volatile("msr fpcr, %0" : : "r"(value));
    }
    static void write_x87(uint16_t) noexcept {}
#else
    static constexpr uint64_t kSimdModes = ~uint64_t{0};
    static Registers read() noexcept {
        return {static_cast<uint64_t>(std::fegetround()), 0};
    }
    static void write_simd(uint64_t value) noexcept {
        std::fesetround(static_cast<int>(value));
    }
    static void write_x87(uint16_t) noexcept {}
#endif

    Registers registers_;
};

}  // namespace heddle
