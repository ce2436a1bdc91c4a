// Node: all of one rank's part of the protocol: its home agent, its caching agent, and the messages between
// them.
//
// A pure state machine; one thread at a time. What leaves it by `Actions` is for other ranks.
#pragma once

#include "memory/caching_agent.hpp"
#include "memory/home_agent.hpp"

namespace heddle::memory {

class Node {
  public:
    explicit Node(Rank self) : self_(self), home_(self), caching_(self, atlas_) {}

    [[nodiscard]] Rank rank() const noexcept { return self_; }
    [[nodiscard]] Atlas& atlas() noexcept { return atlas_; }
    [[nodiscard]] const Atlas& atlas() const noexcept { return atlas_; }
    /// For what needs no message.
    [[nodiscard]] CachingAgent& caching() noexcept { return caching_; }
    [[nodiscard]] const CachingAgent& caching() const noexcept { return caching_; }
    [[nodiscard]] const HomeAgent& home() const noexcept { return home_; }

    /// As CachingAgent::start.
    [[nodiscard]] std::optional<OperationResult> start(ClientId client, Ticket ticket,
                                                       const Operation& operation, Actions& actions);
    void handle(const Message& message, Actions& actions);
    void transferred(uint64_t access, const std::string& error, Actions& actions);
    void give_up(ClientId client, Ticket ticket, Actions& actions);
    [[nodiscard]] bool drop_client(LeavingClient& leaving, size_t most, Actions& actions);
    /// Another rank is gone: what needs it fails, what it had is given back.
    void lost(Rank rank, Actions& actions);
    void remove_cache(CacheId id, Actions& actions);
    /// The allocation and all copies of it.
    void free(DataId data, Actions& actions);

  private:
    /// Messages to this rank go round here until there are none.
    void settle(Actions& actions);
    class FaceToFace;

    Rank self_;
    Atlas atlas_;
    HomeAgent home_;
    CachingAgent caching_;
    std::vector<Message> local_, remote_;  // empty outside of settle()
};

}  // namespace heddle::memory
