// Finding: what is wrong with a program that can be read, where, why, and what to do about it.
//
// Values. The kinds are those that S-Net's own compiler lets pass.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "streams/syntax.hpp"

namespace heddle::streams {

enum class Hole {
    kUndelivered,   ///< a net does not make what its signature promises
    kMissingLabel,  ///< a part needs what no record that comes has
    kDeadBranch,    ///< no record ever takes it
    kDeadExit,      ///< nothing ever matches the pattern of a star or a feedback
    kTie,           ///< two branches fit equally well
    kEndless,       ///< what goes in never comes out
    kUndefined,     ///< a net is declared, and nothing says what it is made of
};

/// "undelivered", "missing-label" and so on.
[[nodiscard]] std::string_view name_of(Hole hole);

/// Of a net that has no body.
[[nodiscard]] std::string only_declared(const NetDefinition& net);

/// Another place that has to do with it.
struct Note {
    Place place;
    std::string message;
};

struct Finding {
    Hole hole;
    Place place;
    std::string message;
    std::vector<Note> notes;
    std::string fix;
    /// No record can be saved by labels that its type does not tell.
    bool sure = false;

    /// For people: each place with its line and a caret, then the fix.
    [[nodiscard]] std::string text() const;
};

}  // namespace heddle::streams
