// What a sanitizer changes for a test: it keeps freed memory and takes several times as long, so that what a
// test says of bytes and milliseconds says nothing of heddle; ThreadSanitizer also has a thread of its own in
// every process, which wakes up. base/sanitizers.hpp knows how each compiler tells.
#pragma once

#include "base/sanitizers.hpp"

namespace heddle::test {

#ifdef HEDDLE_THREAD_SANITIZER
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#ifdef HEDDLE_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace heddle::test
