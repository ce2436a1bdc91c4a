// kSanitized: this build carries a sanitizer, which keeps freed memory and takes several times as long. What
// a test says of bytes and milliseconds then says nothing of heddle.
#pragma once

namespace heddle::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace heddle::test
