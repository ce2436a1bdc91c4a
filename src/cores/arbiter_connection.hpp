// ArbiterConnection: a registered connection to the arbiter with its two pages (protocol.h).
//
// Made by connect_to_arbiter(), owned by ArbiterClient, whose link thread alone receives; any thread sends.
// The pages stay mapped as long as this lives, also after the arbiter has died: readers never fault. They are
// not inherited by a forked child.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/os.hpp"
#include "cores/protocol.h"
#include "heddle/cpu_set.hpp"

namespace heddle {

/// A mapping of one of the protocol's pages that unmaps itself.
class PageMapping {
  public:
    PageMapping() = default;
    /// Maps the page behind the descriptor; invalid where that fails.
    PageMapping(int page, bool writable);
    PageMapping(PageMapping&& other) noexcept;
    PageMapping& operator=(PageMapping&& other) noexcept;
    ~PageMapping();
    [[nodiscard]] bool valid() const { return address_ != nullptr; }
    template <class Page>
    [[nodiscard]] Page* as() const {
        return static_cast<Page*>(address_);
    }

  private:
    void* address_ = nullptr;
};

struct ClientDescription {
    std::string name;
    int demand = 1, min = 0, max = 0, weight = 1;
    CpuSet allowed;  ///< CPUs that the process may run on
    CpuSet held;     ///< what it holds under an arbiter that died
    CpuSet owned;    ///< its own, where the policy has owners
};

class ArbiterConnection {
  public:
    /// Throws kUnavailable where nobody listens or answers in time, and what the arbiter's refusal stands
    /// for.
    ArbiterConnection(const std::string& path, const ClientDescription& description);

    /// Sends a message that has no more than a header. One that finds the socket full is dropped: the arbiter
    /// then has others of ours to read, and looks at the page for each of them.
    void send(heddle_message_type type) const noexcept;

    /// No thread of ours is on a CPU that was taken from us up to this epoch.
    void send_left(uint32_t epoch) const noexcept;

    struct Message {
        heddle_message_type type{};
        uint32_t client = 0;  ///< of PEER and PEER_GONE
        Descriptor page;      ///< of PEER
    };
    /// Blocks. False: the arbiter is gone.
    [[nodiscard]] bool receive(Message& message) const;
    [[nodiscard]] int descriptor() const { return socket_.get(); }
    /// Only in a forked child: the descriptor is a copy of the parent's.
    void abandon() noexcept { socket_ = Descriptor(); }

    [[nodiscard]] uint32_t client() const { return client_; }
    /// The policy has owners, and what was described as owned is.
    [[nodiscard]] bool has_owners() const { return has_owners_; }
    [[nodiscard]] const heddle_grant_page& grant() const { return *grant_.as<const heddle_grant_page>(); }
    [[nodiscard]] heddle_client_page& page() const { return *page_.as<heddle_client_page>(); }

    /// What the arbiter wrote at one time.
    struct Grant {
        uint32_t epoch = 0;
        bool leaving = false;  ///< it waits for send_left()
        CpuSet cpus;
    };
    /// Nothing where it cannot be had whole: the arbiter died or was stopped half way through writing it, and
    /// what it said before still stands.
    [[nodiscard]] std::optional<Grant> read_grant() const { return read_grant(grant()); }
    [[nodiscard]] static std::optional<Grant> read_grant(const heddle_grant_page& page);

  private:
    Descriptor socket_;
    uint32_t client_ = 0;
    bool has_owners_ = false;
    PageMapping grant_, page_;
};

}  // namespace heddle
