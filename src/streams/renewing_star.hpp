// RenewingStar: a star whose replicas are used again, the stages behind each other their numbers.
//
// What a stage makes goes to the next one, or leaves. A stage whose cells have fired is there only while a
// record is in it that it does something with: others pass a whole range of such stages in one step.
#pragma once

#include "streams/bypass.hpp"
#include "streams/renewing_part.hpp"

namespace heddle::streams {

class RenewingStar final : public RenewingPart {
  public:
    RenewingStar(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;

  private:
    /// Before this stage.
    void arrive(Record&& record, int stage, Flow& flow);
    /// Under the mutex; the record is in it, and goes through none of the stages before. Throws kLimit where
    /// there may be no more, and what its parts throw while they are made.
    Replica& enter_stage_for(Record& record, int stage);
    void check_limits(Record& record, int stage) const;
    void leaves(Record&& record, int stage, Flow& flow) override;
    const Path& path_of_replica(size_t others) override;

    /// So many stages that keep nothing are left for the next record.
    static constexpr size_t kFew = 64;

    const std::vector<LabelSet> leaving_;
    const bool keeps_nothing_;
    const Bypass fired_stage_;
};

}  // namespace heddle::streams
