// prefetch_to_write(): asks for a line of memory that this thread is about to write and another one wrote
// last. Costs some cycles, waits for nothing, and may be given any address.
#pragma once

namespace heddle {

inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
    // The compiler's own asks for it to be read, where a processor without this has to be served.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

}  // namespace heddle
