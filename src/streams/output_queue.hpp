// OutputQueue: where the records of a network in process leave it, until somebody pulls them.
//
// Bounded: a part that brings one more waits, as before a box. Where the one who pulls is the one who pushes,
// or waits to push as well, they would wait for each other: then the bound grows (Pressure), since it is
// known who last did which.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "heddle/pause.hpp"
#include "streams/flow.hpp"
#include "streams/own_number.hpp"
#include "streams/pressure.hpp"

namespace heddle::streams {

class OutputQueue final : public Inlet {
  public:
    explicit OutputQueue(size_t bound) { gauge_.bound = bound; }
    /// Before a record comes.
    void attach(Pressure& pressure);

    void take(Record&& record, Flow& flow) override;
    /// Waits where nothing is there, but not once `ended` says that nothing can come. Any thread, several at
    /// once. Throws kLimit where there is no memory to pause the task.
    std::optional<Record> pull(const std::function<bool()>& ended);
    std::optional<Record> try_pull();
    /// Somebody with this number pushes.
    void pushing(uintptr_t own);
    /// What waits in pull() looks again whether it has ended.
    void wake_all();
    /// Nobody may pull any more while it is waited for: it grows.
    void grow_freely();
    /// Drops what is in it; so does what comes from now on.
    void drop();

  private:
    /// The first record. Where there is none, the next one that comes signals `waiter`, unless that is null.
    std::optional<Record> take_first(BlockCondition* waiter);
    /// False: it was signalled.
    bool withdraw(BlockCondition& waiter);
    void pulling();

    Pressure* pressure_ = nullptr;
    Pressure::Gauge gauge_;
    /// The task or thread that pushed last, and that pulled last; 0: nobody. Guesses are good enough.
    std::atomic<uintptr_t> pusher_{0}, puller_{0};

    std::mutex front_mutex_;  // before mutex_
    std::deque<Record> front_;
    std::mutex mutex_;
    std::deque<Record> back_;
    std::vector<BlockCondition*> waiting_;  ///< to pull, while both queues are empty
    bool dropped_ = false;
};

}  // namespace heddle::streams
