// Recording: a stream of tasks that is recorded once and replayed many times, its order found already.
//
//     heddle::Recording step(runtime);
//     for (...) step.insert(smooth, in(left), inout(tile), in(right));      // nothing runs
//     for (int i = 0; i < 1000; ++i) step.replay(sequence);                 // all of them, each time
//     sequence.wait();
//
// To other tasks a replay is one task, which uses all that the recorded ones use: it follows and precedes
// others by that, replays of one recording follow each other, and when one of its tasks fails all that it
// writes is bad, and the error arrives at the sequence that it was replayed into. Among its own tasks all is
// as in a sequence: order, priorities, commute(), redux(), errors and what they cancel.
//
// Recorded tasks run as often as they are replayed, each time with copies of the values as they were
// recorded; what they refer to must live until the last replay has ended. One thread records; then any thread
// replays, on any engine that the runtime has by then.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "heddle/export.hpp"
#include "heddle/task.hpp"

namespace heddle {

class HEDDLE_API Recording {
  public:
    explicit Recording(Runtime& runtime);
    /// Waits for its replays. In one of its own tasks, which they wait for, it goes with the last of them.
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// As Sequence::insert(), and the task is kept. Throws what that throws, and kInvalidArgument once there
    /// was a replay.
    template <detail::TaskFunction Function, class... Arguments>
    void insert(Function&& function, Arguments&&... arguments) {
        insert_with(nullptr, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }
    template <class Function, class... Arguments>
    void insert(const TaskOptions& options, Function&& function, Arguments&&... arguments) {
        insert_with(&options, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }

    /// Inserts all of it into a sequence of the same runtime. Throws kInvalidArgument for another one,
    /// where data that it names were released meanwhile, and in one of its own tasks; kLimit where memory is
    /// short. Replays that different tasks insert are ordered by nothing, as children of different tasks are:
    /// one that would begin while another runs ends with kInvalidArgument, at its sequence's wait.
    void replay(Sequence& sequence);

    /// Tasks that were recorded.
    [[nodiscard]] size_t size() const;

  private:
    template <class Function, class... Arguments>
    void insert_with(const TaskOptions* options, Function&& function, Arguments&&... arguments) {
        static_assert((!detail::kIsFuture<std::decay_t<Arguments>> && ...),
                      "a recorded task cannot have a future: it has one value, and is settled but once");
        if constexpr (detail::check_task<Function, std::decay_t<Arguments>...>()) {
            using Closure = detail::RecordedClosure<std::decay_t<Function>, std::decay_t<Arguments>...>;
            detail::insert_task<Closure>(
                tasks(), state_.get(), options, nullptr,
                [&](void* at) {
                    new (at)
                        Closure{std::forward<Function>(function), {{std::forward<Arguments>(arguments)}...}};
                },
                arguments...);
        }
    }
    [[nodiscard]] detail::SequenceState& tasks();

    std::shared_ptr<detail::RecordingState> state_;
};

}  // namespace heddle
