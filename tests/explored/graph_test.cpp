// The graph as it is, under the explorer: tasks that end while others are entered. Each task runs once, after
// those that it follows, and sees what they wrote.
#include "tasks/graph.hpp"

#include <array>
#include <new>

#include "support/exploring.hpp"
#include "tasks/data_state.hpp"

namespace heddle::test {
namespace {

/// A record of TaskMemory's, as far as the graph looks at it.
struct alignas(64) Record {
    std::array<std::byte, 512> bytes{};
    Task& task = *new (bytes.data()) Task;
};

/// What a task does to a datum: plain accesses, so that a missing order is a race.
struct Datum {
    Datum() : state(*reinterpret_cast<detail::RuntimeState*>(nowhere.data()), {}) {}
    static inline std::array<std::byte, 64> nowhere{};  // of the runtime the address alone is used
    DataState state;
    int value = 0;
};

class World {
  public:
    explicit World(Explorer& explorer) : explorer_(explorer) {}

    struct Use {
        Datum* datum;
        AccessMode mode;
    };
    /// Enters a task in this record, and runs it and what follows where that is possible.
    void insert(Record& record, std::initializer_list<Use> uses, int thread = 0) {
        Task& task = make(record, uses);
        if (graph_.add(cache_, seats_[thread], task, root_)) run(task, thread);
    }
    /// A task in this record stands in line.
    void stand(Record& record, std::initializer_list<Use> uses, int thread = 0) {
        if (!graph_.stand(seats_[thread], make(record, uses), root_, stood_))
            explorer_.fail("it can stand in line");
    }
    /// Looks in line for tasks, and runs them, until there is nothing for this thread. So many times it puts
    /// back what it could.
    void work(int thread, int put_back = 0) {
        const auto left = [&] {
            uint64_t sum = 0;
            for (const GraphSeat& seat : seats_) sum += seat.left.load(std::memory_order_acquire);
            return sum;
        };
        while (Task* task = graph_.next_in_line(seats_[thread], 2, left)) {
            if (task->in_order && put_back-- > 0 && graph_.put_back(seats_[thread], *task)) continue;
            while (task != nullptr) run(*std::exchange(task, task->next), thread);
        }
    }
    /// The same, but it does not end before end().
    void begin(Record& record, std::initializer_list<Use> uses) {
        keep_ = &record.task;
        insert(record, uses);
        keep_ = nullptr;
    }
    void end(Record& record, int thread = 0) { run(record.task, thread); }

    void expect_all_ran() {
        if (ran_ != inserted_) explorer_.fail("a task was lost, or ran twice");
    }

    Datum x, y;

  private:
    Task& make(Record& record, std::initializer_list<Use> uses) {
        Task& task = record.task;
        task.accesses = 0;
        for (const Use& use : uses) {
            Access& access = *new (task.access(task.accesses++)) Access{};
            access.data = &use.datum->state;
            access.mode = use.mode;
        }
        task.sequence = nullptr;
        inserted_.fetch_add(1, std::memory_order_relaxed);
        return task;
    }
    void run(Task& task, int thread) {
        if (&task == keep_) return;
        for (uint32_t i = 0; i < task.accesses; ++i) {
            auto& datum = *reinterpret_cast<Datum*>(task.access(i)->data);
            if (task.access(i)->mode == AccessMode::kIn)
                seen_.fetch_add(datum.value, std::memory_order_relaxed);
            else
                ++datum.value;
        }
        ran_.fetch_add(1, std::memory_order_relaxed);
        Task* next = nullptr;
        if (!task.in_order || !graph_.end_in_order(seats_[thread], task, next))
            next = Graph::finish(task, seats_[thread]);
        while (next != nullptr) run(*std::exchange(next, next->next), thread);
    }

    Explorer& explorer_;
    TaskMemory memory_;
    TaskMemory::Cache cache_;  // for joins, of which there are none
    Graph graph_{memory_};
    Domain root_{nullptr};
    Task* keep_ = nullptr;
    std::array<GraphSeat, 3> seats_;  // one for each thread
    std::atomic<uint64_t> stood_{0};
    std::atomic<int> inserted_{0}, ran_{0}, seen_{0};
};

constexpr auto kIn = AccessMode::kIn, kInOut = AccessMode::kInOut;

/// One thread ends the writer, the other enters its readers and the writer that follows both.
void readers_come_while_the_writer_ends(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 4> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->begin(state->records[0], {{&state->x, kInOut}});
    explorer.thread([state] { state->end(state->records[0]); });
    explorer.thread([state] {
        state->insert(state->records[1], {{&state->x, kIn}}, 1);
        state->insert(state->records[2], {{&state->x, kIn}}, 1);
        state->insert(state->records[3], {{&state->x, kInOut}}, 1);
    });
    explorer.finally([state] { state->expect_all_ran(); });
}

/// Two end the two tasks that a third follows.
void two_predecessors_end(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 3> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->begin(state->records[0], {{&state->x, kInOut}});
    state->begin(state->records[1], {{&state->y, kInOut}});
    explorer.thread([state] { state->end(state->records[0]); });
    explorer.thread([state] { state->end(state->records[1], 1); });
    explorer.thread([state] {
        state->insert(state->records[2], {{&state->x, kIn}, {&state->y, kInOut}}, 2);
    });
    explorer.finally([state] { state->expect_all_ran(); });
}

/// The record of a task that has ended is another task's, while a follower of the first is entered.
void a_record_is_used_again(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 2> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->begin(state->records[0], {{&state->x, kInOut}});
    explorer.thread([state] {
        state->end(state->records[0]);
        state->insert(state->records[0], {{&state->y, kInOut}});
    });
    explorer.thread([state] { state->insert(state->records[1], {{&state->x, kInOut}}, 1); });
    explorer.finally([state] { state->expect_all_ran(); });
}

/// One runs those in line in their order, another wants some of them.
void a_line_is_disturbed(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 3> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->stand(state->records[0], {{&state->x, kInOut}});
    state->stand(state->records[1], {{&state->x, kIn}, {&state->y, kInOut}});
    state->stand(state->records[2], {{&state->y, kInOut}});
    explorer.thread([state] { state->work(0); });
    explorer.thread([state] { state->work(1); });
    explorer.finally([state] { state->expect_all_ran(); });
}

/// One runs those in line, another brings more, one of which cannot stand there.
void a_line_grows(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 3> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->stand(state->records[0], {{&state->x, kInOut}});
    explorer.thread([state] { state->work(0); });
    explorer.thread([state] {
        state->insert(state->records[1], {{&state->x, kInOut}}, 1);
        state->stand(state->records[2], {{&state->x, kInOut}}, 1);
        state->work(1);
    });
    explorer.finally([state] {
        state->work(0);
        state->expect_all_ran();
    });
}

/// The order of the line begins when the last that was entered has left.
void a_line_begins(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 2> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->begin(state->records[0], {{&state->x, kInOut}});
    state->stand(state->records[1], {{&state->x, kInOut}});
    explorer.thread([state] { state->end(state->records[0]); });
    explorer.thread([state] { state->work(1); });
    explorer.finally([state] {
        state->work(0);
        state->expect_all_ran();
    });
}

TEST(ExploredGraph, ALineIsRunInItsOrderUntilSomebodyDisturbsIt) {
    expect_holds(a_line_is_disturbed);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(a_line_is_disturbed, fault);
}
/// The first in line is put back before it is run, while another wants some.
void a_task_goes_back_in_line(Explorer& explorer) {
    struct State : World {
        using World::World;
        std::array<Record, 2> records;
    };
    auto state = std::make_shared<State>(explorer);
    state->stand(state->records[0], {{&state->x, kInOut}});
    state->stand(state->records[1], {{&state->x, kInOut}});
    explorer.thread([state] { state->work(0, 1); });
    explorer.thread([state] { state->work(1); });
    explorer.finally([state] {
        state->work(0);
        state->expect_all_ran();
    });
}

TEST(ExploredGraph, ATaskGoesBackInLine) {
    expect_holds(a_task_goes_back_in_line);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(a_task_goes_back_in_line, fault);
}
TEST(ExploredGraph, ALineGrowsWhileItIsRun) {
    expect_holds(a_line_grows);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(a_line_grows, fault);
}
TEST(ExploredGraph, ALineBeginsWhenAllHaveLeft) {
    expect_holds(a_line_begins);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(a_line_begins, fault);
}

TEST(ExploredGraph, ReadersComeWhileTheirWriterEnds) {
    expect_holds(readers_come_while_the_writer_ends);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainCompareExchange,
                              Fault::kPlainReadModifyWrite})
        expect_found(readers_come_while_the_writer_ends, fault);
}
TEST(ExploredGraph, TheLastPredecessorReleasesATask) {
    expect_holds(two_predecessors_end);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(two_predecessors_end, fault);
}
TEST(ExploredGraph, ARecordMayBeUsedAgain) {
    expect_holds(a_record_is_used_again);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainCompareExchange})
        expect_found(a_record_is_used_again, fault);
}

}  // namespace
}  // namespace heddle::test
