// IpcSession: what a server does for one client of another process: its requests in, replies out.
//
// It knows nothing of sockets. One thread calls handle() and close(); replies are sent by that one and by
// those of the server in which operations end. What the client sends is taken as hostile; so is what it
// writes into memory that it shares with the server, which is only ever copied.
//
// A private cache is mapped by its client for writing: nobody else sees it. Of a shareable one a client can
// only read the payload. What it may write lies in a region of its own of the same size, at the same place,
// and is copied when it is got and when it is put: so no client can change what another one reads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>

#include "memory/ipc_wire.hpp"
#include "memory/server_state.hpp"

namespace heddle::memory {

class IpcSession : public std::enable_shared_from_this<IpcSession> {
  public:
    using Regions = std::vector<std::shared_ptr<MemoryRegion>>;

    /// Where replies go, and what takes long. Outlives the session's last call.
    class Host {
      public:
        virtual ~Host() = default;
        /// Never blocks, nor calls the session. Any thread. `untold` is called later where the client is gone
        /// before the packet could be sent.
        virtual void reply(uint64_t session, Packet packet, Regions regions,
                           std::function<void()> untold) = 0;
        /// Calls it in another thread, one after the other.
        virtual void do_later(std::function<void()> work) = 0;
        [[nodiscard]] virtual std::string status() = 0;
    };

    IpcSession(ServerState& server, Host& host, uint64_t id) : server_(server), host_(host), id_(id) {}

    /// False: the client does not keep to the protocol; it is to be closed.
    [[nodiscard]] bool handle(std::span<const std::byte> packet);
    /// The client is gone. Once, at the end.
    void close();

    [[nodiscard]] uint64_t id() const noexcept { return id_; }
    /// "" before it has said hello.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

  private:
    using Attached = ServerState::AttachedCache;

    void deal_with(uint64_t number, ipc::Request& request);
    void begin(uint64_t number, Operation operation);
    void ended(uint64_t number, std::shared_ptr<MemoryRegion> staging, OperationState::Outcome outcome);
    void give_up(uint64_t number);
    void change(uint64_t number, ipc::Request request);
    Attached& keep(Attached cache);
    void show_cache(uint64_t number, const Attached& cache);
    void hold_pinned(uint64_t number, const ipc::HoldPinned& wanted);
    [[nodiscard]] Attached& attached(CacheId cache);
    /// What it wrote is where the server puts it from. What an earlier put is still being read from stays:
    /// the client was not to write there.
    void fetch_written(Attached& cache, const LocalRange& source);
    using Source = std::tuple<CacheId, uint64_t, uint64_t>;
    void forget_source(const Source& source);
    /// False: the client is gone.
    bool reply(uint64_t number, const ipc::Reply& reply, Regions regions = {},
               std::function<void()> untold = {});

    ServerState& server_;
    Host& host_;
    uint64_t id_;
    std::string name_;
    ClientId client_ = 0;  // 0: before hello
    bool leaves_in_order_ = false;
    /// As a reader: at least as many as registrations there are.
    size_t reader_changes_ = 0;
    std::map<CacheId, Attached> caches_;

    std::mutex mutex_;
    /// Where puts under way read, by cache, offset and end: how many do.
    std::map<Source, size_t> sources_;
    std::unordered_map<uint64_t, std::shared_ptr<OperationState>> running_;
    size_t held_ = 0;
    size_t changes_ = 0;
    bool closed_ = false;
};

}  // namespace heddle::memory
