// Cell: what one synchrocell holds; and the parts that hold many of them, where a part for each would pile
// up.
//
// A star of a synchrocell and a split of one are not built of replicas: the one keeps a list of the cells
// that are not full yet (FRONT's "zipper"), the other one a cell for each value. A cell that has fired is the
// identity for ever: nothing of it stays in a list, and of a value only that it was seen.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <unordered_map>

#include "streams/parts.hpp"

namespace heddle::streams {

/// Ints, as ranges: what lies close together takes little.
class ValueRanges {
  public:
    void add(int value);
    void remove(int value);
    [[nodiscard]] bool contains(int value) const;
    /// Of the range that this value is in.
    [[nodiscard]] int last_of(int value) const;
    /// Of values.
    [[nodiscard]] uint64_t count() const { return count_; }

  private:
    /// Which the value is in, or the end.
    [[nodiscard]] std::map<int, int>::const_iterator range_of(int value) const;

    std::map<int, int> ranges_;  ///< the first and the last value of each
    uint64_t count_ = 0;
};

/// For one thread at a time. Does not know its patterns, which many cells share.
class Cell {
  public:
    explicit Cell(size_t slots) : slots_(slots) {}
    /// Copied into each empty slot whose pattern it matches; false: into none. Throws what a guard throws,
    /// and has kept nothing then.
    bool take(const std::vector<Pattern>& patterns, const std::vector<LabelSet>& sets, const Record& record);
    [[nodiscard]] bool full() const { return filled_ == slots_.size(); }
    [[nodiscard]] size_t filled() const { return filled_; }
    /// Of a full one: all of the first slot's record, of the others what their patterns name, and this turn.
    [[nodiscard]] Record merged(const std::vector<LabelSet>& sets, TurnReference turn);

  private:
    std::vector<std::optional<Record>> slots_;
    size_t filled_ = 0;
};

/// A star whose inner part is a synchrocell.
class ZipperPart final : public Inlet, public Renewable {
  public:
    ZipperPart(Plant& plant, const Topology& star, const Topology& cell, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;
    [[nodiscard]] Has has() override;

  private:
    /// False: it lies in a cell; else it is what leaves.
    bool through_cells(Record& record);
    [[nodiscard]] Error passes_for_ever(const Record& record, const char* why) const;

    Plant& plant_;
    const Topology &star_, &cell_;
    Inlet& exit_;
    const Path& path_;
    const std::vector<LabelSet> leaving_, sets_;
    std::mutex mutex_;
    std::list<Cell> cells_;
};

/// A split whose inner part is a synchrocell.
class JoinPart final : public Inlet, public Renewable {
  public:
    JoinPart(Plant& plant, const Topology& split, const Topology& cell, Inlet& exit, const Path& path);
    void take(Record&& record, Flow& flow) override;
    [[nodiscard]] Has has() override;

  private:
    /// False: it lies in a cell; else it is what leaves.
    bool through_cell(int value, Record& record);

    Plant& plant_;
    const Topology &split_, &cell_;
    Inlet& exit_;
    const Path& path_;
    const std::vector<LabelSet> sets_;
    std::mutex mutex_;
    std::unordered_map<int, Cell> cells_;
    ValueRanges fired_;
};

/// Throws kLimit, with the number of those that there are.
[[noreturn]] void refuse_another_replica(size_t count);

[[nodiscard]] std::vector<LabelSet> sets_of(const std::vector<Pattern>& patterns);
[[nodiscard]] bool matches_any(const std::vector<Pattern>& patterns, const std::vector<LabelSet>& sets,
                               const Record& record);

}  // namespace heddle::streams
