// DagLog: what a Graph tells of tasks and of what each follows, for heddle/dag.hpp.
//
// The graph writes it under its lock, and reading takes that lock, too. An edge is told when it is found,
// also where the task before has ended already.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/task_arguments.hpp"
#include "tasks/task.hpp"

namespace heddle {

struct DagLog {
    enum class Order : uint8_t { kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead, kChild };
    struct Use {
        uint32_t data;  ///< numbered by their first use
        AccessMode mode;
    };
    struct Node {
        uint64_t id;
        std::string name;  ///< empty: a join
        int priority;
        std::vector<Use> uses;
        bool waits = false;  ///< somebody who waits for data, and no task of the program's
    };
    struct Edge {
        uint64_t from, to;
        Order order;
        uint32_t data;
    };

    explicit DagLog(size_t most) : most_nodes(most) {}

    // The graph's, under its lock. Where memory is short something is missing, and `inserted` tells.
    void task(const Task& task) noexcept;
    void join(uint64_t id) noexcept;
    void edge(uint64_t from, uint64_t to, Order order, const DataState* on) noexcept;

    [[nodiscard]] std::string dot() const;

    DagLog* next = nullptr;  ///< of those that are told; the graph's
    const size_t most_nodes;
    size_t inserted = 0;
    std::vector<Node> nodes;
    std::vector<Edge> edges;

  private:
    [[nodiscard]] uint32_t number_of(const DataState* data);
    [[nodiscard]] bool kept(uint64_t id) const { return kept_.contains(id); }

    std::unordered_map<const DataState*, uint32_t> data_;
    std::unordered_map<uint64_t, size_t> kept_;
};

}  // namespace heddle
