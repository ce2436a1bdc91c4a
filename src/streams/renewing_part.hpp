// RenewingPart: what splits and stars have in common that use their replicas again.
//
// A replica that no record is in, and in which nothing lies, differs from a new one by the synchrocells of it
// that have fired. So it need not stay its number's: that of a split's value, or of a star's stage. What
// comes for the number later gets a replica that is free, renewed to what the number's was. What is left of a
// million numbers is as many replicas as there were at once, and ranges of numbers in which the same has
// fired.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "streams/kept_states.hpp"
#include "streams/routing_parts.hpp"

namespace heddle::streams {

class RenewingPart : public TopologyPart, public Renewable {
  public:
    ~RenewingPart() override;
    [[nodiscard]] Has has() override;

  protected:
    RenewingPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    class Replica;
    /// Null: the number has none now. Under the mutex; one more record is in it, which is to be passed.
    Replica* enter_known(int number);
    /// The same for one that has none. Throws what its parts throw while they are made.
    Replica& enter_another(int number);
    static void pass(Replica& replica, Record&& record, Flow& flow);
    /// Under the mutex: numbers whose replicas nobody is in any more have none then, where nothing lies in
    /// them.
    void renew_those_left();
    /// Replicas that are not free. Under the mutex.
    [[nodiscard]] size_t in_use() const { return replicas_.size(); }
    /// A record has come out of a number's replica. Any thread.
    virtual void leaves(Record&& record, int number, Flow& flow) = 0;
    /// Where the replica is that was made after so many others.
    [[nodiscard]] virtual const Path& path_of_replica(size_t others) = 0;

    std::mutex mutex_;
    KeptStates states_;  ///< of numbers that have no replica; under the mutex

  private:
    Replica& make_replica();
    void renew_looked_at();

    const bool has_queues_;
    std::vector<std::unique_ptr<Replica>> all_;
    std::unordered_map<int, Replica*> replicas_;
    std::vector<Replica*> free_;
    std::vector<Replica*> looked_at_;  ///< empty between two calls, or what one had no memory for
    std::mutex left_mutex_;            ///< after the other one
    std::vector<Replica*> left_;       ///< that became empty since it was looked at; each once
};

}  // namespace heddle::streams
