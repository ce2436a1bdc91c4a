// What parts of a program keep of the records that passed: which replicas nobody can tell apart, and which
// can be used again once no record is in them.
#pragma once

#include "streams/syntax.hpp"

namespace heddle::streams {

/// The synchrocell that is all of what a star or split repeats; null: there is something else.
[[nodiscard]] const Topology* cell_in(const Topology& repeating);
/// Whether what a record finds in it depends on no record before; an initialiser would send again.
[[nodiscard]] bool keeps_nothing(const Topology& part);
/// Whether all that it keeps back lies in parts that are Renewable.
[[nodiscard]] bool is_renewable(const Topology& part);
/// Whether a record may lie in it until another flow goes on with it: before a box, or where order is kept.
[[nodiscard]] bool has_queues(const Topology& part);

}  // namespace heddle::streams
