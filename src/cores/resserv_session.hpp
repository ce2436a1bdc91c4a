// Session: what a resource server knows of one S-Net program that talks to it, and what it answers.
//
// A pure state machine: what came and what was granted go in, what is to be said and done comes out. One
// thread at a time. Each processor is with the arbiter, held for the client and not told yet (it has not said
// that it is ready), granted, accepted, or revoked; nothing is granted that was revoked and has not come
// back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cores/resserv_words.hpp"

namespace heddle::resserv {

class Session {
  public:
    /// `procs` as procs_of() gives them; `number` is for the client's question for its state.
    Session(std::vector<CpuPlace> procs, std::string host, int number);

    struct Actions {
        std::string say;
        std::optional<int> demand;  ///< CPUs that the client could use from now on
        CpuSet returned;            ///< were asked back, and the client is on them no more
        CpuSet lent;                ///< the client has given them back by itself
        bool close = false;         ///< once `say` was said
    };
    /// Throws nothing: what is no message ends the connection.
    [[nodiscard]] Actions received(std::string_view bytes);
    /// These may be used by the client from now on; those that it may use already are ignored.
    [[nodiscard]] Actions granted(const CpuSet& cpus);
    [[nodiscard]] Actions asked_back(const CpuSet& cpus);
    [[nodiscard]] const std::vector<CpuPlace>& procs() const { return procs_; }
    /// Those that it was told it may use, and has not returned.
    [[nodiscard]] CpuSet in_use() const;

  private:
    enum class State : uint8_t { kNone, kHeld, kGranted, kAccepted, kRevoked, kRevokedAndGranted };

    void obey(std::string_view message, Actions& actions);
    void accept(const std::vector<int>& numbers);
    void give_back(const std::vector<int>& numbers, Actions& actions);
    void say_state(Actions& actions) const;
    void say_grants(Actions& actions);
    void tell_demand(Actions& actions) const;
    /// Of a processor that the client names; throws kBadInput where there is none.
    [[nodiscard]] State& state_of(int logical);
    [[nodiscard]] int count(State state) const;

    const std::vector<CpuPlace> procs_;
    const std::string host_;
    const int number_;
    Messages messages_;
    std::vector<State> states_;  // by logical number
    bool accesses_ = false, knows_hardware_ = false;
    int local_ = 0, remote_ = 0;
};

}  // namespace heddle::resserv
