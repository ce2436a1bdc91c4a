// The words of S-Net's resource server ("resserv"), a text protocol over TCP: { word numbers }, one or many
// in a row, in either direction. docs/RESSERV.md has all of them.
//
// No state but a buffer's; one thread at a time. What comes from a peer is bounded before it is looked at.
// Source: the public run-time system of S-Net, src/resource/PROTOCOL and its parser.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/machine.hpp"

namespace heddle::resserv {

/// Where it listens unless told otherwise.
inline constexpr int kPort = 56389;
/// The peer's sets of processors are one word each.
inline constexpr int kMostProcs = 64;
/// No message is longer, in bytes: its parser takes no more.
inline constexpr size_t kLongest = 10 * 1024;

/// Throws kBadInput.
[[noreturn]] void refuse(std::string_view why);

/// Takes bytes as they come, and gives whole messages.
class Messages {
  public:
    void append(std::string_view bytes) { buffer_ += bytes; }
    /// What is between the outer braces of the next one; nothing: it is not there yet. Throws kBadInput where
    /// there is something else, and kLimit for one that is too long.
    [[nodiscard]] std::optional<std::string> next();

  private:
    std::string buffer_;
};

/// Reads a message from its first word on.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}
    /// Letters, digits, '.' and '-'; empty: none follows.
    [[nodiscard]] std::string_view word();
    /// Nothing: none follows. Throws kBadInput for one above 1,000,000,000.
    [[nodiscard]] std::optional<int> number();
    [[nodiscard]] bool takes(char brace);
    [[nodiscard]] bool at_end();
    /// The numbers up to the end. Throws kBadInput for anything else.
    [[nodiscard]] std::vector<int> rest();

  private:
    void skip();
    std::string_view text_;
};

/// "{ grant 0 3 5 } \n".
[[nodiscard]] std::string message(std::string_view word, std::span<const int> numbers);

/// The first kMostProcs of the machine's CPUs that are in `among`, near ones beside each other: the place of
/// one is its logical number.
[[nodiscard]] std::vector<CpuPlace> procs_of(const Machine& machine, const CpuSet& among);
/// What a question for the topology is answered with: "{ system 0 hostname ... }".
[[nodiscard]] std::string system_text(std::string_view host, std::span<const CpuPlace> procs);
/// The CPUs of such an answer by their logical numbers; -1 where there is none of a number. Throws kBadInput.
[[nodiscard]] std::vector<int> procs_in(std::string_view message);

}  // namespace heddle::resserv
