#include "streams/finding.hpp"

#include <fmt/format.h>

namespace heddle::streams {

std::string_view name_of(Hole hole) {
    switch (hole) {
        case Hole::kUndelivered:
            return "undelivered";
        case Hole::kMissingLabel:
            return "missing-label";
        case Hole::kDeadBranch:
            return "dead-branch";
        case Hole::kDeadExit:
            return "dead-exit";
        case Hole::kTie:
            return "tie";
        case Hole::kEndless:
            return "endless";
        case Hole::kUndefined:
            return "undefined";
    }
    return "";
}

std::string only_declared(const NetDefinition& net) {
    return fmt::format(
        "the net \"{0}\" is only declared, and no file {0}.snet beside this one says what it is made of",
        net.name);
}

std::string Finding::text() const {
    std::string text = place.source->report(place, fmt::format("{} [{}]", message, name_of(hole)));
    for (const Note& note : notes)
        text += fmt::format("\n{}", note.place.source->report(note.place, note.message));
    if (!fix.empty()) text += fmt::format("\n    fix: {}", fix);
    return text;
}

}  // namespace heddle::streams
