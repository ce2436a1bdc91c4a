#include "tasks/dag_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <unordered_set>

#include "tasks/frame.hpp"
#include "trace/escape.hpp"
#include "trace/palette.hpp"

namespace heddle {
namespace {

constexpr size_t kLongestName = 60;

const char* word(AccessMode mode) {
    switch (mode) {
        case AccessMode::kIn:
            return "in";
        case AccessMode::kOut:
            return "out";
        case AccessMode::kInOut:
            return "inout";
        case AccessMode::kCommute:
            return "commute";
        case AccessMode::kRedux:
            break;
    }
    return "redux";
}

const char* word(DagLog::Order order) {
    switch (order) {
        case DagLog::Order::kReadAfterWrite:
            return "read after write";
        case DagLog::Order::kWriteAfterWrite:
            return "write after write";
        case DagLog::Order::kWriteAfterRead:
            return "write after read";
        case DagLog::Order::kChild:
            break;
    }
    return "inserted by";
}

const char* style(DagLog::Order order) {
    switch (order) {
        case DagLog::Order::kReadAfterWrite:
            return "solid";
        case DagLog::Order::kWriteAfterWrite:
            return "bold";
        case DagLog::Order::kWriteAfterRead:
            return "dashed";
        case DagLog::Order::kChild:
            break;
    }
    return "dotted";
}

/// A string of the language, with its quotes: whatever a program calls its tasks, it stays one.
std::string quoted(std::string_view text) {
    std::string all = "\"";
    for (const char c : trace::valid_utf8(text)) {
        if (c == '\n') {
            all += "\\n";
            continue;
        }
        if (c == '"' || c == '\\') all += '\\';
        all += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return all + '"';
}

std::string tooltip(const DagLog::Node& node) {
    std::string text = fmt::format("{} {}", node.name, node.id);
    for (const DagLog::Use& use : node.uses) text += fmt::format("\n{} d{}", word(use.mode), use.data);
    if (node.priority != 0) text += fmt::format("\npriority {}", node.priority);
    return text;
}

}  // namespace

void DagLog::task(const Task& task) noexcept {
    if ((task.special & kLooksOn) == 0) ++inserted;
    if (nodes.size() >= most_nodes) return;
    try {
        Task& of = const_cast<Task&>(task);
        const char* const name = of.named ? of.notes().name : nullptr;
        Node node{
            task.id, name == nullptr ? "task" : name, task.priority, {}, (task.special & kLooksOn) != 0};
        for (uint32_t i = 0; i < task.accesses; ++i)
            node.uses.push_back({number_of(of.access(i)->data), of.access(i)->mode});
        kept_.emplace(task.id, nodes.size());
        nodes.push_back(std::move(node));
        const TaskFrame* const frame = current_frame();
        if (frame != nullptr && kept(frame->task->id)) edge(frame->task->id, task.id, Order::kChild, nullptr);
    } catch (const std::bad_alloc&) {
        return;
    }
}

void DagLog::join(uint64_t id) noexcept {
    if (nodes.size() >= most_nodes) return;
    try {
        kept_.emplace(id, nodes.size());
        nodes.push_back({id, "", 0, {}});
    } catch (const std::bad_alloc&) {
        return;
    }
}

void DagLog::edge(uint64_t from, uint64_t to, Order order, const DataState* on) noexcept {
    if (!kept(from) || !kept(to)) return;
    try {
        edges.push_back({from, to, order, on == nullptr ? 0 : number_of(on)});
    } catch (const std::bad_alloc&) {
        return;
    }
}

uint32_t DagLog::number_of(const DataState* data) {
    return data_.try_emplace(data, static_cast<uint32_t>(data_.size()) + 1).first->second;
}

std::string DagLog::dot() const {
    std::string text =
        "digraph tasks {\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
    // Who only waits is shown where others follow it.
    std::unordered_set<uint64_t> hidden;
    size_t shown = 0;
    for (const Node& node : nodes) {
        if (node.waits) hidden.insert(node.id);
        if (!node.waits && !node.name.empty()) ++shown;
    }
    for (const Edge& edge : edges) hidden.erase(edge.from);
    std::map<std::string, size_t> colour;
    for (const Node& node : nodes) {
        if (hidden.contains(node.id)) continue;
        if (node.name.empty()) {
            text += fmt::format("  n{} [shape=point, label=\"\", tooltip=\"all before, then all after\"];\n",
                                node.id);
            continue;
        }
        if (node.waits) {
            text += fmt::format("  n{} [label=\"wait\", style=dashed, tooltip={}];\n", node.id,
                                quoted("somebody waits for data"));
            continue;
        }
        const size_t number = colour.try_emplace(node.name, colour.size()).first->second;
        const trace::Color fill = trace::color_of(number);
        text += fmt::format("  n{} [label={}, fillcolor=\"{}\", fontcolor=\"{}\", tooltip={}];\n", node.id,
                            quoted(trace::shortened(trace::printable(node.name), kLongestName)), fill.hex(),
                            fill.light() ? "#1f2328" : "#ffffff", quoted(tooltip(node)));
    }
    // Two tasks may share several data: one arrow says it all, in the style of what binds most.
    std::map<std::pair<uint64_t, uint64_t>, std::vector<Edge>> between;
    for (const Edge& edge : edges)
        if (!hidden.contains(edge.to)) between[{edge.from, edge.to}].push_back(edge);
    for (auto& [ends, all] : between) {
        std::ranges::stable_sort(all, {}, &Edge::order);
        std::string why;
        for (const Edge& edge : all) {
            if (!why.empty()) why += '\n';
            why += word(edge.order);
            if (edge.order != Order::kChild) why += fmt::format(": d{}", edge.data);
        }
        text += fmt::format("  n{} -> n{} [style={}, tooltip={}];\n", ends.first, ends.second,
                            style(all.front().order), quoted(why));
    }
    if (shown < inserted)
        text += fmt::format(
            "  more [shape=note, fillcolor=\"#f4d35e\", label=\"{} more tasks are not shown\"];\n",
            inserted - shown);
    return text + "}\n";
}

}  // namespace heddle
