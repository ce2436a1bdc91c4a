// DataInUse: what a task for devices does with its data, from before it is submitted until it has ended.
//
// `Keeper` has what devices know of a datum between tasks: begin() gives it, and end() follows. One thread.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "heddle/device_variant.hpp"
#include "tasks/data_state.hpp"

namespace heddle::devices {

template <class Keeper>
class DataInUse {
  public:
    using Copies = typename Keeper::Copies;

    explicit DataInUse(Keeper& keeper) : keeper_(keeper) {}
    ~DataInUse() {
        for (const Use& use : uses_)
            if (use.copies != nullptr) keeper_.end(*use.data, use.how, failed_);
    }
    DataInUse(const DataInUse&) = delete;
    DataInUse& operator=(const DataInUse&) = delete;

    /// All that are used; each is one use.
    void begin(std::span<const VariantArgument> arguments) {
        for (const VariantArgument& argument : arguments)
            if (argument.data != nullptr) note(*argument.data, argument.mode);
        for (Use& use : uses_) use.copies = keeper_.begin(*use.data, use.how);
    }
    [[nodiscard]] size_t index_of(const heddle::detail::DataView& view) const {
        return static_cast<size_t>(std::ranges::find(uses_, &DataState::of(view), &Use::data) -
                                   uses_.begin());
    }
    [[nodiscard]] const std::shared_ptr<Copies>& copies_of(const heddle::detail::DataView& view) const {
        return uses_[index_of(view)].copies;
    }
    void submitted() { failed_ = true; }
    /// The task's function has them in their own memory: what it writes no device has any more, and tasks
    /// that it inserts use the data by themselves.
    void has_them() {
        for (Use& use : uses_)
            if (use.how != AccessMode::kIn && use.copies != nullptr) {
                keeper_.end(*use.data, use.how, true);
                use.copies = nullptr;
            }
    }
    void succeeded() { failed_ = false; }
    /// `visit(copies, how)` for each.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const Use& use : uses_) visit(use.copies, use.how);
    }

  private:
    struct Use {
        DataState* data;
        AccessMode how;
        std::shared_ptr<Copies> copies;
    };
    void note(heddle::detail::DataView& view, AccessMode how) {
        DataState& data = DataState::of(view);
        const auto same = std::ranges::find(uses_, &data, &Use::data);
        if (same == uses_.end())
            uses_.push_back({&data, how, nullptr});
        else if (same->how != how)
            same->how = AccessMode::kInOut;
    }

    Keeper& keeper_;
    std::vector<Use> uses_;
    bool failed_ = false;
};

}  // namespace heddle::devices
