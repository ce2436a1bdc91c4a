// Mesh: the transport between ranks on one machine: Unix sockets in a folder of theirs, one connection of
// every two ranks.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "memory/transport.hpp"

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
