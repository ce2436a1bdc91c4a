// IpcService: the socket on which a server takes clients of other processes, and a session for each.
//
// One thread waits for all of them and never blocks: a client that does not read what it is told is not
// listened to, until it does; nor has it more than a few descriptors on their way, of which a user has a
// bounded number. Another one makes what takes long (segments and allocations, which all ranks have to agree
// on). Who a client is the kernel tells (SO_PEERCRED, a pidfd): when its process ends it is gone, also where
// a child of it still has the socket.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/os.hpp"
#include "memory/ipc_session.hpp"

namespace heddle::memory {

class IpcService : private IpcSession::Host {
  public:
    /// Throws as IpcServer. `os` outlives it, and is called by its thread.
    IpcService(ServerState& server, std::string path, Os& os);
    ~IpcService() override;
    IpcService(const IpcService&) = delete;
    IpcService& operator=(const IpcService&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    struct Outgoing {
        Packet packet;
        IpcSession::Regions regions;
        std::function<void()> untold;
    };
    struct Peer {
        Descriptor socket, pidfd;
        PeerCredentials who;
        std::shared_ptr<IpcSession> session;
        std::mutex mutex;
        std::deque<Outgoing> waiting;  // for room in the socket
        size_t shown = 0;              // descriptors, since it had read all
    };
    enum class Sent { kYes, kWhenThereIsRoom, kLater, kNever };

    void listen();
    void remove_socket_file() const;
    void run();
    void accept_one();
    /// There is no descriptor for one more.
    void refuse_one();
    void receive(const std::shared_ptr<Peer>& peer);
    /// False: there is nothing more for now, or it is closed.
    [[nodiscard]] bool take_packet(Peer& peer);
    /// Its process has ended: what it had sent before is still done.
    void end(Peer& peer);
    void flush(Peer& peer);
    void close(uint64_t id);
    [[nodiscard]] Sent send(Peer& peer, const Outgoing& outgoing);
    /// The caller has the peer's lock.
    void wait_to_send(Peer& peer, Sent why);
    void watch(const Peer& peer, uint32_t events);
    void watch_listening(uint32_t events);
    /// Who calls is not seen until retry(): the thread would do nothing else than try.
    void stop_listening_for_now();
    /// What nothing tells of when it can be done is tried again a moment later.
    void retry_soon();
    void retry();
    [[nodiscard]] std::shared_ptr<Peer> peer_of(uint64_t id);

    void reply(uint64_t session, Packet packet, IpcSession::Regions regions,
               std::function<void()> untold) override;
    void is_never_told(Outgoing& outgoing);
    void do_later(std::function<void()> work) override;
    [[nodiscard]] std::string status() override;
    void run_clerk();
    void end_clerk();

    ServerState& server_;
    std::string path_;
    std::pair<dev_t, ino_t> socket_file_{};  // another server may have put its own there
    Os& os_;
    Descriptor listening_, epoll_, stop_;
    Descriptor reserve_;  // to be given up for a moment, so that one can be told that there is none left
    Descriptor retry_;    // a timer
    std::atomic<bool> will_retry_{false};  // it is set
    bool listens_ = true;

    std::mutex peers_mutex_;
    std::map<uint64_t, std::shared_ptr<Peer>> peers_;  // changed by the thread alone
    uint64_t last_peer_ = 0;

    std::mutex clerk_mutex_;
    std::condition_variable for_clerk_;
    std::deque<std::function<void()>> to_do_;
    bool stopping_ = false;

    std::thread clerk_;
    std::thread thread_;
};

}  // namespace heddle::memory
