// output_of: runs a command to its end and keeps what it prints.
//
// Any thread. The command inherits the environment, the folder and stdin's absence: it reads /dev/null.
#pragma once

#include <string>
#include <vector>

namespace heddle {

struct Output {
    /// 128 + the signal's number where one killed it; -1 where nobody can tell, as this process has SIGCHLD
    /// ignored: then `errors` says so.
    int exit_code = 0;
    std::string text;    ///< of stdout
    std::string errors;  ///< of stderr
};

/// `command`: the program, looked for in PATH, and its arguments. Throws kUnavailable where there is no such
/// program, kSystem where none can be started.
[[nodiscard]] Output output_of(const std::vector<std::string>& command);

}  // namespace heddle
