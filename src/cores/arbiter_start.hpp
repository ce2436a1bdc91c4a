// Starting the user's own arbiter where none listens, for programs that use the library without `heddle run`.
#pragma once

namespace heddle {

/// Has `heddle start`, found beside the library, start it, and returns when it listens; some 10 ms. The
/// program has a child for that long. Any thread. Throws kUnavailable with the reason.
void start_arbiter();

}  // namespace heddle
