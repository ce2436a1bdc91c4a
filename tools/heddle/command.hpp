// What a file of this folder provides: one subcommand of `heddle`.
//
// A command adds itself to the parser and is called back after parsing. It prints to stdout, and reports
// trouble by throwing heddle::Error (exit 1, one line on stderr), UsageError (exit 2) or ServiceAbsent (exit
// 69).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::tool {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kServiceAbsent = 69 };

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct ServiceAbsent : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The words of the command line behind the first "--", as they are: the parser takes those in brackets for
/// lists. Set before it parses.
inline std::vector<std::string> words_behind_dashes;

void add_bench(CLI::App& app);
void add_demo(CLI::App& app);
void add_eigen(CLI::App& app);
void add_info(CLI::App& app);
void add_memory(CLI::App& app);
void add_memory_checkpoint(CLI::App& memory);
void add_memory_files(CLI::App& memory);
void add_memory_server(CLI::App& memory);
void add_memory_status(CLI::App& memory);
void add_trace(CLI::App& app);
void add_trace_record(CLI::App& trace);
void add_run(CLI::App& app);
void add_snet(CLI::App& app);
void add_snet_looks(CLI::App& snet);
void add_snet_serve(CLI::App& snet);
void add_solve(CLI::App& app);
void add_status(CLI::App& app);
void add_top(CLI::App& app);

}  // namespace heddle::tool
