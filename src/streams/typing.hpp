// Typing: which records each part of a program takes, and what becomes of them.
//
// A part's input is what is declared, or found out from what it is made of: a label that a later part needs
// and no earlier one makes is needed from the start, since records keep the labels that a part does not know
// (flow inheritance, S-Net language report section 3).
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "streams/matching.hpp"
#include "streams/syntax.hpp"

namespace heddle::streams {

/// A record with these labels becomes records with those.
struct TypeMap {
    LabelSet input;
    std::vector<LabelSet> outputs;
};
using TypeMaps = std::vector<TypeMap>;

/// Throws kBadInput where there are too many: choices one after the other, that each need labels of their
/// own, have their product, and so have filters that each add a label or not. `what`: "comes to here is of".
void check_number(size_t types, std::string_view what, const Place& place);
[[nodiscard]] std::vector<LabelSet> inputs_of(const TypeMaps& maps);
/// 0: no pattern takes a record of the type; 1: one does as the record's tags are; 2: one always does.
/// `takers`: where not null, the numbers of those that do are added.
[[nodiscard]] int taken_by(const std::vector<Pattern>& patterns, const LabelSet& type,
                           std::set<size_t>* takers = nullptr);
/// Once.
void add_type(std::vector<LabelSet>& types, LabelSet type);
/// Adds what a record of the type becomes by the map: labels that the map does not know are kept, binding
/// tags aside.
void apply(const TypeMap& map, const LabelSet& type, std::vector<LabelSet>& outputs);

class Typing {
  public:
    /// Throws kBadInput, at its place, for a net that uses itself without a signature.
    explicit Typing(const Program& program);

    [[nodiscard]] const TypeMaps& of(const Topology& part) const { return parts_.at(&part); }
    [[nodiscard]] const TypeMaps& of(const NetDefinition& net) const { return nets_.at(&net); }
    /// Whether the net is a part of itself.
    [[nodiscard]] bool is_recursive(const NetDefinition& net) const { return recursive_.contains(&net); }

  private:
    void infer_all(const std::vector<std::unique_ptr<NetDefinition>>& nets);
    const TypeMaps& infer(const NetDefinition& net);
    const TypeMaps& infer(const Topology& part);
    TypeMaps maps_of(const Topology& part);
    template <class Leaves>
    [[nodiscard]] std::vector<LabelSet> in_the_end(const Topology& part, const TypeMap& map,
                                                   Leaves leaves) const;
    [[nodiscard]] TypeMaps serial(const TypeMaps& first, const Topology& part) const;
    [[nodiscard]] std::vector<LabelSet> through(const Topology& part, const LabelSet& type) const;

    std::unordered_map<const Topology*, TypeMaps> parts_;
    std::unordered_map<const NetDefinition*, TypeMaps> nets_;
    std::unordered_map<const NetDefinition*, bool> recursive_;
    std::vector<const NetDefinition*> open_;
};

}  // namespace heddle::streams
