// Transport: packets between all ranks of a group, whatever carries them.
//
// Packets of two ranks arrive whole and in the order of send(). One thread at a time receives and calls the
// listener, which must not block: the transport's own, or one that waits for an answer (Look). A rank that
// goes is told once to each of the others; what was sent to it is lost.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

using Packet = std::vector<std::byte>;

class Transport {
  public:
    class Listener {
      public:
        virtual ~Listener() = default;
        virtual void received(Rank from, std::span<const std::byte> packet) = 0;
        virtual void lost(Rank rank) = 0;
    };

    virtual ~Transport() = default;
    /// From now on packets are received. Once.
    virtual void start(Listener& listener) = 0;
    /// No packet is received any more when it returns; what is sent still goes.
    virtual void stop() = 0;
    /// Never blocks. Any thread; packets of two threads are in the order of their calls.
    virtual void send(Rank to, Packet packet) = 0;

    static constexpr size_t kMaxPacket = 64 * 1024;

  protected:
    friend class Look;
    /// True: the calling thread, and no other, receives until end_look(). Never blocks.
    [[nodiscard]] virtual bool begin_look() { return false; }
    /// Receives until `enough`, or for a short while.
    virtual void look(const std::function<bool()>& enough) { (void)enough(); }
    /// What comes from now on is received by the transport's own thread.
    virtual void end_look() {}
};

/// A thread that is about to wait for an answer receives it itself, where it can: that saves waking the
/// transport's thread, and then this one. Made before what it waits for is sent, so that nobody else is
/// woken.
class Look {
  public:
    /// Null: it does not.
    explicit Look(Transport* transport)
        : transport_(transport != nullptr && transport->begin_look() ? transport : nullptr) {}
    ~Look() { end(); }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    /// Until `enough`, or for a short while, and never again. The listener is called.
    void until(const std::function<bool()>& enough) {
        if (transport_ != nullptr) transport_->look(enough);
        end();
    }

  private:
    void end() {
        if (transport_ != nullptr) std::exchange(transport_, nullptr)->end_look();
    }

    Transport* transport_;
};

}  // namespace heddle::memory
