// RenewingSplit: a split of a net that keeps something back, whose replicas are used again.
#pragma once

#include "streams/renewing_part.hpp"

namespace heddle::streams {

/// Numbers are the tag's values.
class RenewingSplit final : public RenewingPart {
  public:
    RenewingSplit(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
        : RenewingPart(plant, part, exit, path) {}
    void take(Record&& record, Flow& flow) override;

  private:
    /// Under the mutex; one more record is in it. Throws kLimit where there may be no more, and what its
    /// parts throw while they are made.
    Replica& enter_replica_for(int value);
    void leaves(Record&& record, int value, Flow& flow) override;
    const Path& path_of_replica(size_t others) override;
};

}  // namespace heddle::streams
