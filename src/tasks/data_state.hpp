// DataState: what the library knows of a datum beside its elements.
//
// Made and destroyed by DataHandle. `uses` is the graph's, under its lock; the rest is as each says.
#pragma once

#include <atomic>
#include <memory>

#include "tasks/graph.hpp"

namespace heddle {

struct DataState : detail::DataView {
    DataState(detail::RuntimeState& its_runtime, const DataView& shape)
        : DataView(shape), runtime(its_runtime) {}

    [[nodiscard]] static DataState& of(const DataView& view) {
        return const_cast<DataState&>(static_cast<const DataState&>(view));
    }

    detail::RuntimeState& runtime;
    std::unique_ptr<std::byte[]> own;  ///< empty: memory of the caller's
    LastUses uses;                     ///< by tasks of the root domain
    /// The failure for which what is in here was not written, or 0. Written by the task that should have,
    /// read by those that follow it; the graph orders them.
    std::atomic<uint64_t> failure{0};
};

}  // namespace heddle
