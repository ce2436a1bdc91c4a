// RenewingSplit: a split of a net with synchrocells in it, whose replicas are used again.
//
// A replica that no record is in, and in which nothing lies, is either as new or one whose synchrocells have
// all fired, which is the same for ever. So it need not stay its value's: what comes later with a value that
// has fired goes to one replica for all of these, and the replica is renewed for another value. What is left
// of a million values is as many replicas as there were at once, and the ranges of values that have fired.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "streams/routing_parts.hpp"

namespace heddle::streams {

class RenewingSplit final : public TopologyPart {
  public:
    RenewingSplit(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    ~RenewingSplit() override;
    void take(Record&& record, Flow& flow) override;

  private:
    class Replica;
    /// Under the mutex; one more record is in it. Throws kLimit where there may be no more, and what its
    /// parts throw while they are made.
    Replica& enter_replica_for(int value);
    Replica& make_replica();
    /// Under the mutex: those that nobody is in any more.
    void renew_those_left();

    std::mutex mutex_;
    std::vector<std::unique_ptr<Replica>> all_;
    std::unordered_map<int, Replica*> replicas_;
    std::vector<Replica*> free_;
    Replica* fired_ = nullptr;  ///< for all values that have fired
    ValueRanges fired_values_;
    std::mutex left_mutex_;       ///< after the other one
    std::vector<Replica*> left_;  ///< that became empty since it was looked at; each once
};

}  // namespace heddle::streams
