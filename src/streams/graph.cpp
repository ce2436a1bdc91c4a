#include "streams/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "streams/program_text.hpp"

namespace heddle::streams {
namespace {

constexpr size_t kMostNodes = 2000;  // nets are not opened any more then

std::string quoted(std::string_view text) {
    std::string made = "\"";
    for (const char c : text) {
        if (c == '\n') {
            made += "\\n";
            continue;
        }
        if (c == '"' || c == '\\') made += '\\';
        made += c;
    }
    return made + "\"";
}

std::string text_of(const TypeMaps& maps) {
    std::string text;
    for (const TypeMap& map : maps)
        text += fmt::format("{}{} -> {}", text.empty() ? "" : "\n", map.input.text(),
                            map.outputs.empty() ? "nothing" : text_of(map.outputs, " | "));
    return text;
}

/// Which nets are open, so that none is opened inside of itself.
class OpenNets {
  public:
    [[nodiscard]] bool has(const NetDefinition* net) const {
        return std::find(open_.begin(), open_.end(), net) != open_.end();
    }
    void push(const NetDefinition* net) { open_.push_back(net); }
    void pop() { open_.pop_back(); }

  private:
    std::vector<const NetDefinition*> open_;
};

class Drawing {
  public:
    explicit Drawing(const Typing& typing) : typing_(typing) {}

    std::string of(const Program& program) {
        line("digraph snet {");
        line("rankdir=LR; node [shape=box, fontsize=10]; edge [fontsize=9];");
        const std::string in = node("in", "shape=plaintext"), out = node("out", "shape=plaintext");
        const Ends ends = draw(program.main());
        edge(in, ends.in);
        edge(ends.out, out);
        for (const std::string& one : edges_) line(one);
        line("}");
        return text_;
    }

  private:
    /// Nodes where records come in and go out; empty: none do.
    struct Ends {
        std::string in, out;
    };

    void line(std::string_view text) { text_ += fmt::format("{:{}}{}\n", "", 2 * depth_, text); }
    std::string node(std::string_view label, std::string_view style = "") {
        const std::string name = fmt::format("n{}", nodes_++);
        line(fmt::format("{} [label={}{}{}];", name, quoted(label), style.empty() ? "" : ", ", style));
        return name;
    }
    void edge(const std::string& from, const std::string& to, std::string_view label = "") {
        if (from.empty() || to.empty()) return;
        edges_.push_back(label.empty() ? fmt::format("{} -> {};", from, to)
                                       : fmt::format("{} -> {} [label={}];", from, to, quoted(label)));
    }
    template <class Inside>
    Ends framed(std::string_view label, const Inside& inside) {
        line(fmt::format("subgraph cluster_{} {{", frames_++));
        ++depth_;
        line(fmt::format("label={}; style=rounded; fontsize=10;", quoted(label)));
        const Ends ends = inside();
        --depth_;
        line("}");
        return ends;
    }

    Ends draw(const NetDefinition& net) {
        const std::string types = text_of(typing_.of(net));
        const std::string label = types.empty() ? net.name : fmt::format("{}\n{}", net.name, types);
        if (!net.body || open_.has(&net) || nodes_ > kMostNodes) {
            const std::string name = node(label, "style=dashed");
            return {name, name};
        }
        open_.push(&net);
        const Ends ends = framed(label, [&] { return draw(*net.body); });
        open_.pop();
        return ends;
    }

    Ends single(const std::string& name) { return {name, name}; }

    Ends draw(const Topology& part) {
        switch (part.kind) {
            case TopologyKind::kBox: {
                const std::string name =
                    node(fmt::format("{}\n{}", part.box->name, text_of_signature(*part.box)), "penwidth=2");
                return {part.box->is_initialiser ? "" : name, name};
            }
            case TopologyKind::kNet:
                return draw(*part.net);
            case TopologyKind::kFilter:
                return single(node(text_of_filter(part), "style=rounded"));
            case TopologyKind::kSync:
                return single(node(fmt::format("[| {} |]", text_of(part.patterns)), "shape=hexagon"));
            case TopologyKind::kSerial: {
                Ends whole = draw(part.parts[0]);
                for (size_t i = 1; i < part.parts.size(); ++i) {
                    const Ends next = draw(part.parts[i]);
                    edge(whole.out, next.in);
                    whole.out = next.out;
                }
                return whole;
            }
            case TopologyKind::kChoice: {
                const std::string in = node(part.ordered ? "||" : "|", "shape=diamond");
                const std::string out = node("", "shape=point");
                for (const Topology& branch : part.parts) {
                    const Ends ends = draw(branch);
                    edge(in, ends.in, text_of(inputs_of(typing_.of(branch))));
                    edge(ends.out, out);
                }
                return {in, out};
            }
            case TopologyKind::kStar:
                return framed(part.ordered ? "**" : "*", [&] {
                    const std::string exit = node(text_of(part.patterns), "shape=diamond");
                    const Ends ends = draw(part.parts[0]);
                    edge(exit, ends.in, "else");
                    edge(ends.out, exit);
                    return single(exit);
                });
            case TopologyKind::kFeedback:
                return framed("\\", [&] {
                    const Ends ends = draw(part.parts[0]);
                    const std::string exit = node(text_of(part.patterns), "shape=diamond");
                    edge(ends.out, exit);
                    edge(exit, ends.in, "back");
                    return Ends{ends.in, exit};
                });
            case TopologyKind::kSplit:
                return framed(fmt::format("{} {}", part.ordered ? "!!" : "!", part.tag.text()),
                              [&] { return draw(part.parts[0]); });
            case TopologyKind::kPlaced:
                return draw(part.parts[0]);
        }
        return {};
    }

    const Typing& typing_;
    std::string text_;
    std::vector<std::string> edges_;  ///< written at the end: inside of a frame they would pull nodes in
    OpenNets open_;
    size_t nodes_ = 0, frames_ = 0;
    int depth_ = 0;
};

class Outline {
  public:
    explicit Outline(const Typing& typing) : typing_(typing) {}
    std::string of(const Program& program) {
        write(program.main());
        return text_;
    }

  private:
    void line(std::string_view text) {
        text_ += fmt::format("{:{}}{}\n", "", 4 * depth_, text);
        ++lines_;
    }
    template <class Inside>
    void inside(const Inside& write_all) {
        ++depth_;
        write_all();
        --depth_;
    }

    void write(const NetDefinition& net) {
        const bool opens = net.body && !open_.has(&net) && lines_ < kMostNodes;
        std::string types = text_of(typing_.of(net));
        std::replace(types.begin(), types.end(), '\n', ',');
        line(fmt::format("net {} ({}){}", net.name, types, opens ? "" : !net.body ? " ;" : " ..."));
        if (!opens) return;
        open_.push(&net);
        inside([&] { write(*net.body); });
        open_.pop();
    }

    void write(const Topology& part) {
        const auto all = [&] {
            for (const Topology& inner : part.parts) write(inner);
        };
        switch (part.kind) {
            case TopologyKind::kBox:
                return line(fmt::format("box {} ({})", part.box->name, text_of_signature(*part.box)));
            case TopologyKind::kNet:
                return write(*part.net);
            case TopologyKind::kFilter:
                return line(text_of_filter(part));
            case TopologyKind::kSync:
                return line(fmt::format("[| {} |]", text_of(part.patterns)));
            case TopologyKind::kSerial:
                return all();
            case TopologyKind::kChoice:
                for (size_t i = 0; i < part.parts.size(); ++i) {
                    line(fmt::format("{} branch {}: {}", part.ordered ? "||" : "|", i + 1,
                                     text_of(inputs_of(typing_.of(part.parts[i])))));
                    inside([&] { write(part.parts[i]); });
                }
                return;
            case TopologyKind::kStar:
                line(fmt::format("{} until {}", part.ordered ? "**" : "*", text_of(part.patterns)));
                return inside(all);
            case TopologyKind::kFeedback:
                line(fmt::format("\\ back while {}", text_of(part.patterns)));
                return inside(all);
            case TopologyKind::kSplit:
                line(fmt::format("{} by {}", part.ordered ? "!!" : "!", part.tag.text()));
                return inside(all);
            case TopologyKind::kPlaced:
                line(fmt::format("@ {}", part.node));
                return inside(all);
        }
    }

    const Typing& typing_;
    std::string text_;
    OpenNets open_;
    size_t lines_ = 0;
    int depth_ = 0;
};

}  // namespace

std::string dot_of(const Program& program, const Typing& typing) {
    return Drawing(typing).of(program);
}

std::string outline_of(const Program& program, const Typing& typing) {
    return Outline(typing).of(program);
}

}  // namespace heddle::streams
