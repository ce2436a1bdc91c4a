// BoxPart: the queue of a box, and the tasks that empty it.
//
// A box whose calls take less than handing a record over would (it is measured) is called at once by the flow
// that brings the record, where nobody else is in it; the flow keeps the box until its own batch is done.
// What such calls send last goes on in the same flow, so that a chain of short boxes is one worker's loop;
// what is sent in the midst of a call goes to the queues, where it may have to wait.
#pragma once

#include "cores/short_lock.hpp"
#include "streams/parts.hpp"

namespace heddle::streams {

/// Records are called for in the order of the queue, by as many tasks at once as the box has calls.
class BoxPart final : public Inlet, public Kept {
  public:
    BoxPart(Plant& plant, const BoxDefinition& box, const BoxFunction& function, int most_calls, Inlet& exit,
            const Path& path, const char* task_name);
    /// Records that came to it, and those that it has been called for. Any thread.
    [[nodiscard]] WorkCounts work() const;
    /// Waits while the queue is full.
    void take(Record&& record, Flow& flow) override;
    void let_go() override;
    /// Of an initialiser: its one call, without a record.
    void start();

  private:
    class Call;
    /// A task, until the queue is empty.
    void drain();
    /// Under the lock: as many wait as may. Where a task takes all that is there at once, half of them lie in
    /// the queue.
    [[nodiscard]] bool is_full() const;
    /// Its queue, where one task at a time empties it.
    [[nodiscard]] const Pressure::Gauge* emptied_by_one() const {
        return most_calls_ == 1 ? &gauge_ : nullptr;
    }
    /// Under the lock: one that is to be started without it.
    void claim_task();
    /// One that cannot be started stops the network.
    void start_task() noexcept;
    void empty_queue();
    /// Of one that was claimed and empties nothing more.
    void end_task() noexcept;
    /// What one task calls for next, into an empty batch; false: nothing is there, and the task is over.
    bool take_batch(std::vector<Record>& batch);
    struct Taken {
        bool some = true, half_empty = true;
        bool starts = false;       ///< another task, which was claimed
        bool is_relieved = false;  ///< Plant::note_relieved() is to be told
    };
    /// The same under the lock.
    [[nodiscard]] Taken take_some(std::vector<Record>& batch);
    /// Under the lock: whether it held too much, and the caller is to say that it does no more; `waiting`
    /// records are in front of those that others bring now.
    [[nodiscard]] bool is_relieved(size_t waiting);
    /// The record is used up; what it becomes at last is passed to the flow.
    void call(Record& record, Flow& flow);
    void call_function(Call& call);
    void call_traced(Call& call);
    /// The same, and until all has come to rest.
    void call_and_settle(Record& record, Flow& flow);
    /// What its calls take is known, and a flow may call it.
    [[nodiscard]] bool is_short() const;
    /// Whether the flow may call the box itself.
    [[nodiscard]] bool keep_for(Flow& flow);
    void note_duration(uint64_t taken_ns);

    Plant& plant_;
    const BoxDefinition& box_;
    const BoxFunction& function_;
    const int most_calls_;
    Inlet& exit_;
    const Path& path_;
    const char* const task_name_;
    const LabelSet input_;
    LabelSet used_;  ///< of the input: not what the signature passes on
    Pressure::Gauge gauge_;

    ShortLock lock_;
    std::vector<Record> queue_;
    size_t first_ = 0;  ///< of the queue; those before are gone
    int tasks_ = 0;
    bool coming_ = false;    ///< the last task has not begun yet
    bool overfull_ = false;  ///< Plant::note_overfull() was told
    /// The flow that keeps the box, and counts as a task. It writes it itself, under the lock, so that it
    /// reads its own address or none without it.
    std::atomic<Flow*> keeper_{nullptr};
    /// Whether something is in the queue, as the keeper asks. Written under the lock; who has to be seen
    /// there before the keeper's record is told by what orders the two (an OrderedExit's lock).
    std::atomic<bool> queued_{false};
    /// Nanoseconds of a call, on average; 0: not known, or several at once. Written by its one task.
    std::atomic<uint32_t> duration_ns_{0};
    uint32_t count_ = 0;  ///< of calls
    /// Calls for records that came to the queue, of those that were called at once, and what came to the
    /// queue: written by its one task, or under the lock; read by who looks.
    std::atomic<uint64_t> called_{0}, called_at_once_{0}, queued_count_{0};
    uint32_t untold_ = 0;  ///< of its one task: how often the queue was emptied since that was told
};

}  // namespace heddle::streams
