// Server: the thin shell around the arbiter: one socket, one epoll, the pages of the clients.
//
// One thread runs it and owns all of it. It never blocks on a client: what a client does not read waits in a
// bounded queue, and who overruns it is dropped. Identity comes from the kernel alone (SO_PEERCRED, pidfd). A
// message is copied, then validated (codec.hpp); a word of a client's page is read once and bounded. A client
// that dies is noticed by its pidfd, one that closes its socket by that; both give their CPUs back in the
// same turn of the loop.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "arbiter/arbiter.hpp"
#include "arbiter/cpuset_fence.hpp"
#include "arbiter/memory_reserve.hpp"
#include "arbiter/saved_clients.hpp"
#include "base/clock.hpp"
#include "base/file_watch.hpp"
#include "base/os.hpp"
#include "cores/codec.hpp"

namespace heddle {

struct ServerConfig {
    std::string path;          ///< of the socket; its folder exists
    bool other_users = false;  ///< serve users other than our own (a system-wide daemon)
    int connections = 512;
    int connections_per_user = 128;  ///< of users other than our own
    Nanoseconds handshake = std::chrono::seconds(1);
    size_t queued_bytes = 1 << 20;  ///< waiting for one peer to read them
    /// Where to save who holds what, for the next arbiter; empty: nowhere.
    std::string state_path;
    /// How long a living client of the arbiter before may take to come back.
    Nanoseconds away_at_most = std::chrono::seconds(10);
    /// Tells this arbiter's cpuset groups from those of others (cpuset_fence.hpp); empty: it makes none.
    std::string fence_tag;
    std::optional<Nanoseconds> idle_exit;  ///< stop after so long without a connection
    /// Spent where the system has no memory left: then nobody new is taken in, and whoever asks for the
    /// status or watches is hung up on. Outlives the server; none: an allocation that fails ends run().
    MemoryReserve* reserve = nullptr;
};

class Server {
  public:
    /// Listens. With `listening` >= 0 that socket is taken over (socket activation). Throws kSystem, or
    /// kLimit where the path is too long.
    Server(ServerConfig config, Arbiter arbiter, Os& os, Clock& clock, int listening = -1);
    ~Server();

    /// Serves until stop() or until idle for long enough. Whatever else fails is tried again or costs one
    /// connection; throws kSystem only where the kernel cannot wait on our own epoll, and std::bad_alloc
    /// where a turn needs more memory than the reserve has.
    void run();
    /// Logs what fences there are, and ends those that an arbiter before this one left behind. Before it is
    /// said to be ready: it may take some ms.
    void look_for_fences();
    /// One turn of the loop; false when run() would end.
    bool turn();
    /// From a signal handler or another thread.
    void stop() { stopping_ = true; }
    /// Calls back in a turn in which the descriptor is readable; it stays the caller's.
    void on_readable(int fd, std::function<void()> callback);
    /// What there is to hand out has changed.
    void set_cpus(const CpuSet& cpus) { arbiter_.set_cpus(cpus, clock_.now()); }

    [[nodiscard]] const Arbiter& arbiter() const { return arbiter_; }
    [[nodiscard]] size_t connections() const { return connections_.size(); }
    /// Called in each turn, where the server is awake anyway.
    std::function<void()> on_turn = [] {};
    /// Called with each thing worth a line in a log.
    std::function<void(const std::string&)> log = [](const std::string&) {};

  private:
    struct Connection;
    /// What a connection has asked for and was not answered; it is not read meanwhile.
    enum class Asked { kNothing, kStatus, kWatch };
    /// A client of the arbiter before, alive, that has not come back yet.
    struct Away {
        Descriptor pidfd;
        PeerCredentials process;
        std::string name;
    };

    /// What a connection that is closed has not read. Descriptors among that stay in the system, at our cost.
    struct Unread {
        Descriptor socket;
        uid_t user;
    };

    /// A client that was kept from CPUs by force, and has not done since what it was asked to.
    struct Fenced {
        CpuSet off;  ///< the CPUs, without those that it got again
        Time look_at;
        Nanoseconds rest;                ///< after that look
        int offences = 0;                ///< how often it undid the fence
        int excuses = 0;                 ///< how often it claimed to start a program, in a row
        CpuSet bound;                    ///< where its threads were bound last
        std::map<pid_t, CpuSet> before;  ///< and where each was that was elsewhere
        bool binds_threads = false;      ///< as of its connection
        bool obeyed = false;
    };

    void listen();
    void watch(int fd);
    [[nodiscard]] bool somebody_came();
    void accept_some();
    void pause_accepting();
    void resume_accepting();
    void refuse_unwanted(Connection& connection);
    void receive_from(Connection& connection);
    void handle(Connection& connection, Request request);
    void answer_later(Connection& connection, Asked asked);
    void answer_one();
    void hello(Connection& connection, const HelloRequest& request);
    void restore_clients();
    [[nodiscard]] bool restore_client(int place, const SavedClient& saved);
    void forget_away(std::map<ClientId, Away>::iterator away, bool died);
    void forget_those_away_too_long();
    [[nodiscard]] ClientId who_returns(const Connection& connection, const HelloRequest& request) const;
    [[nodiscard]] uint32_t around(const Connection& connection, const Reservation& asks) const;
    void save(ClientId client, const CpuSet& cpus);
    void refuse_registration(Connection& connection, Refusal refusal, const HelloRequest& request);
    void refuse(Connection& connection, uint32_t code, const std::string& reason);
    void send_status(Connection& connection);
    void queue_components(Connection& connection, ClientId client);
    void start_watching(Connection& connection);
    void close(Connection& connection, bool died);

    /// The client's page is mapped; others may see it.
    void mapped(Connection& connection);
    void introduce(Connection& to, ClientId peer);
    void forget_peer(ClientId peer);
    /// Tells the arbiter what the client's release words say. The grants of `ending` are over: from now on
    /// nobody may take these CPUs from the client. With `take`, CPUs that were released to nobody are taken;
    /// those that the client was to leave always are.
    void read_releases(Connection& connection, const CpuSet& ending, bool take, bool join_follows = false);
    void take_lent(bool join_follows);
    void read_pages();
    void read_page(Connection& connection, bool urgent);
    void apply_actions();
    void apply(const Publish& publish);
    void apply(const Fence& fence);
    void fence_off(ClientId client, pid_t process);
    void move_bound(pid_t process, Fenced& fenced, const CpuSet& to);
    void free_witness(pid_t process, const Fenced& fenced);
    /// False: some threads are not as before, yet.
    [[nodiscard]] bool undo_binding(pid_t process, Fenced& fenced);
    [[nodiscard]] bool wants_none(pid_t process) const;
    void show_fenced(pid_t process);
    void look_at_fenced();
    void look_at(ClientId client, Fenced& fenced);
    /// Some thread may run on a CPU that the process is kept from, other than to start a program.
    [[nodiscard]] bool has_undone(ClientId client, Fenced& fenced, const CpuSet& off);
    void look_at_limits();
    void look_at_limits_of(Connection& connection);
    void look_at_witness(Connection& connection);
    void limits_were_written();
    void watch_limits(Connection& connection, const std::vector<std::string>& files);
    void look_for_those_that_are_stopped();
    void look_whether_stopped(Connection& connection);
    /// Of a program that was stopped.
    void goes_on(Connection& connection);
    /// In the log once, where no cpuset group can be had.
    void tell_what_fences();
    /// The client obeys `epoch` of its grant.
    void end_fence_of_one_that_obeys(ClientId client, uint32_t epoch);
    void forget_fenced(ClientId client, pid_t process, bool died);
    void fit_fence(ClientId client);
    [[nodiscard]] pid_t process_of(ClientId client) const;
    /// All clients that a process is: the CPUs that it may still be on, or with `stays`, that it may stay on.
    [[nodiscard]] CpuSet cpus_of_process(pid_t process, bool stays) const;
    void apply(const EndByForce& ended);
    void apply(const NameSuccessor& named);
    void apply(const NameLender& named);
    void apply(const Event& event);
    void send_or_wait(Connection& connection);
    template <class Message>
    void queue(Connection& connection, const Message& message);
    void want_writable(Connection& connection, bool on);
    void drop_if_overrun(Connection& connection);
    [[nodiscard]] bool short_of_memory() const {
        return config_.reserve != nullptr && config_.reserve->spent();
    }
    [[nodiscard]] Connection* connection_of(ClientId client) const;
    /// Of the client behind `last`, which it is from now on. Null: there is none.
    [[nodiscard]] Connection* next_in_turn(ClientId& last) const;
    [[nodiscard]] std::optional<Nanoseconds> time_to_wait() const;
    void end_silent_handshakes();
    void forget_what_was_read();

    ServerConfig config_;
    Arbiter arbiter_;
    Os& os_;
    Clock& clock_;
    Time started_;
    Time idle_since_;
    Time decided_at_;
    bool activated_;  ///< the listening socket was passed to us
    Descriptor listening_;
    Descriptor epoll_;
    std::map<int, std::unique_ptr<Connection>> connections_;  // by socket
    std::deque<int> asking_;                                  // sockets, in the order of their answers
    std::vector<Unread> unread_;
    // A peer that dies hangs up before its queue is empty. At those that keep it, ever more seldom.
    std::optional<Time> look_at_unread_at_;
    Nanoseconds unread_rest_{0};
    std::map<int, int> sockets_by_pidfd_;
    std::map<ClientId, int> sockets_by_client_;
    SavedClients saved_;
    bool restored_ = false;
    std::map<ClientId, int> places_;  // in saved_
    std::map<ClientId, Away> away_;
    std::map<int, ClientId> away_by_pidfd_;
    CpusetFence fence_;
    std::map<ClientId, Fenced> fenced_;
    ClientId looked_whether_stopped_;
    std::deque<ClientId> limits_unknown_;   // of newcomers, and where somebody wrote them
    std::optional<FileWatch> limit_files_;  // of all clients, where the machine is real
    ClientId looked_at_limits_of_;
    Time looked_at_limits_;
    std::vector<int> closed_;  // during this turn: events for them are stale
    std::atomic<bool> stopping_ = false;
    std::map<int, std::function<void()>> callbacks_;  // by descriptor
    uint64_t turn_ = 0;
    std::optional<Time> read_again_at_;    // while a client got another grant in the turn it was read in
    std::optional<Time> accept_again_at_;  // while there is no descriptor or memory for another connection
    bool retry_writable_ = false;          // some want_writable() failed
};

}  // namespace heddle
