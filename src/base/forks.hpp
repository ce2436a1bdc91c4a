// Whether this process is a child that was forked from the one in which something was made.
#pragma once

namespace heddle {

/// How many forks lie between this process and the one in which this function was called first. Any thread;
/// as cheap as a read.
[[nodiscard]] unsigned forks() noexcept;

}  // namespace heddle
