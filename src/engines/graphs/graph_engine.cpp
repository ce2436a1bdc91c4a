#include "engines/graphs/graph_engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <future>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/signals_blocked.hpp"
#include "engines/patient_lane.hpp"
#include "heddle/error.hpp"

namespace heddle {

static_assert(!std::is_abstract_v<GraphEngine>);

namespace {

template <class Entry>
void push(std::atomic<Entry*>& list, Entry& entry) noexcept {
    Entry* first = list.load(std::memory_order_relaxed);
    do entry.next = first;
    // release: who takes the list sees the entry.
    while (!list.compare_exchange_weak(first, &entry, std::memory_order_release, std::memory_order_relaxed));
}

template <class Entry>
Entry* take_oldest_first(std::atomic<Entry*>& list) noexcept {
    Entry* newest = list.exchange(nullptr, std::memory_order_acquire);
    Entry* oldest = nullptr;
    while (newest != nullptr) {
        Entry* const before = std::exchange(newest->next, oldest);
        oldest = std::exchange(newest, before);
    }
    return oldest;
}

}  // namespace

GraphEngine::GraphEngine(const EngineOptions& options, MakeGraph make) : NativeBehind(options), make_(make) {}

GraphEngine::~GraphEngine() {
    // The feeder before native: it may still be on its way out of native's ready().
    if (feeder_.joinable()) {
        stop_.store(true);
        bell_.notify();
        feeder_.join();
    }
    stop_native();
}

/// With the first task that has data.
void GraphEngine::start() {
    const SignalsBlocked blocked;
    std::promise<void> made;
    std::future<void> outcome = made.get_future();
    try {
        feeder_ = std::thread([this, &made] {
            bind_feeder();
            std::unique_ptr<ForeignGraph> graph;
            try {
                graph = make_(*this);
            } catch (...) {
                return made.set_exception(std::current_exception());
            }
            bind_feeder();  // the runtime may have bound it elsewhere
            made.set_value();
            feed(*graph);
        });
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::kLimit,
                    std::string("an engine with a feeder cannot create its thread: ") + error.what());
    }
    try {
        outcome.get();
    } catch (...) {
        feeder_.join();
        throw;
    }
}

/// It needs little, on the CPUs of the runtime.
void GraphEngine::bind_feeder() const {
    if (!options_.bind) return;
    const auto mask = options_.cpus.to_native();
    pthread_setaffinity_np(pthread_self(), mask.size() * sizeof(unsigned long),
                           reinterpret_cast<const cpu_set_t*>(mask.data()));
}

void GraphEngine::insert(Lane& lane, Task& task) {
    if (task.accesses == 0) return ready(lane, task);
    std::call_once(started_, [this] { start(); });
    push(inserted_, task);
    bell_.notify();
}

void GraphEngine::feed(ForeignGraph& graph) noexcept {
    size_t inside = 0;  // tasks that the graph has
    while (true) {
        // What was inserted before one of these ended the graph hears of before that.
        InGraph* over = take_oldest_first(ended_);
        for (Task* one = take_oldest_first(inserted_); one != nullptr; ++inside)
            graph.add(*std::exchange(one, one->next));
        for (; over != nullptr; --inside) graph.end(*std::exchange(over, over->next));
        const bool is_busy = graph.step();
        if (is_busy && could_run_count_ < could_run_.size()) continue;
        hand_over();
        if (is_busy) continue;
        if (inside == 0 && stop_.load() && inserted_.load() == nullptr) break;
        bell_.wait([&] {
            return inserted_.load() != nullptr || ended_.load() != nullptr || (inside == 0 && stop_.load());
        });
    }
}

void GraphEngine::may_run(Task& task, InGraph& in_graph) noexcept {
    if (could_run_count_ == could_run_.size()) hand_over();
    could_run_[could_run_count_++] = {&task, &in_graph};
}

/// The graph finds one after the other; of those that could run at once the most urgent one is first.
void GraphEngine::hand_over() noexcept {
    const auto end = could_run_.begin() + static_cast<ptrdiff_t>(std::exchange(could_run_count_, 0));
    std::stable_sort(could_run_.begin(), end,
                     [](const auto& a, const auto& b) { return a.task->priority > b.task->priority; });
    for (auto one = could_run_.begin(); one != end; ++one)
        NativeBehind::may_run(patient_lane(host_), *one->task, *one->in_graph);
}

Task* GraphEngine::ended(Lane&, InGraph& in_graph, Task* continuation) noexcept {
    push(ended_, in_graph);
    bell_.notify();
    return continuation;
}

}  // namespace heddle
