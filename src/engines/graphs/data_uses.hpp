// DataUse: what a task does with one datum, however often it names it.
#pragma once

#include <algorithm>
#include <vector>

#include "tasks/task.hpp"

namespace heddle {

struct DataUse {
    DataState* data;
    bool reads, writes;
};

/// In order of their addresses. `uses` is memory that is used again.
inline void find_uses(Task& task, std::vector<DataUse>& uses) {
    uses.clear();
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *task.access(i);
        uses.push_back({access.data, access.mode != AccessMode::kOut, access.mode != AccessMode::kIn});
    }
    std::ranges::sort(uses, {}, &DataUse::data);
    size_t kept = 0;
    for (const DataUse& use : uses) {
        if (kept == 0 || uses[kept - 1].data != use.data) {
            uses[kept++] = use;
            continue;
        }
        uses[kept - 1].reads |= use.reads;
        uses[kept - 1].writes |= use.writes;
    }
    uses.resize(kept);
}

}  // namespace heddle
