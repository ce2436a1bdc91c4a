// Observer: reads an arbiter's status, or watches what it decides.
//
// Owned and used by one thread. Takes no CPUs and no part. When the arbiter goes away, calls throw
// kUnavailable.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "cores/protocol.h"
#include "heddle/cores.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct ArbiterSnapshot {
    struct Cpu {
        int cpu;
        uint32_t client;             ///< 0: nobody
        bool leaving;                ///< its holder was asked to leave it
        std::string component = {};  ///< of the client, that may use it; "": none, or not known
    };
    /// As its client says, when last asked; asking for the status asks for the next one.
    struct Component {
        uint32_t client;
        std::string name;
        CpuSet cpus;
        WorkCounts work;
    };
    struct Client {
        uint32_t id, pid, uid;
        std::string name;
        int demand, min, max, weight, target;
        CpuSet granted;
        CpuSet owned;        ///< empty under a policy without owners
        CpuSet lent;         ///< of its own, those that others hold
        bool away;           ///< of an arbiter before this one, alive, and not back yet
        uint32_t fenced;     ///< as protocol.h says
        double cpu_seconds;  ///< core-seconds granted so far
    };
    uint32_t pid = 0;
    std::string policy;
    double uptime_s = 0;
    /// Core-seconds so far: granted to clients, of these on CPUs of another owner, and granted to nobody.
    double used_s = 0, lent_s = 0, idle_s = 0;
    std::vector<Cpu> cpus;
    std::vector<Client> clients;
    std::vector<Component> components;
};

class Observer {
  public:
    /// Connects to the arbiter at `path`. Throws kUnavailable where none listens or answers, kVersionMismatch
    /// where it speaks another protocol, kPermission where it does not serve this user.
    explicit Observer(const std::string& path);

    /// Where the arbiter of this user's environment listens. Throws kUnavailable where HEDDLE_ARBITER is off.
    [[nodiscard]] static std::string default_path();

    [[nodiscard]] ArbiterSnapshot status();
    /// From now on next_event() gives what happens; the present state comes first, as events.
    void watch();
    /// The next event, or nothing within the timeout.
    [[nodiscard]] std::optional<heddle_event> next_event(Nanoseconds timeout);
    /// To wait for events together with something else: readable when next_event() has something.
    [[nodiscard]] int descriptor() const { return socket_.get(); }

  private:
    union Message {
        heddle_header header;
        heddle_refused refused;
        heddle_status_head head;
        heddle_status_cpu_list cpus;
        heddle_status_client client;
        heddle_status_component component;
        heddle_event event;
        std::byte bytes[HEDDLE_MESSAGE_BYTES];
    };
    /// False at the timeout.
    [[nodiscard]] bool receive(Message& message, Nanoseconds timeout);
    void send(const void* bytes, size_t length);

    std::string path_;
    Descriptor socket_;
};

}  // namespace heddle
