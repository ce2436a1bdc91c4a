// DataState: what the library knows of a datum beside its elements.
//
// Made and destroyed by DataHandle. `uses` is the graph's, under its lock; the rest is as each says.
#pragma once

#include <atomic>
#include <memory>

#include "tasks/elements.hpp"
#include "tasks/graph.hpp"
#include "tasks/inner_wait.hpp"
#include "tasks/kept_data.hpp"

namespace heddle {

/// What others know of a future by its datum.
struct FutureLink {
    const detail::FutureState& state;
    const Domain* domain;  ///< of its task, to be compared: it may be gone when that has ended
    InnerWait::Knot knot{};
};

struct DataState : detail::DataView {
    DataState(detail::RuntimeState& its_runtime, const DataView& shape)
        : DataView(shape), runtime(its_runtime) {}

    [[nodiscard]] static DataState& of(const DataView& view) {
        return const_cast<DataState&>(static_cast<const DataState&>(view));
    }

    /// One owner less; the last one frees it.
    static void drop(DataState* state) noexcept {
        if (state->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state;
    }

    detail::RuntimeState& runtime;
    Elements own;                      ///< empty: memory of the caller's
    LastUses uses;                     ///< by tasks of the root domain
    std::atomic<bool> at_root{false};  ///< such a task has named it
    std::atomic<bool> below{false};    ///< and one of another domain
    FutureLink* future = nullptr;      ///< whose datum this is; set before anybody knows it
    std::atomic<uint32_t> owners{1};   ///< of this: who has the last share of its elements, and recordings
    std::atomic<uint32_t> shares{1};   ///< the handle's, and those of tasks that come after its users
    /// Who has the elements elsewhere. Written with KeptData's lock, and read with it; without it only to see
    /// that there is none, by tasks that follow the one in which it was set.
    std::atomic<DataKeeper*> keeper{nullptr};
    std::atomic<bool> loss_was_told{false};  ///< by a wait for something else; KeptData's
    bool released = false;  ///< by the handle: no task may name it; for who comes after that thread
    /// The failure for which what is in here was not written, or 0. Written by the task that should have,
    /// read by those that follow it; the graph orders them.
    std::atomic<uint64_t> failure{0};
};

}  // namespace heddle
