// What a sanitizer changes for a test: it keeps freed memory and takes several times as long, so that what a
// test says of bytes and milliseconds says nothing of heddle; ThreadSanitizer also has a thread of its own in
// every process, which wakes up.
#pragma once

namespace heddle::test {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace heddle::test
