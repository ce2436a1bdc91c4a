#include "engines/quark/quark_graph.hpp"

#include <quark.h>

#include <utility>

#include "base/environment.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

// Its two branches name them differently.
#ifdef QUARK_INPUT
constexpr int kIn = QUARK_INPUT, kInOut = QUARK_INOUT, kValue = QUARK_VALUE;
#else
constexpr int kIn = INPUT, kInOut = INOUT, kValue = VALUE;
#endif
/// QUARK keeps what it knows of data until it is told to forget all.
constexpr size_t kMostSeen = 16'384;

thread_local QuarkGraph* of_feeder = nullptr;

}  // namespace

QuarkGraph::QuarkGraph(GraphEngine& engine) : engine_(engine) {
    // Else QUARK would have its master run tasks, and wait for ends, when there are some dozens of them.
    set_variable("QUARK_UNROLL_TASKS", "0");
    // Else a writer would not wait for readers: QUARK would copy the data for them.
    set_variable("QUARK_WAR_DEPENDENCIES_ENABLE", "0");
    quark_ = QUARK_Setup(1);
    if (quark_ == nullptr) throw Error(ErrorCode::kUnavailable, "QUARK does not start (QUARK_Setup)");
    of_feeder = this;
}

QuarkGraph::~QuarkGraph() {
    QUARK_Free(quark_);
    while (free_ != nullptr) {
        auto* const place = static_cast<Place*>(std::exchange(free_, free_->next));
        Stack& stack = place->stack;
        delete place;
        stacks_.give_back(stack);
    }
    of_feeder = nullptr;
}

void QuarkGraph::add(Task& task) {
    find_uses(task, uses_);
    Quark_Task_Flags flags = Quark_Task_Flags_Initializer;
    Quark_Task* const made = QUARK_Task_Init(quark_, &QuarkGraph::call, &flags);
    Task* it = &task;
    QUARK_Task_Pack_Arg(quark_, made, sizeof(it), &it, kValue);
    for (const DataUse& use : uses_)
        QUARK_Task_Pack_Arg(quark_, made, 1, use.data, use.writes ? kInOut : kIn);
    seen_ += uses_.size();
    ++inside_;
    QUARK_Insert_Task_Packed(quark_, made);
}

void QuarkGraph::call(quark_s* quark) {
    QuarkGraph& self = *of_feeder;
    Place& place = *self.current_;
    void* last = nullptr;
    Task* const task = *static_cast<Task**>(QUARK_Args_Pop(QUARK_Args_List(quark), &last));
    self.found_ = true;
    place.in_task = true;
    self.engine_.may_run(*task, place);
    Fiber::switch_to(place.fiber, *self.home_);
    place.in_task = false;
}

void QuarkGraph::look(void* place) {
    Place& self = *static_cast<Place*>(place);
    while (true) {
        // The master looks through the queue, takes one task or none, and comes back.
        QUARK_Worker_Loop(self.graph.quark_, 0);
        Fiber::switch_to(self.fiber, *self.graph.home_);
    }
}

void QuarkGraph::visit(Place& place) {
    Fiber home;
    home_ = &home;
    current_ = &place;
    Fiber::switch_to(home, place.fiber);
    if (place.in_task) return;
    place.next = free_;
    free_ = &place;
}

void QuarkGraph::end(InGraph& task) {
    --inside_;
    visit(static_cast<Place&>(task));
}

bool QuarkGraph::step() {
    if (free_ == nullptr) {
        try {
            Stack& stack = stacks_.take();
            free_ = new Place(*this, stack);
        } catch (...) {
            return false;  // no memory for one more; those that end make room
        }
    }
    found_ = false;
    visit(static_cast<Place&>(*std::exchange(free_, free_->next)));
    if (!found_ && inside_ == 0 && seen_ > kMostSeen) {
        QUARK_Barrier(quark_);
        seen_ = 0;
    }
    return found_;
}

}  // namespace heddle
