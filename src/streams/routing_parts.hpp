// The parts that decide where a record goes, or make new ones of it: they run in the flow that brings it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <vector>

#include "streams/cells.hpp"

namespace heddle::streams {

/// A part that stands for one of the program's.
class TopologyPart : public Inlet {
  public:
    TopologyPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
        : plant_(plant), part_(part), exit_(exit), path_(path) {}

  protected:
    Plant& plant_;
    const Topology& part_;
    Inlet& exit_;
    const Path& path_;
};

class FilterPart final : public TopologyPart {
  public:
    FilterPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;

  private:
    /// Of an output, in the order of its labels.
    using Values = boost::container::small_vector<snet::BoxValue, 4>;
    /// Throws kBadInput for a value that is no int, and a field that the record has not.
    [[nodiscard]] Values values_of(const OutputRecord& output, const Record& from) const;
    static void set_all(Record& record, const OutputRecord& output, Values&& values);
    [[nodiscard]] Record made(const OutputRecord& output, Values&& values, const Record& from) const;

    const LabelSet pattern_;
};

/// The best fitting branch; ties go to the first.
class ChoicePart final : public Inlet {
  public:
    struct Branch {
        Inlet* entry;
        std::vector<LabelSet> takes;
    };
    ChoicePart(Plant& plant, std::vector<Branch> branches, const Path& path)
        : plant_(plant), branches_(std::move(branches)), path_(path) {}
    void take(Record&& record, Flow& flow) override;

  private:
    Plant& plant_;
    const std::vector<Branch> branches_;
    const Path& path_;
};

/// Once each slot has a record, one record leaves; then the cell is the identity.
class SyncPart final : public TopologyPart, public Renewable {
  public:
    SyncPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;
    [[nodiscard]] Has has() override;
    [[nodiscard]] bool fires() const override { return true; }
    void renew(bool fired) override;

  private:
    std::vector<LabelSet> patterns_;
    std::mutex mutex_;
    Cell cell_;
    bool done_ = false;
};

/// Before a replica of a star that keeps them: what matches leaves, the rest goes on into the replica, which
/// is made for the first.
class StarPart final : public TopologyPart {
  public:
    StarPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path, size_t stage);
    void take(Record&& record, Flow& flow) override;

  private:
    void make_replica();

    const size_t stage_;
    std::vector<LabelSet> leaving_;
    std::once_flag made_;
    Inlet* replica_ = nullptr;
};

/// Behind the inner part of a feedback: what matches goes back.
class FeedbackPart final : public TopologyPart {
  public:
    FeedbackPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;
    void goes_back_to(Inlet& inner) { inner_ = &inner; }

  private:
    /// Throws kLimit for one too many.
    void count_turn(Record& record, const Flow& flow) const;

    std::vector<LabelSet> back_;
    Inlet* inner_ = nullptr;
};

/// A replica for each value of a tag. Where replicas keep nothing of the records that passed (no synchrocell
/// is in them), nobody can tell them apart: then the first values have one each, and the others share some.
class SplitPart final : public TopologyPart {
  public:
    SplitPart(Plant& plant, const Topology& part, Inlet& exit, const Path& path, bool shares)
        : TopologyPart(plant, part, exit, path), shares_(shares) {}
    void take(Record&& record, Flow& flow) override;

  private:
    static constexpr size_t kMostOwn = 1024, kShared = 256;
    /// Throws kLimit where there may be no more, and what its parts throw while they are made.
    Inlet& replica_for(int value);

    const bool shares_;
    std::mutex mutex_;
    std::unordered_map<int, Inlet*> replicas_;
    std::vector<Inlet*> shared_;  ///< by the value's remainder
};

/// Into a net with a signature: labels that it does not name wait at its border.
class NetEntry final : public Inlet {
  public:
    NetEntry(Plant& plant, std::vector<LabelSet> takes, Inlet& body, const Path& path)
        : plant_(plant), takes_(std::move(takes)), body_(body), path_(path) {}
    void take(Record&& record, Flow& flow) override;

  private:
    Plant& plant_;
    const std::vector<LabelSet> takes_;
    Inlet& body_;
    const Path& path_;
};
/// Out of it: they come back.
class NetExit final : public Inlet {
  public:
    explicit NetExit(Inlet& exit) : exit_(exit) {}
    void take(Record&& record, Flow& flow) override;

  private:
    Inlet& exit_;
};

/// A net that is made when the first record comes: it uses itself.
class LazyNet final : public Inlet, public Renewable {
  public:
    LazyNet(Plant& plant, const NetDefinition& net, Inlet& exit, const Path& path)
        : plant_(plant), net_(net), exit_(exit), path_(path) {}
    void take(Record&& record, Flow& flow) override;
    /// What has fired in it is kept.
    [[nodiscard]] Has has() override;

  private:
    Plant& plant_;
    const NetDefinition& net_;
    Inlet& exit_;
    const Path& path_;
    std::once_flag made_;
    Inlet* body_ = nullptr;
    std::vector<Renewable*> cells_;
};

/// Where order is kept: each record takes a turn.
class OrderedEntry final : public Inlet {
  public:
    OrderedEntry(TurnKeeper& keeper) : keeper_(keeper) {}
    void take(Record&& record, Flow& flow) override;
    void goes_on_to(Inlet& inner) { inner_ = &inner; }

  private:
    TurnKeeper& keeper_;
    Inlet* inner_ = nullptr;
    std::atomic<uint64_t> next_{0};
};
/// Records leave by their turns; those whose turn has not come wait. Who brings more of them than a queue
/// holds waits, too.
class OrderedExit final : public Inlet, public TurnKeeper, public Deferred {
  public:
    OrderedExit(Plant& plant, Inlet& exit, const Path& path) : plant_(plant), exit_(exit), path_(path) {
        gauge_.bound = plant.options.queue_bound;
        gauge_.counts = false;  // it can depend on who is fast
    }
    void take(Record&& record, Flow& flow) override;
    void over(uint64_t number, TurnReference outer, Flow* here) noexcept override;
    /// Releases those whose turn has come.
    void go_on(Flow& flow) noexcept override;

  private:
    void release_waiting(Flow& flow);
    /// In a catch block.
    void give_up() noexcept;
    void end_release();
    // Under the lock.
    void note_over(uint64_t number);
    /// The turn of the next one that is not over, or has records here. False: it is that one's.
    [[nodiscard]] bool advance();
    /// Where the network stops.
    void drop_waiting() noexcept;

    Plant& plant_;
    Inlet& exit_;
    const Path& path_;
    ShortLock lock_;
    uint64_t now_ = 0;                                 ///< whose turn it is
    std::map<uint64_t, std::vector<Record>> waiting_;  ///< from now_ on; with the turns around them
    /// From now_ on, those whose turns are over: their first and the one behind the last.
    std::map<uint64_t, uint64_t> over_;
    bool releasing_ = false;
    size_t count_ = 0;  ///< of records that wait
    Pressure::Gauge gauge_;
};

}  // namespace heddle::streams
