#include "streams/renewable.hpp"

#include <algorithm>
#include <unordered_set>

namespace heddle::streams {
namespace {

using Seen = std::unordered_set<const NetDefinition*>;

/// Of the part, its nets and all parts in them, each net once.
template <class Holds>
bool any_of(const Topology& part, const Holds& holds, Seen& seen) {
    if (holds(part)) return true;
    if (part.net != nullptr && part.net->body && seen.insert(part.net).second &&
        any_of(*part.net->body, holds, seen))
        return true;
    return std::any_of(part.parts.begin(), part.parts.end(),
                       [&](const Topology& inner) { return any_of(inner, holds, seen); });
}

template <class Holds>
bool any_of(const Topology& part, const Holds& holds) {
    Seen seen;
    return any_of(part, holds, seen);
}

bool is_initialiser(const Topology& part) {
    return part.box != nullptr && part.box->is_initialiser;
}

}  // namespace

const Topology* cell_in(const Topology& repeating) {
    const Topology* inner = &repeating.parts[0];
    while (inner->kind == TopologyKind::kPlaced) inner = &inner->parts[0];
    return inner->kind == TopologyKind::kSync ? inner : nullptr;
}

bool keeps_nothing(const Topology& part) {
    return !any_of(
        part, [](const Topology& one) { return one.kind == TopologyKind::kSync || is_initialiser(one); });
}

bool is_renewable(const Topology& part) {
    return !any_of(part, is_initialiser);
}

bool has_queues(const Topology& part) {
    return any_of(part, [](const Topology& one) { return one.box != nullptr || one.ordered; });
}

}  // namespace heddle::streams
