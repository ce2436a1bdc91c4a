// What a program says, name for name: the tree that the parser makes.
//
// Names of types, boxes and nets are resolved where they are read (a definition comes before its use).
// Immutable once parsed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "streams/expression.hpp"
#include "streams/labels.hpp"
#include "streams/source.hpp"

namespace heddle::streams {

/// A label where it is written.
struct Entry {
    Label label;
    bool passes = false;  ///< followed by "=": it goes through although it is used
    Place place;
    /// Wherever it is written.
    friend bool operator==(const Entry& a, const Entry& b) {
        return a.label == b.label && a.passes == b.passes;
    }
};

/// One way that a record may look: it has all of these.
using Variant = std::vector<Entry>;
using Type = std::vector<Variant>;

struct Map {
    Type input;
    Type output;
    bool infer = false;  ///< "...": the output is found out
};
using Signature = std::vector<Map>;

/// Key and value, as a program's <metadata> gives them.
using Metadata = std::map<std::string, std::string>;

struct BoxDefinition {
    std::string name;
    Place place;
    bool is_initialiser = false;  ///< no input at all: it runs once
    Variant input;                ///< in the order of the arguments
    std::vector<Variant> outputs;
    std::string language, code;  ///< of a box that is written in line; else empty
    Place code_place;
    Metadata metadata;
};

struct Topology;

struct NetDefinition {
    std::string name;
    Place place;
    bool has_signature = false;
    Signature signature;
    std::vector<std::unique_ptr<BoxDefinition>> boxes;
    std::vector<std::unique_ptr<NetDefinition>> nets;
    std::unique_ptr<Topology> body;  ///< null: only declared, and no file has it
    int height = 0;                  ///< of the body, through nets; 0 inside of itself
    size_t size = 0;                 ///< the same of its parts
    Metadata metadata;
};

struct Pattern {
    Variant variant;
    std::unique_ptr<Expression> guard;  ///< null: always
};

/// What an action puts into a record.
struct Assignment {
    Label label;
    Label from;  ///< of a field, or a tag without a value: what is copied; the pattern may lack it
    std::unique_ptr<Expression> value;  ///< of a tag; null: copied
    Place place;                        ///< of a field: of what is copied
};
using OutputRecord = std::vector<Assignment>;

struct GuardedAction {
    std::unique_ptr<Expression> guard;  ///< null: the last one
    std::vector<OutputRecord> outputs;
};

enum class TopologyKind {
    kBox,
    kNet,
    kFilter,
    kSync,
    kSerial,
    kChoice,
    kStar,
    kFeedback,
    kSplit,
    kPlaced,
};

struct Topology {
    Topology(TopologyKind its_kind, Place its_place) : kind(its_kind), place(its_place) {}
    TopologyKind kind;
    Place place;
    std::vector<Topology> parts;  ///< of kSerial, kChoice; else none or one
    bool ordered = false;         ///< || ** !!
    const BoxDefinition* box = nullptr;
    const NetDefinition* net = nullptr;
    std::vector<Pattern> patterns;  ///< kFilter: at most one; kSync: its slots; kStar, kFeedback: to leave
    std::vector<GuardedAction> actions;  ///< kFilter; none: the identity
    Label tag;                           ///< kSplit
    int node = 0;                        ///< kPlaced
    int height = 1;                      ///< with its parts, which the parser bounds; not through nets
    int height_through_nets = 1;         ///< which it bounds, too
    size_t size_through_nets = 1;        ///< itself and its parts, each as often as it is used; bounded, too
};

struct Program {
    Source source;
    std::vector<std::unique_ptr<BoxDefinition>> boxes;
    std::vector<std::unique_ptr<NetDefinition>> nets;
    std::vector<std::unique_ptr<Program>> externals;  ///< whose nets this one uses
    /// The last net: what runs.
    [[nodiscard]] const NetDefinition& main() const { return *nets.back(); }
};

}  // namespace heddle::streams
