// Waits that are refused, as where there is no memory for another stack.
#pragma once

namespace heddle::test {

/// While it lives, block() throws kLimit in the explorer's thread that has made it, unless the condition was
/// signalled already. One at a time.
class RefusedWaits {
  public:
    RefusedWaits();
    ~RefusedWaits();
    RefusedWaits(const RefusedWaits&) = delete;
    RefusedWaits& operator=(const RefusedWaits&) = delete;
};

}  // namespace heddle::test
