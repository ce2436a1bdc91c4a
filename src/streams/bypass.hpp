// Bypass: which records a part whose synchrocells have all fired lets through as they are.
//
// A stage of a star that has nothing left but to pass a record on need not be there for it: nobody can tell.
#pragma once

#include <vector>

#include "streams/typing.hpp"

namespace heddle::streams {

/// Of one part; any thread. Says no of parts that it does not look into: stars, splits, feedbacks, and nets
/// that have a signature or are observed.
class Bypass {
  public:
    Bypass(const Topology& part, const Typing& typing);
    [[nodiscard]] bool lets_through(const Record& record) const;

  private:
    enum class Kind { kAll, kNone, kAllOf, kBestOf };
    struct Branch;
    Kind kind_ = Kind::kNone;
    std::vector<Bypass> parts_;
    std::vector<Branch> branches_;
};

struct Bypass::Branch {
    Bypass inner;
    std::vector<LabelSet> takes;
};

}  // namespace heddle::streams
