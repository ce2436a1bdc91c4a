// The parts that a network is made of while it runs, and what they share.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/task.hpp"
#include "streams/flow.hpp"
#include "streams/matching.hpp"
#include "streams/network.hpp"
#include "streams/one_at_a_time.hpp"
#include "streams/pressure.hpp"
#include "streams/push_seat.hpp"
#include "streams/typing.hpp"

namespace heddle::trace {
class WorkLog;
}

namespace heddle::streams {

/// Where a part is: "main/merge*[3]/join". Lives as long as the network.
struct Path {
    const Path* outer = nullptr;
    std::string step;
    size_t depth = 0;
    /// Of a long one the beginning and the end.
    [[nodiscard]] std::string text() const;
};

class BoxPart;

/// A part that keeps records back, and is as new once it has nothing, or has fired. Any thread.
class Renewable {
  public:
    enum class Has { kNothing, kRecords, kFired };
    virtual ~Renewable() = default;
    [[nodiscard]] virtual Has has() = 0;
    /// Whether it can fire, once and for ever.
    [[nodiscard]] virtual bool fires() const { return false; }
    /// Of one that can: as new, or as one that has. No record lies in it, or is on its way to it.
    virtual void renew(bool /*fired*/) {}
};

/// What a part needs of its network. Any thread.
class Plant {
  public:
    /// Throws what the box finder throws, and kBadInput for a net that was only declared: before a record
    /// comes.
    Plant(const Program& its_program, NetworkOptions its_options);
    /// Waits for its tasks. What is left of the records goes where it is.
    ~Plant();
    Plant(const Plant&) = delete;
    Plant& operator=(const Plant&) = delete;

    /// The entry of a new part, whose records go to `exit` when they leave it. Its initialisers are called.
    /// `cells` are told of those in it.
    template <class Part>
    Inlet& build(const Part& part, Inlet& exit, const Path& path, std::vector<Renewable*>* cells = nullptr) {
        Found found;
        Inlet& made = make(part, exit, path, found);
        if (cells != nullptr) *cells = std::move(found.cells);
        start(found);
        return made;
    }
    /// What comes before a replica of a star.
    Inlet& make_stage(const Topology& star, Inlet& exit, const Path& path, size_t stage);
    const Path& path(const Path* outer, std::string step);

    /// Whether who calls is a task of the network, or one on top of it: all of them have begun (Pressure).
    [[nodiscard]] bool is_own_task();
    /// Runs it later, in a task that traces know by this name, which the plant outlives.
    void schedule(const char* name, std::function<void()> work);
    /// Of a record that cannot go on: what waits at its borders comes back to it first. Throws nothing that
    /// the function for dead letters throws: that stops the network.
    void fail(Record&& record, const Path& path, std::string_view why);
    /// In a catch block: of what was caught there. An empty record stands for what was under way behind a
    /// part, and is gone.
    void fail(Record&& record, const Path& path);
    /// Where nothing can go on: stops the network, also where there are dead letters. True for the first one,
    /// which is told.
    bool give_up(std::exception_ptr why);
    /// What is under way is dropped, and nobody waits before a queue any more.
    void stop() {
        stopped_ = true;
        pressure.stop();
    }
    [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
    /// True where the network stops: the record is counted as dropped.
    [[nodiscard]] bool drops(const Record& /*record*/) {
        if (!stopped()) return false;
        note_dropped(1);
        return true;
    }
    void note_dropped(uint64_t count) { dropped_.fetch_add(count, std::memory_order_relaxed); }
    /// Records that were under way when the network was stopped, as far as they were dropped by now.
    [[nodiscard]] uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
    /// Throws the first failure, once.
    void rethrow();
    void wait() { tasks_.wait(); }

    // Queues that hold more than the bound since they had to grow: the room is for what is under way.

    /// One more, or one less. Any thread.
    void note_overfull() { overfull_.fetch_add(1, std::memory_order_relaxed); }
    void note_relieved() {
        // seq_cst, as in wait_for_room(): it sees who waits, or who waits sees it.
        if (overfull_.fetch_sub(1, std::memory_order_seq_cst) == 1) pressure.emptied(entry_);
    }
    [[nodiscard]] bool is_overfull() const { return overfull_.load(std::memory_order_relaxed) > 0; }
    /// Before a record comes from outside, by who is not at work in the network. Throws kLimit as
    /// Pressure::wait() does.
    void wait_for_room();
    /// What is left in it is told of at the end.
    void note_cell(const Path& path, std::function<std::string()> what_is_left);
    [[nodiscard]] std::vector<std::string> remarks() const;
    /// That were made so far.
    [[nodiscard]] size_t part_count() const;

    const Program& program;
    const NetworkOptions options;
    const Typing typing;
    Pressure pressure;
    PushSeat seat{pressure};
    std::deque<std::string> task_names;  ///< that the runtime was told
    Runtime runtime;
    trace::WorkLog* const log;  ///< null: calls of boxes are not traced

  private:
    /// On the way through what is made.
    struct Found {
        std::vector<BoxPart*> initialisers;
        std::vector<Renewable*> cells;
    };
    struct BoxUse;
    Inlet& make(const Topology& part, Inlet& exit, const Path& path, Found& found);
    BoxPart& make_box(const Topology& part, BoxUse& use, Inlet& exit, const Path& path);
    Inlet& make(const NetDefinition& net, Inlet& exit, const Path& path, Found& found);
    static void start(const Found& found);
    /// True for the first one, which stops the network.
    bool note_failure(std::exception_ptr why);
    [[nodiscard]] Observe observer_of(const Metadata& metadata, const Path& path) const;
    template <class Part, class... Arguments>
    Part& keep(Arguments&&... arguments);
    void look_up_boxes(const Topology& part);
    void look_up_boxes(const NetDefinition& net);

    mutable std::mutex mutex_;
    std::deque<std::unique_ptr<Inlet>> parts_;
    std::deque<Path> paths_;
    struct BoxUse {
        BoxFunction function;
        BoxCalls calls;
        const char* queue_name;               ///< of the tasks that empty its queues, in traces
        std::vector<const BoxPart*> parts{};  ///< under counted_
    };
    /// While it lives, `heddle top` shows what a box has done.
    class Shown {
      public:
        Shown(std::string name, std::function<WorkCounts()> work);
        ~Shown();
        Shown(const Shown&) = delete;
        Shown& operator=(const Shown&) = delete;

      private:
        uint32_t number_;
    };
    void show_boxes();
    [[nodiscard]] WorkCounts work_of(const BoxUse& use) const;

    std::unordered_map<const BoxDefinition*, BoxUse> boxes_;  ///< all that the program can come to
    std::unordered_set<const NetDefinition*> looked_up_;
    std::vector<std::pair<const Path*, std::function<std::string()>>> cells_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};  ///< that there is one, to look at without the mutex
    std::atomic<bool> stopped_{false};
    std::atomic<uint64_t> dropped_{0};
    std::atomic<int> overfull_{0};
    Pressure::Gauge entry_{.bound = Pressure::kNeverGrows};
    mutable std::mutex counted_;
    OneAtATime<Record, std::string> letters_;
    Sequence tasks_;           // gone before what its tasks use
    std::deque<Shown> shown_;  // last: nobody asks any more when the rest goes
};

/// "no branch of this takes {a, <t=3>}: they take {b} or {c, <t>}".
[[nodiscard]] std::string no_way(const Record& record, const std::vector<LabelSet>& taken);

}  // namespace heddle::streams
