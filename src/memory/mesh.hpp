// Mesh: the transport between ranks on one machine. They meet by Unix sockets in a folder of theirs, one
// connection of every two ranks, and give each other memory with two rings, one for each direction.
//
// Packets go by the rings. A bell, an eventfd, wakes who sleeps: who waits for packets, or for room in a
// ring. The end of the other rank's process (a pidfd) or of its socket is that of the rank. A full ring
// blocks nobody: what does not fit is kept, and pushed by the mesh's thread when there is room. After a
// packet that thread looks for the next one for a while before it sleeps (Vigil), except while somebody who
// waits for an answer does (Reception).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "memory/memory_region.hpp"
#include "memory/packet_ring.hpp"
#include "memory/reception.hpp"
#include "memory/transport.hpp"
#include "memory/vigil.hpp"

namespace heddle::memory {

class Mesh final : public Transport {
  public:
    /// Connects with all the others, which do the same with the same folder. Throws kUnavailable where one
    /// does not come in time, kVersionMismatch, kSystem.
    Mesh(Rank self, Rank ranks, const std::string& folder, Nanoseconds patience);
    ~Mesh() override;
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    void start(Listener& listener) override;
    void stop() override;
    void send(Rank to, Packet packet) override;

    [[nodiscard]] Rank self() const noexcept { return self_; }
    [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(peers_.size()); }

  protected:
    [[nodiscard]] bool begin_look() override;
    void look(const std::function<bool()>& enough) override;
    void end_look() override;

  private:
    using Ring = PacketRing<16 * 1024>;
    static_assert(Ring::kMostBytes >= kMaxPacket);
    struct Direction {
        Ring ring;
        /// When who sleeps was woken last for a packet, by who sends; in nanoseconds, of a clock that all
        /// processes have. Waking up may take longer than the packet has.
        std::atomic<int64_t> woken_ns;
    };
    /// Of two ranks.
    struct Rings {
        Direction to_higher, to_lower;
    };
    struct Peer {
        Descriptor socket;
        Descriptor process;         // a pidfd; none where the kernel tells of no process
        Descriptor bell, its_bell;  // rung by the peer, and by this rank
        std::unique_ptr<MemoryRegion> memory;
        Ring* in = nullptr;
        Ring* out = nullptr;
        std::atomic<int64_t>* in_woken_ns = nullptr;
        std::atomic<int64_t>* out_woken_ns = nullptr;
        std::mutex mutex;            // of who pushes
        std::deque<Packet> waiting;  // for room in the ring
        bool lost = false;
        std::atomic<bool> gone{false};  // written by who receives: nothing is taken any more
    };

    void connect_to(Rank rank, const std::string& folder, Time deadline);
    void accept_higher(Rank count, int listening, Time deadline);
    void have_connection(Rank rank, Descriptor socket);
    void have_rings(Rank rank, std::unique_ptr<MemoryRegion> memory);
    void watch(const Descriptor& descriptor, uint32_t as_what);
    void wake(Peer& peer);
    void send_what_waits(Nanoseconds longest);
    void run();
    /// By the mesh's thread: what there is, and what comes soon.
    void receive(std::span<const Rank> gone);
    void flush(Rank rank);
    // Of who receives, as reception_ says:
    bool take_from(Rank rank);
    bool take_all();
    /// Any thread.
    [[nodiscard]] bool all_empty() const;
    void look_all();
    /// From now on whoever sends wakes the mesh's thread. False: something is there already.
    [[nodiscard]] bool sleep_all();
    void lose(Rank rank);

    Rank self_;
    std::vector<std::unique_ptr<Peer>> peers_;
    Descriptor epoll_;
    Descriptor bell_;  // of the mesh's own thread
    std::atomic<bool> stopping_{false};
    Listener* listener_ = nullptr;
    std::vector<std::byte> buffer_;  // of who receives
    friend class Reception<Mesh>;
    Reception<Mesh> reception_;
    Vigil own_vigil_, others_vigil_;
    std::thread thread_;
};

}  // namespace heddle::memory
