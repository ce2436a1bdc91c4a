// QuarkGraph: the order of tasks as QUARK finds it.
//
// QUARK calls a function when a task could run, and takes its return for the task's end; only its master
// thread, here the feeder, learns of ends. So each function that QUARK calls is left paused, on a fiber of
// its own, until heddle has run the task, and is then continued. QUARK has one thread, which is its master,
// and runs nothing by itself.
//
// A reader that comes while others read waits until one of these has ended: so QUARK 2.8.0 does it.
#pragma once

#include <vector>

#include "engines/graphs/data_uses.hpp"
#include "engines/graphs/graph_engine.hpp"
#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"

struct quark_s;

namespace heddle {

class QuarkGraph final : public ForeignGraph {
  public:
    /// Throws kUnavailable where QUARK does not start.
    explicit QuarkGraph(GraphEngine& engine);
    ~QuarkGraph() override;

    void add(Task& task) override;
    void end(InGraph& task) override;
    bool step() override;

  private:
    /// A fiber on which QUARK looks for a task, or is in one.
    struct Place : InGraph {
        Place(QuarkGraph& its_graph, Stack& its_stack)
            : graph(its_graph), stack(its_stack), fiber(its_stack.span(), &QuarkGraph::look, this) {}

        QuarkGraph& graph;
        Stack& stack;
        Fiber fiber;
        bool in_task = false;
    };

    /// Called by QUARK for each task that could run.
    static void call(quark_s* quark);
    static void look(void* place);
    void visit(Place& place);

    GraphEngine& engine_;
    quark_s* quark_;
    StackPool pool_;
    StackCache stacks_{pool_};
    InGraph* free_ = nullptr;
    Place* current_ = nullptr;
    Fiber* home_ = nullptr;  ///< the feeder's own flow, while it is in a place
    bool found_ = false;     ///< QUARK has called
    size_t inside_ = 0;      ///< tasks
    size_t seen_ = 0;        ///< data that QUARK has been told of since it last forgot them, at most
    std::vector<DataUse> uses_;
};

}  // namespace heddle
