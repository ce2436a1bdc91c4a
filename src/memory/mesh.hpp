// Mesh: packets between all ranks of a group on one machine, over Unix sockets in a folder of theirs.
//
// Every two ranks have one connection: packets arrive whole and in the order of send(). One thread receives
// and calls the listener, which must not block. A rank that goes is told once to each of the others; what was
// sent to it is lost.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "heddle/memory_types.hpp"

namespace heddle::memory {

using Packet = std::vector<std::byte>;

class Mesh {
  public:
    class Listener {
      public:
        virtual ~Listener() = default;
        virtual void received(Rank from, std::span<const std::byte> packet) = 0;
        virtual void lost(Rank rank) = 0;
    };

    /// Connects with all the others, which do the same with the same folder. Throws kUnavailable where one
    /// does not come in time, kVersionMismatch, kSystem.
    Mesh(Rank self, Rank ranks, const std::string& folder, Nanoseconds patience);
    ~Mesh();
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    /// From now on packets are received. Once.
    void start(Listener& listener);
    /// No packet is received any more when it returns; what is sent still goes.
    void stop();
    /// Never blocks. Any thread; packets of two threads are in the order of their calls.
    void send(Rank to, Packet packet);

    [[nodiscard]] Rank self() const noexcept { return self_; }
    [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(peers_.size()); }

    static constexpr size_t kMaxPacket = 64 * 1024;

  private:
    struct Peer {
        Descriptor socket;
        std::mutex mutex;
        std::deque<Packet> waiting;  // for room in the socket
        bool lost = false;
    };

    void connect_to(Rank rank, const std::string& folder, Time deadline);
    void accept_higher(Rank count, int listening, Time deadline);
    void run();
    void receive(Rank rank);
    void flush(Rank rank);
    void lose(Rank rank);
    void watch(Rank rank, bool for_writing);

    Rank self_;
    std::vector<std::unique_ptr<Peer>> peers_;
    Descriptor epoll_;
    Descriptor stop_;
    Listener* listener_ = nullptr;
    std::thread thread_;
};

}  // namespace heddle::memory
