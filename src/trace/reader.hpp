// Reads a trace from its form on disk (docs/TRACE.md), which anybody may have written.
//
// Free functions without state. Every size is bounded. Accepted with a warning: a torn last line, as a killed
// recorder leaves it. Events out of order are sorted; those of the same time keep their order. Anything else
// that docs/TRACE.md does not allow is an Error that names file and line.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/trace.hpp"

namespace heddle::trace {

struct ReadLimits {
    size_t max_header_bytes = size_t{4} << 20;
    size_t max_line_bytes = size_t{64} << 10;
    size_t max_events = 20'000'000;
    size_t max_clients = 65'536;
};

/// `name` stands for the stream in messages. Throws kBadInput, kVersionMismatch and kLimit.
[[nodiscard]] Trace read(std::istream& in, const std::string& name, const ReadLimits& limits = {});
/// Throws kSystem too, where the file cannot be read.
[[nodiscard]] Trace read_file(const std::string& path, const ReadLimits& limits = {});

}  // namespace heddle::trace
