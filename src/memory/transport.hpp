// Transport: packets between all ranks of a group, whatever carries them.
//
// Packets of two ranks arrive whole and in the order of send(). One thread receives and calls the listener,
// which must not block. A rank that goes is told once to each of the others; what was sent to it is lost.
#pragma once

#include <cstddef>
#include <span>
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
};

}  // namespace heddle::memory
