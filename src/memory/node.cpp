#include "memory/node.hpp"

#include <utility>

namespace heddle::memory {
namespace {

bool for_home(MessageKind kind) {
    switch (kind) {
        case MessageKind::kSlotIs:
        case MessageKind::kReadGrant:
        case MessageKind::kReadRefused:
        case MessageKind::kWriteGrant:
        case MessageKind::kWriteRefused:
        case MessageKind::kTagReached:
        case MessageKind::kReadersGone:
        case MessageKind::kDeadReaderIs:
        case MessageKind::kReadersLost:
        case MessageKind::kInvalidate:
            return false;
        default:
            return true;
    }
}

}  // namespace

/// While no message is on its way within this rank: its caching agent asks its home agent itself.
class Node::FaceToFace {
  public:
    explicit FaceToFace(Node& node) : caching_(node.caching_) { caching_.meet(&node.home_); }
    ~FaceToFace() { caching_.meet(nullptr); }
    FaceToFace(const FaceToFace&) = delete;
    FaceToFace& operator=(const FaceToFace&) = delete;

  private:
    CachingAgent& caching_;
};

std::optional<OperationResult> Node::start(ClientId client, Ticket ticket, const Operation& operation,
                                           Actions& actions) {
    std::optional<OperationResult> result;
    try {
        const FaceToFace here(*this);
        result = caching_.start(client, ticket, operation, actions);
    } catch (...) {
        settle(actions);  // copies may have gone for it
        throw;
    }
    if (!actions.messages.empty()) settle(actions);
    return result;
}

void Node::handle(const Message& message, Actions& actions) {
    if (for_home(message.kind))
        home_.handle(message, actions.messages);
    else
        caching_.handle(message, actions);
    settle(actions);
}

void Node::transferred(uint64_t access, const std::string& error, Actions& actions) {
    caching_.transferred(access, error, actions);
    if (!actions.messages.empty()) settle(actions);
}

void Node::give_up(ClientId client, Ticket ticket, Actions& actions) {
    caching_.give_up(client, ticket, actions);
    settle(actions);
}

bool Node::drop_client(LeavingClient& leaving, size_t most, Actions& actions) {
    const bool is_more = caching_.drop_client(leaving, most, actions);
    settle(actions);
    return is_more;
}

void Node::lost(Rank rank, Actions& actions) {
    home_.lost(rank, actions.messages);
    caching_.lost(rank, actions);
    settle(actions);
}

void Node::remove_cache(CacheId id, Actions& actions) {
    caching_.remove_cache(id, actions);
    settle(actions);
}

void Node::free(DataId data, Actions& actions) {
    if (atlas_.has_data(data)) {
        caching_.forget(data, actions);
        settle(actions);
        home_.forget(data);
    }
    atlas_.free(data);
}

void Node::settle(Actions& actions) {
    while (!actions.messages.empty()) {
        local_.swap(actions.messages);
        for (const Message& message : local_) {
            if (message.to != self_)
                remote_.push_back(message);
            else if (for_home(message.kind))
                home_.handle(message, actions.messages);
            else
                caching_.handle(message, actions);
        }
        local_.clear();
    }
    if (!remote_.empty()) actions.messages.swap(remote_);
}

}  // namespace heddle::memory
