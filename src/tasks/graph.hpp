// Graph: finds what each task has to wait for, from the data that it and the tasks before it name.
//
// One for a runtime; engines without a graph of their own stand on it. Any thread adds, one at a time under a
// short lock: between two tasks that share several data there is one order, never two. Ending a task takes no
// lock. What orders tasks: a reader follows the last writer; a writer follows all readers since the last
// writer, or that writer. Tasks that commute(), or redux() by the same function, are like readers among
// themselves (sharing.hpp has what else they need); between those and readers stands a join, a task without a
// body, so that each of the ones follows all of the others by one edge. Data are looked up in a Domain: that
// of the tasks that no task inserted, and one for the children of each task, who are ordered among themselves
// alone.
//
// To find the order takes longer than a fine task does, and is of use only where two threads could run tasks
// at once. So tasks may stand in line first, in the order of their insertion. While nothing else is in the
// graph, the first in line runs, then the next: that order is right whatever they name, and none of them is
// ever entered. When somebody else looks for work, the one that runs is entered as it is, and those behind it
// are as they are asked for. Whatever cannot stand in line makes all that do so enter before it. Who inserts
// comes to the end of the line, under a lock of its own; who looks takes what has come there all at once.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/prefetch.hpp"
#include "cores/biased_lock.hpp"
#include "cores/short_lock.hpp"
#include "tasks/sharing.hpp"
#include "tasks/task_memory.hpp"

namespace heddle {

/// Who used a datum last, in one domain.
struct LastUses {
    TaskRef writer;
    std::vector<TaskRef> readers;           ///< since that writer
    AccessMode kind = AccessMode::kIn;      ///< of those; they are all of one
    std::unique_ptr<Sharing> sharing = {};  ///< made with the first task that commutes or reduces

    /// Room for so many more readers; those that have ended make it, unless they are kept.
    void make_room(size_t count, bool keep_ended);
    /// With no readers any more.
    void change_kind(AccessMode to) noexcept;
};

struct DagLog;

class Domain {
  public:
    /// `parent`: the sequence of the task whose children these are; null at the root.
    /// `below_data`: that task, or one above it, names data, so that others may come after it.
    explicit Domain(std::shared_ptr<SequenceState> parent, bool below_data = false)
        : parent_(std::move(parent)), is_root_(parent_ == nullptr), below_data_(below_data) {}
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;
    [[nodiscard]] bool is_root() const noexcept { return is_root_; }
    /// Null at the root alone.
    [[nodiscard]] std::shared_ptr<SequenceState> parent() const noexcept;
    [[nodiscard]] bool below_data() const noexcept { return below_data_; }
    /// Sequences above that nobody can wait for any more are none of its parents any more: tasks of which
    /// each leaves the next behind would keep all of them for good.
    void leave_ended_parents() noexcept;
    /// Under the graph's lock: a task of this domain, not the root, has used it.
    [[nodiscard]] bool knows(const DataState& data) const { return uses_.contains(&data); }
    /// Not at the root, and never to null.
    void set_parent(std::shared_ptr<SequenceState> parent) noexcept;
    /// Under the graph's lock. Throws std::bad_alloc.
    [[nodiscard]] LastUses& of(DataState& data);
    /// The same for a datum that a task of this domain uses.
    [[nodiscard]] LastUses& known(DataState& data) noexcept;

  private:
    mutable ShortLock parent_lock_;
    std::shared_ptr<SequenceState> parent_;  // children may live longer than their parent's sequence is used
    const bool is_root_;
    const bool below_data_;
    std::unordered_map<const DataState*, LastUses> uses_;  // not at the root, where data have it themselves
};

/// What a thread has of its own in a Graph.
struct GraphSeat {
    BiasedLock::Key key, at_end;    ///< for the graph's lock, and that of the end of the line
    std::atomic<uint64_t> left{0};  ///< tasks that were entered and ended here; written by the thread alone
};

class Graph {
  public:
    /// Joins are records of this memory.
    explicit Graph(TaskMemory& memory) : memory_(memory) {}

    /// A task with accesses stands in line, where next_in_line() finds it; `number` is how many have done so
    /// that are counted there, under the lock of the line's end. False: it is one that cannot, and add() is
    /// for it. Its data are to be there until it has ended.
    [[nodiscard]] bool stand(GraphSeat& seat, Task& task, const Domain& domain,
                             std::atomic<uint64_t>& number) noexcept {
        if (!stands(task, domain) || watched()) return false;
        const BiasedLock::Guard guard(end_lock_, seat.at_end);
        end_.append(task);
        came_.store(came_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return true;
    }
    /// Enters a task with accesses. True: nothing is before it; otherwise finish() of another task returns
    /// it. Throws std::bad_alloc, and has not taken the task then.
    [[nodiscard]] bool add(TaskMemory::Cache& cache, GraphSeat& seat, Task& task, Domain& domain);
    /// The same for one without accesses, of which somebody who watches is told.
    void add_alone(Task& task) noexcept {
        if (watched()) [[unlikely]]
            tell_alone(task);
    }
    /// The task has run, and was not started in line. Returns those that were waiting for it alone, linked by
    /// `next`. Of these admit() says who may run.
    [[nodiscard]] static Task* finish(Task& task, GraphSeat& seat) noexcept {
        return task.accesses == 0 ? nullptr : finish_entered(task, seat);
    }

    /// The task is about to run: what finish() will write in those that follow it is asked for meanwhile.
    static void fetch_followers(const Task& task) noexcept {
        constexpr int kMost = 8;
        const Edge* edge = task.successors.load(std::memory_order_acquire);
        for (int i = 0; i < kMost && edge != nullptr && edge != Task::closed(); ++i, edge = edge->next)
            prefetch_to_write(&edge->to->waits_for);
    }

    /// How many stand in line, or did when somebody entered them and could run: next_in_line() is worth a
    /// call. A hint; exact for whom a fence orders after stand().
    [[nodiscard]] uint32_t in_line() const noexcept {
        // acquire: those that have gone have come.
        const uint32_t gone = gone_.load(std::memory_order_acquire);
        return came_.load(std::memory_order_relaxed) - gone;
    }
    /// Tasks that were started in the order of the line so far. A hint.
    [[nodiscard]] uint32_t started_in_line() const noexcept {
        return started_.load(std::memory_order_relaxed);
    }
    /// Tasks out of the line that could run, linked by `next`: one that begins the order of the line, where
    /// `left`() says that all have left that were entered; else at most `most` of so many as are entered for
    /// it. Null: there is none now. Where memory is short, those in line stay there.
    template <class Left>
    [[nodiscard]] Task* next_in_line(GraphSeat& seat, uint32_t most, const Left& left) noexcept {
        if (in_line() == 0) return nullptr;
        const BiasedLock::Guard guard(lock_, seat.key);
        if (found_.first != nullptr) return take_found(most);
        if (in_order_ == nullptr) {
            if (!any_in_line(seat)) return nullptr;
            if (left() == entered_) return &start_in_order();
        }
        return find_in_line(seat, most);
    }
    /// A task with Task::in_order has run. True: it was never entered; `next` is the one behind it, which is
    /// to be run then, or null. False: finish() is still to be called.
    [[nodiscard]] bool end_in_order(GraphSeat& seat, Task& task, Task*& next) noexcept {
        task.in_order = false;
        const BiasedLock::Guard guard(lock_, seat.key);
        if (in_order_ != &task) return false;
        in_order_ = nullptr;
        next = any_in_line(seat) ? &start_in_order() : nullptr;
        return true;
    }

    /// A task with Task::in_order is not to be run yet. True: it is the first in line again. False: it was
    /// entered meanwhile, and could run.
    [[nodiscard]] bool put_back(GraphSeat& seat, Task& task) noexcept;

    /// Of a domain that is not the root.
    [[nodiscard]] bool knows(const Domain& domain, const DataState& data) {
        const std::lock_guard guard(lock_);
        return domain.knows(data);
    }

    /// Those that follow one that has not ended, near or far, as joins do: at most so many. They are there
    /// until that one ends. Enters all that stand in line. Throws std::bad_alloc.
    [[nodiscard]] std::vector<Task*> followers(Task& task, size_t most);

    /// Tells of all that it finds from now on. While no task is in it, as the next one.
    void watch(DagLog& log) noexcept;
    void stop_watching(const DagLog& log) noexcept;
    [[nodiscard]] bool watched() const noexcept { return watchers_ != nullptr; }
    /// While nothing more is told.
    template <class Look>
    [[nodiscard]] auto told(const Look& look) {
        const std::lock_guard guard(lock_);
        return look();
    }

    /// For a task with a special before which nothing is: may it run? False: it waits for its turn, and
    /// end_turns() will return it; or it was a join, and those that come after it were put into `next`.
    [[nodiscard]] bool admit(TaskMemory::Cache& cache, Task& task, Task*& next) noexcept;
    /// A task that commutes has run. Returns those that have all their turns now, linked by `next`.
    [[nodiscard]] Task* end_turns(Task& task) noexcept;

    /// For engines that order tasks themselves: each that reduces is a group of its own. Throws
    /// std::bad_alloc.
    void reduce_alone(Task& task);

    // For recorded tasks, whose order is known, in a domain of their own.

    /// Data that some of them share. Throws std::bad_alloc.
    void share(Domain& domain, DataState& data);
    /// Before a replay: what an earlier one may have left behind.
    void forget_groups(Domain& domain, DataState& data) noexcept;
    /// So many of them will reduce. Throws std::bad_alloc.
    void start_group(Domain& domain, DataState& data, const detail::Reduction* reduction, uint32_t number,
                     uint32_t members);

    /// Before a task that reduces runs, or is cancelled.
    static void begin_reducing(Task& task) noexcept;
    /// For a task that runs, in an access with redux(): a copy that nobody else uses, as others left it or
    /// newly filled with the neutral element. Throws kLimit.
    [[nodiscard]] const detail::DataView& private_copy(Task& task, Access& access,
                                                       const detail::Reduction& reduction,
                                                       const void* neutral);
    /// A task that reduces has run, or never will. The last of its group combines what all have done into the
    /// data; throws what the function throws.
    void end_reducing(Task& task);

  private:
    /// By `next`, in the order in which they came.
    struct List {
        Task *first = nullptr, *last = nullptr;
        void append(Task& task) noexcept {
            task.next = nullptr;
            (first == nullptr ? first : last->next) = &task;
            last = &task;
        }
        void prepend(Task& task) noexcept {
            task.next = first;
            if (first == nullptr) last = &task;
            first = &task;
        }
        [[nodiscard]] Task& pop() noexcept {
            Task& task = *first;
            first = task.next;
            task.next = nullptr;
            return task;
        }
    };

    /// Is the order of insertion all that there is to say about its turn? And are its data there until it has
    /// ended, so that it may be entered until then? What is destroyed with a task may be the last to hold
    /// them.
    [[nodiscard]] static bool stands(const Task& task, const Domain& domain) noexcept {
        return task.accesses > 0 && domain.is_root() && task.priority == 0 &&
               (task.special & ~(kToldOfCancel | kAwaitsFutures)) == 0;
    }
    /// `held`: 0 for who keeps its data until this returns, as who inserts it does; else 1: it does not run
    /// before this has done with them.
    [[nodiscard]] bool enter(TaskMemory::Cache& cache, Task& task, Domain& domain, int32_t held);
    /// The running one and so many of those behind it.
    void enter_line(GraphSeat& seat, uint32_t most = std::numeric_limits<uint32_t>::max());
    /// Takes what has come meanwhile, where there is nothing else.
    [[nodiscard]] bool any_in_line(GraphSeat& seat) noexcept {
        if (line_.first == nullptr && came_.load(std::memory_order_relaxed) != taken_) take_end(seat);
        return line_.first != nullptr;
    }
    [[gnu::noinline]] void take_end(GraphSeat& seat) noexcept;
    [[nodiscard]] Task& start_in_order() noexcept {
        Task& task = line_.pop();
        count_gone(1);
        started_.store(started_in_line() + 1, std::memory_order_relaxed);
        task.in_order = true;
        in_order_ = &task;
        return task;
    }
    [[nodiscard]] Task* find_in_line(GraphSeat& seat, uint32_t most) noexcept;
    [[nodiscard]] Task* take_found(uint32_t most) noexcept;
    void count_gone(int32_t more) noexcept {
        gone_.store(gone_.load(std::memory_order_relaxed) + static_cast<uint32_t>(more),
                    std::memory_order_release);
    }

    [[nodiscard]] static Task* finish_entered(Task& task, GraphSeat& seat) noexcept;
    template <class Tell>
    void tell_watchers(const Tell& tell) const noexcept;
    void tell_alone(Task& task) noexcept;
    void tell(const Task& task, Domain& domain) noexcept;
    void tell_join(const Task& task, const DataState* data, const LastUses& uses) noexcept;
    [[nodiscard]] int follow(Task& task, Access& access, LastUses& uses) noexcept;
    void prepare(TaskMemory::Cache& cache, const Access& access, LastUses& uses);
    void join(TaskMemory::Cache& cache, const DataState* data, LastUses& uses);
    void enter_group(Access& access, Sharing& sharing) noexcept;
    [[nodiscard]] static bool take_turns(Task& task) noexcept;
    /// Of those that wait for a turn that the task has.
    static void for_each_waiting(Task& task, const std::function<void(Task&)>& look);
    [[nodiscard]] static bool is_waiting(const Task& task, const Access& access) noexcept;

    TaskMemory& memory_;
    BiasedLock lock_;
    uint64_t last_id_ = 0;
    uint32_t last_group_ = 0;
    uint64_t entered_ = 0;  // tasks so far, without joins
    // Tasks of the root domain alone stand in line.
    List line_, found_;                 // found_: of the line, entered since, with nothing before them
    Task* in_order_ = nullptr;          // started in line, and not entered: then nothing but its children is
    uint32_t taken_ = 0;                // of those that came to the end of the line
    std::atomic<uint32_t> gone_{0};     // out of line, and not back in it; written under the lock, as is:
    std::atomic<uint32_t> started_{0};  // of those the ones that were started in its order
    TaskMemory::Cache joins_;           // for those that entering the line makes
    GraphSeat seatless_;                // of the thread that has the lock, where it has no seat
    Domain root_{nullptr};
    // What who inserts writes, and apart from what others do.
    alignas(128) BiasedLock end_lock_{BiasedLock::kLongStreak};  // for all below
    List end_;
    std::atomic<uint32_t> came_{0};
    alignas(128) DagLog* watchers_ = nullptr;  // by DagLog::next; written while no task is in the graph
};

}  // namespace heddle
