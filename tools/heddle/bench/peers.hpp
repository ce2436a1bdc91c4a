// The peers: ways to run the same programs side by side.
//
// A peer is data and one function that dresses a bare command: what it runs under, with which variables, on
// which CPUs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "host.hpp"
#include "process.hpp"

namespace heddle::bench {

struct Peer {
    std::string_view name;
    std::string_view meaning;
};

/// os, active, passive, static, dlb, heddle.
[[nodiscard]] std::span<const Peer> peers();

/// One of `jobs` programs that run together.
struct Position {
    size_t job = 0;
    size_t jobs = 1;
};

/// Why this peer cannot run the command on this host, or "".
[[nodiscard]] std::string why_not(std::string_view peer, const Command& bare, const Host& host);

/// The command as the peer runs it. Only where why_not() is "".
[[nodiscard]] Command dress(std::string_view peer, Command bare, Position position, const Host& host);

/// Removes what a peer's ended programs may have left, as after a cut; before and after a run.
void clean_up(std::string_view peer);

}  // namespace heddle::bench
