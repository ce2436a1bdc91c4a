// KeptData: data whose elements are elsewhere, too, between two tasks: on devices.
//
// Who has them there is a DataKeeper, of a higher layer. It brings them home, into the memory of the datum,
// before a task that is not its own uses that, and where the program has waited, which may read or write data
// then (heddle/data.hpp). One KeptData for a runtime; any thread. While nothing is kept a task costs one load
// more.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

#include "tasks/task.hpp"

namespace heddle {

class KeptData;

class DataKeeper {
  public:
    /// The memory holds the elements, but for kOut, and but for kIn nothing else does from now on. Nothing is
    /// done while a task of the keeper's writes them: nobody may look at them then. Throws Error.
    virtual void bring_home(DataState& data, AccessMode how) = 0;
    /// Of data that go, or that another keeper takes.
    virtual void forget(DataState& data) noexcept = 0;

  protected:
    ~DataKeeper() = default;
    /// For its destructor: brings home what is left, and forgets it. Data may go meanwhile.
    void let_all_go() noexcept;

  private:
    friend class KeptData;
    std::mutex keeps_mutex_;
    std::unordered_map<DataState*, KeptData*> keeps_;  ///< and who asks it about each
};

class KeptData {
  public:
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    /// From now on `keeper` is asked about the datum; one that was before has brought it home. Before any
    /// other keeper may take it, `note` lets this one know. In a task of the keeper's that uses it. Throws
    /// std::bad_alloc and what bring_home() and `note` throw; then nothing has changed.
    void keep(DataState& data, DataKeeper& keeper, const std::function<void()>& note);
    /// The datum goes.
    void forget(DataState& data) noexcept;

    /// For a task that is about to run, and sees the memory of its data.
    void bring_home(Task& task);
    /// For who has waited. Tries all, and throws the first error that no such wait has thrown before: what is
    /// lost is told to who asks for it, and once to those that do not.
    void bring_all_home();
    /// The same of one datum; as DataKeeper says.
    void bring_home(DataState& data, AccessMode how = AccessMode::kInOut);
    /// bring_all_home() for who has something else to tell: whoever looks for what is lost by its own wait is
    /// told.
    void try_to_bring_all_home() noexcept;

  private:
    friend class DataKeeper;
    /// Of a datum that may have gone: else the keeper brings it home and forgets it, if it has it still.
    void let_go(DataState* data, DataKeeper& keeper) noexcept;
    /// With the lock, exclusive.
    static void leave(DataState& data, DataKeeper& keeper) noexcept;

    /// Shared by those that ask a keeper, who stays as long; excludes those that change what is kept by whom.
    std::shared_mutex mutex_;
    std::unordered_set<DataState*> data_;
    std::atomic<size_t> count_{0};  // of these
};

}  // namespace heddle
