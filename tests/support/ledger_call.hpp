// A call of the Ledger as data: "lend_cpu 3", "acquire_cpus_in 2 0-3". Golden files are made of such calls,
// and random histories are drawn from the same table, so that both cover all of them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "cores/ledger.hpp"

namespace heddle::test {

using NoArgument = Outcome (Ledger::*)(MemberId, Actions&);
using OneNumber = Outcome (Ledger::*)(MemberId, int, Actions&);
using OneSet = Outcome (Ledger::*)(MemberId, const CpuSet&, Actions&);
using NumberAndSet = Outcome (Ledger::*)(MemberId, int, const CpuSet&, Actions&);
using Unannounced = Outcome (Ledger::*)(MemberId, int);

struct Verb {
    std::string_view name;
    std::variant<NoArgument, OneNumber, OneSet, NumberAndSet, Unannounced> function;
};

/// All but attach.
inline constexpr std::array kVerbs = {
    Verb{"lend", &Ledger::lend},
    Verb{"lend_cpu", &Ledger::lend_cpu},
    Verb{"lend_cpus", &Ledger::lend_cpus},
    Verb{"lend_cpu_mask", &Ledger::lend_cpu_mask},
    Verb{"reclaim", &Ledger::reclaim},
    Verb{"reclaim_cpu", &Ledger::reclaim_cpu},
    Verb{"reclaim_cpus", &Ledger::reclaim_cpus},
    Verb{"reclaim_cpu_mask", &Ledger::reclaim_cpu_mask},
    Verb{"acquire", &Ledger::acquire},
    Verb{"acquire_cpu", &Ledger::acquire_cpu},
    Verb{"acquire_cpus", &Ledger::acquire_cpus},
    Verb{"acquire_cpu_mask", &Ledger::acquire_cpu_mask},
    Verb{"acquire_cpus_in", &Ledger::acquire_cpus_in},
    Verb{"withdraw", static_cast<Unannounced>(&Ledger::withdraw)},
    Verb{"borrow", &Ledger::borrow},
    Verb{"borrow_cpu", &Ledger::borrow_cpu},
    Verb{"borrow_cpus", &Ledger::borrow_cpus},
    Verb{"borrow_cpu_mask", &Ledger::borrow_cpu_mask},
    Verb{"return_all", &Ledger::return_all},
    Verb{"return_cpu", &Ledger::return_cpu},
    Verb{"return_cpus", &Ledger::return_cpus},
    Verb{"return_cpu_mask", &Ledger::return_cpu_mask},
    Verb{"set_max_parallelism", &Ledger::set_max_parallelism},
    Verb{"enable", &Ledger::enable},
    Verb{"disable", &Ledger::disable},
    Verb{"detach", &Ledger::detach},
};

struct Call {
    const Verb* verb = nullptr;
    int number = 0;
    CpuSet set;
};

inline std::string to_string(const Call& call) {
    std::string text(call.verb->name);
    const size_t kind = call.verb->function.index();
    if (kind == 1 || kind == 3 || kind == 4) text += ' ' + std::to_string(call.number);
    if (kind == 2 || kind == 3) text += ' ' + (call.set.empty() ? "-" : call.set.to_list());
    return text;
}

inline Outcome make(Ledger& ledger, MemberId member, const Call& call, Actions& actions) {
    struct Visitor {
        Ledger& ledger;
        MemberId member;
        const Call& call;
        Actions& actions;
        Outcome operator()(NoArgument f) const { return (ledger.*f)(member, actions); }
        Outcome operator()(OneNumber f) const { return (ledger.*f)(member, call.number, actions); }
        Outcome operator()(OneSet f) const { return (ledger.*f)(member, call.set, actions); }
        Outcome operator()(NumberAndSet f) const {
            return (ledger.*f)(member, call.number, call.set, actions);
        }
        Outcome operator()(Unannounced f) const { return (ledger.*f)(member, call.number); }
    };
    return std::visit(Visitor{ledger, member, call, actions}, call.verb->function);
}

}  // namespace heddle::test
