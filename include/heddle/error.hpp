// Error: what every throwing function of heddle throws.
//
// A code that a program can act on and a message for a person: what went wrong, where, and what to do.
// Expected outcomes (a CPU that is taken, a request that must wait) are never errors; they are [[nodiscard]]
// enums.
#pragma once

#include <stdexcept>
#include <string>

#include "heddle/export.hpp"

namespace heddle {

enum class ErrorCode {
    kInvalidArgument,  ///< the caller passed something that can never be right
    kBadInput,         ///< a file, a string or a variable that does not parse
    kPermission,       ///< the system or the policy forbids it
    kUnavailable,      ///< a service, a library or a device is absent
    kVersionMismatch,  ///< the peer speaks another version
    kLimit,            ///< a bound was reached
    kSystem,           ///< a system call failed
};

class HEDDLE_API Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  private:
    ErrorCode code_;
};

}  // namespace heddle
