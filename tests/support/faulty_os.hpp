// FaultyOs: the real system, in which the n-th call of one kind fails with a given errno.
//
// Not thread-safe: for a server that the test itself turns.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "base/os.hpp"

namespace heddle::test {

enum class Call {
    kSocket,
    kBindListen,
    kEpollCreate,
    kAccept,
    kCredentials,
    kPidfd,
    kReceive,
    kSend,
    kEpollControl,
    kEpollWait,
    kMakePage,
    kForbidWriting,
    kMapFile,
    kProcessPidfd,
    kBind,
    kCount
};

class FaultyOs final : public Os {
  public:
    /// The n-th call of this kind from now on, from 1, and `more` after it.
    void fail(Call call, int nth, int error, int more = 0) {
        failing_ = call;
        first_ = seen_[index(call)] + nth;
        last_ = first_ + more;
        error_ = error;
        failed_ = 0;
    }
    void heal() { failing_ = Call::kCount; }
    [[nodiscard]] int failed() const { return failed_; }
    [[nodiscard]] int seen(Call call) const { return seen_[index(call)]; }

    /// A test turns the server itself and must not wait for ever.
    void wait_at_most(Nanoseconds patience) { patience_ = patience; }

    int socket_seqpacket() override { return fails(Call::kSocket) ? -error_ : Os::socket_seqpacket(); }
    int bind_listen(int fd, const std::string& path, int backlog) override {
        return fails(Call::kBindListen) ? -error_ : Os::bind_listen(fd, path, backlog);
    }
    int epoll_create() override { return fails(Call::kEpollCreate) ? -error_ : Os::epoll_create(); }
    int accept(int fd) override { return fails(Call::kAccept) ? -error_ : Os::accept(fd); }
    int peer_credentials(int fd, PeerCredentials& credentials) override {
        return fails(Call::kCredentials) ? -error_ : Os::peer_credentials(fd, credentials);
    }
    int peer_pidfd(int fd, pid_t pid) override {
        return fails(Call::kPidfd) ? -error_ : Os::peer_pidfd(fd, pid);
    }
    ssize_t receive(int fd, void* buffer, size_t bytes) override {
        return fails(Call::kReceive) ? -error_ : Os::receive(fd, buffer, bytes);
    }
    ssize_t send(int fd, const void* buffer, size_t bytes, const std::vector<int>& descriptors) override {
        return fails(Call::kSend) ? -error_ : Os::send(fd, buffer, bytes, descriptors);
    }
    int epoll_control(int epoll, int operation, int fd, epoll_event* event) override {
        return fails(Call::kEpollControl) ? -error_ : Os::epoll_control(epoll, operation, fd, event);
    }
    int epoll_wait(int epoll, epoll_event* events, int count, std::optional<Nanoseconds> timeout) override {
        if (fails(Call::kEpollWait)) return -error_;
        return Os::epoll_wait(epoll, events, count, timeout ? std::min(*timeout, patience_) : patience_);
    }
    int make_page(const char* name, size_t bytes, bool read_only, void** mapping) override {
        return fails(Call::kMakePage) ? -error_ : Os::make_page(name, bytes, read_only, mapping);
    }
    int forbid_writing(int page) override {
        return fails(Call::kForbidWriting) ? -error_ : Os::forbid_writing(page);
    }
    int map_file(const std::string& path, size_t bytes, void** mapping) override {
        return fails(Call::kMapFile) ? -error_ : Os::map_file(path, bytes, mapping);
    }
    int process_pidfd(pid_t pid) override {
        return fails(Call::kProcessPidfd) ? -error_ : Os::process_pidfd(pid);
    }
    /// Binds nothing: the clients are this very process.
    int bind_process(pid_t, const std::vector<unsigned long>&) override {
        return fails(Call::kBind) ? -error_ : 0;
    }
    int bind_thread(pid_t, const std::vector<unsigned long>&) override {
        return fails(Call::kBind) ? -error_ : 0;
    }

  private:
    static size_t index(Call call) { return static_cast<size_t>(call); }
    bool fails(Call call) {
        const int now = ++seen_[index(call)];
        if (call != failing_ || now < first_ || now > last_) return false;
        ++failed_;
        return true;
    }

    std::array<int, static_cast<size_t>(Call::kCount)> seen_{};
    Nanoseconds patience_ = std::chrono::milliseconds(5);
    Call failing_ = Call::kCount;
    int first_ = 0, last_ = 0, error_ = 0, failed_ = 0;
};

}  // namespace heddle::test
