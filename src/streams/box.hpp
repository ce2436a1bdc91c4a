// Box: what a network calls to compute.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "heddle/streams_box.hpp"
#include "streams/record.hpp"
#include "streams/syntax.hpp"

namespace heddle::streams {

using BoxValue = snet::BoxValue;

class BoxCall : public snet::BoxCall {
  public:
    [[nodiscard]] virtual const BoxDefinition& box() const = 0;
};

/// Called once a record; several calls may run at once, for different records, where BoxCalls say so, and
/// where a network has several of the box. What it throws fails the record.
using BoxFunction = std::function<void(BoxCall&)>;

/// How often one box of a network is called at once.
struct BoxCalls {
    int most = 1;
    bool ordered = true;  ///< what comes of a record leaves before what comes of the next
};

/// Finds the function of a box when a network is made; throws for one that is not there.
using BoxFinder = std::function<BoxFunction(const BoxDefinition&)>;

}  // namespace heddle::streams
