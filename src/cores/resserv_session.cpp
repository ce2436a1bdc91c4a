#include "cores/resserv_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heddle/error.hpp"

namespace heddle::resserv {
namespace {

constexpr std::string_view kHelp =
    "The following commands are supported:\n"
    "{ list }\n{ topology int }\n{ resources int }\n{ access intlist }\n{ local int }\n{ remote int }\n"
    "{ accept int intlist }\n{ return int intlist }\n{ quit }\n{ help }\n{ state }\n"
    "Where 'intlist' is a space separated list of positive integers.\n\n";

int one(const std::vector<int>& numbers) {
    if (numbers.size() != 1) refuse("one number is wanted");
    return numbers[0];
}

}  // namespace

Session::Session(std::vector<CpuPlace> procs, std::string host, int number)
    : procs_(std::move(procs)), host_(std::move(host)), number_(number), states_(procs_.size()) {}

Session::Actions Session::received(std::string_view bytes) {
    Actions actions;
    messages_.append(bytes);
    try {
        while (!actions.close) {
            const std::optional<std::string> message = messages_.next();
            if (!message) break;
            obey(*message, actions);
        }
    } catch (const Error&) {
        actions.close = true;
    }
    return actions;
}

void Session::obey(std::string_view message, Actions& actions) {
    Scanner scanner(message);
    const std::string_view word = scanner.word();
    const std::vector<int> numbers = scanner.rest();
    if (word == "list") {
        const int systems[] = {0};
        actions.say += resserv::message("systems", systems);
    } else if (word == "topology" || word == "topo") {
        if (one(numbers) != 0) refuse("there is one system, 0");
        actions.say += system_text(host_, procs_);
        knows_hardware_ = true;
        tell_demand(actions);
    } else if (word == "resources" || word == "res") {
        if (one(numbers) != 0) refuse("there is one system, 0");
        actions.say += fmt::format("{{ kind System depth 0 logical 0 children {} \n", procs_.size());
        for (size_t i = 0; i < procs_.size(); ++i)
            actions.say += fmt::format("{{ kind Proc depth 1 logical {} physical {} }} \n", i, procs_[i].cpu);
        actions.say += "} \n";
    } else if (word == "access") {
        accesses_ = std::ranges::find(numbers, 0) != numbers.end();
        tell_demand(actions);
    } else if (word == "local") {
        local_ = one(numbers);
        tell_demand(actions);
    } else if (word == "remote") {
        remote_ = one(numbers);  // there is no other system
    } else if (word == "accept") {
        accept(numbers);
    } else if (word == "return") {
        give_back(numbers, actions);
    } else if (word == "help") {
        actions.say += kHelp;
    } else if (word == "state") {
        say_state(actions);
    } else if (word == "quit" || word == "shutdown") {
        actions.close = true;  // it is not the client's to end the others' server
    } else {
        refuse("there is no such message");
    }
    say_grants(actions);
}

Session::State& Session::state_of(int logical) {
    if (static_cast<size_t>(logical) >= states_.size()) refuse("there is no such processor");
    return states_[static_cast<size_t>(logical)];
}

void Session::accept(const std::vector<int>& numbers) {
    if (numbers.size() < 2 || numbers[0] != 0) refuse("processors of system 0 are wanted");
    for (size_t i = 1; i < numbers.size(); ++i) {
        State& state = state_of(numbers[i]);
        if (state == State::kNone || state == State::kHeld) refuse("this processor was not granted");
        if (state == State::kGranted) state = State::kAccepted;
    }
}

void Session::give_back(const std::vector<int>& numbers, Actions& actions) {
    if (numbers.size() < 2 || numbers[0] != 0) refuse("processors of system 0 are wanted");
    for (size_t i = 1; i < numbers.size(); ++i) {
        State& state = state_of(numbers[i]);
        const int cpu = procs_[static_cast<size_t>(numbers[i])].cpu;
        switch (state) {
            case State::kNone:
            case State::kHeld:
                refuse("this processor was not granted");
            case State::kGranted:
            case State::kAccepted:
                actions.lent.insert(cpu);
                state = State::kNone;
                break;
            case State::kRevoked:
                actions.returned.insert(cpu);
                state = State::kNone;
                break;
            case State::kRevokedAndGranted:
                state = State::kHeld;  // and told at once
                break;
        }
    }
}

Session::Actions Session::granted(const CpuSet& cpus) {
    Actions actions;
    for (size_t i = 0; i < procs_.size(); ++i) {
        if (!cpus.contains(procs_[i].cpu)) continue;
        if (states_[i] == State::kNone) states_[i] = State::kHeld;
        if (states_[i] == State::kRevoked) states_[i] = State::kRevokedAndGranted;
    }
    say_grants(actions);
    return actions;
}

Session::Actions Session::asked_back(const CpuSet& cpus) {
    Actions actions;
    std::vector<int> revoked{0};
    for (size_t i = 0; i < procs_.size(); ++i) {
        if (!cpus.contains(procs_[i].cpu)) continue;
        switch (states_[i]) {
            case State::kNone:
            case State::kHeld:
                states_[i] = State::kNone;
                actions.returned.insert(procs_[i].cpu);
                break;
            case State::kGranted:
            case State::kAccepted:
                revoked.push_back(static_cast<int>(i));
                [[fallthrough]];
            case State::kRevoked:
            case State::kRevokedAndGranted:
                states_[i] = State::kRevoked;
                break;
        }
    }
    if (revoked.size() > 1) actions.say = resserv::message("revoke", revoked);
    return actions;
}

CpuSet Session::in_use() const {
    CpuSet cpus;
    for (size_t i = 0; i < procs_.size(); ++i)
        if (states_[i] != State::kNone && states_[i] != State::kHeld) cpus.insert(procs_[i].cpu);
    return cpus;
}

void Session::say_grants(Actions& actions) {
    if (!accesses_ || !knows_hardware_) return;
    std::vector<int> granted{0};
    for (size_t i = 0; i < states_.size(); ++i) {
        if (states_[i] != State::kHeld) continue;
        states_[i] = State::kGranted;
        granted.push_back(static_cast<int>(i));
    }
    if (granted.size() > 1) actions.say += resserv::message("grant", granted);
}

void Session::tell_demand(Actions& actions) const {
    actions.demand = accesses_ && knows_hardware_ ? std::min(local_, static_cast<int>(procs_.size())) : 0;
}

int Session::count(State state) const {
    return static_cast<int>(std::ranges::count(states_, state));
}

void Session::say_state(Actions& actions) const {
    const int accepted = count(State::kAccepted);
    const int revoked = count(State::kRevoked) + count(State::kRevokedAndGranted);
    actions.say += fmt::format(
        "{{ state \n  {{ client client {} local {} remote {} \n    granted {} accepted {} revoked {} }} \n}} "
        "\n",
        number_, local_, remote_, count(State::kGranted) + accepted + revoked, accepted, revoked);
}

}  // namespace heddle::resserv
