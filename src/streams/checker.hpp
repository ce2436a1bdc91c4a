// Checker: what a program would do wrong, found before it runs.
//
// The types that a net's signature promises (or that its first parts take) are sent through it as records
// would be, each with the places where it lost labels: where one fits nowhere, where a branch or an exit is
// never taken, where two branches fit equally well, where a net does not make what it promises, where nothing
// ever leaves. Records that come into a net without a signature may have more labels than their type tells,
// so that a finding there need not show with each of them; a signature lets nothing else in.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "streams/finding.hpp"
#include "streams/typing.hpp"

namespace heddle::streams {

class Checker {
  public:
    Checker(const Program& program, const Typing& typing) : program_(program), typing_(typing) {}
    /// Each place once, in the order of the text. Once.
    [[nodiscard]] std::vector<Finding> check();
    /// After check(): why nothing can ever come out of the program; null: something may.
    [[nodiscard]] const Finding* never_works() const { return never_works_; }

  private:
    /// Where a label went.
    struct Loss {
        Place place;
        std::string message, fix;
    };
    /// What is known of the records at a place.
    struct Traced {
        LabelSet labels;
        std::map<Label, Loss> lost;
    };
    using Types = std::vector<Traced>;
    /// Of a choice, star or feedback, over all visits.
    struct Visits {
        std::set<size_t> taken;           ///< branches or patterns
        std::map<size_t, size_t> beaten;  ///< branches that fit, and one that fits better
        std::set<size_t> tied;            ///< branches that fit as well as an earlier one
        Types came;
        bool closed = false;  ///< nets with a signature are around
    };

    /// As if the net was what runs.
    void check_from(const NetDefinition& net);
    /// From each that nothing has come to yet: those who use the others first.
    void check_unreached(const std::vector<std::unique_ptr<NetDefinition>>& nets);
    void conclude();
    Types send(const Topology& part, const Types& types);
    /// What comes of initialisers alone.
    Types initial(const Topology& part);
    Types through_box(const Topology& part, const Types& types);
    Types through_filter(const Topology& part, const Types& types);
    Types through_net(const NetDefinition& net, const Types& types, Place place);
    /// All that the signature takes of `types` together: synchrocells join them.
    void check_body(const NetDefinition& net, const Types& types);
    void check_what_is_generated(const NetDefinition& net);
    void check_promise(const NetDefinition& net, const TypeMaps& maps, const Traced& made);
    void find_working_nets();
    void find_endless_nets();
    bool works(const NetDefinition& net);
    Visits& visits(const Topology& part) {
        Visits& seen = quiet_ ? scratch_ : visits_[&part];
        seen.closed = closed_ > 0;
        return seen;
    }
    Types through_star(const Topology& part, const Types& types);
    Types through_feedback(const Topology& part, const Types& types);
    Types through_choice(const Topology& part, const Types& types);
    [[nodiscard]] Types through_sync(const Topology& part, const Types& types) const;
    Types with_tag(const Topology& part, const Types& types);
    /// `loss`: of what goes in and does not come out.
    Types through_maps(const TypeMaps& maps, const Types& types, Place place, const std::string& what,
                       const Loss& loss);
    void apply(const TypeMap& map, const Traced& type, const Loss& loss, Types& outputs) const;
    /// Throws where there are too many.
    void put(Types& types, Traced type) const;
    void add(Types& types, Traced type) const;
    [[nodiscard]] Types first_seen(const Types& types, Types& seen) const;

    void find(Finding finding);
    void find_missing(Place place, const std::string& what, const std::vector<LabelSet>& wanted,
                      const Traced& type);
    /// With all of `wanted`, where a record of the type may have that; nothing where hope is not asked for.
    [[nodiscard]] std::optional<Traced> saved(const LabelSet& wanted, const Traced& type) const;
    void explain_missing(Finding& finding, const LabelSet& missing, const Traced& type) const;
    /// Fields that a filter copies and its pattern does not name. False: a record of the type cannot have
    /// them.
    bool find_foreign_fields(const Topology& filter, const Traced& type);
    void find_untaken();
    void find_what_never_works();
    void find_dead_branch(const Topology& part, size_t branch, const Visits& visits);
    void find_dead_exit(const Topology& part, size_t pattern, const Visits& visits);

    const Program& program_;
    const Typing& typing_;
    /// By place; the first one of it.
    std::map<std::pair<const Source*, uint32_t>, Finding> findings_;
    std::map<const Topology*, Visits> visits_;
    Visits scratch_;  ///< while `quiet_`
    std::vector<const NetDefinition*> open_;
    std::set<const NetDefinition*> reached_;
    std::set<const NetDefinition*> nets_;     ///< with a signature and a body, those seen
    std::set<const NetDefinition*> working_;  ///< of them: something can come out
    std::vector<LabelSet> given_;             ///< to the program
    Place sent_to_;                           ///< the part that records are just being sent through
    int closed_ = 0;                          ///< nets with a signature around
    /// A record that lacks a label, which flow inheritance may bring, is taken for one that has it.
    bool hopeful_ = false;
    bool quiet_ = false;  ///< only what comes out is asked for, and of nets only those in `working_` give it
    const Finding* never_works_ = nullptr;
};

}  // namespace heddle::streams
