// FaultyOs: the real system, in which the n-th call of one kind fails with a given errno.
//
// Not thread-safe: for a server that the test itself turns.
#pragma once

#include <array>
#include <cerrno>
#include <string_view>

#include "base/os.hpp"

namespace heddle::test {

enum class Call {
    kAccept,
    kCredentials,
    kPidfd,
    kReceive,
    kSend,
    kEpollControl,
    kEpollWait,
    kMakePage,
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
        // A test turns the server itself and must not wait for ever.
        const Nanoseconds most = std::chrono::milliseconds(5);
        return Os::epoll_wait(epoll, events, count, timeout ? std::min(*timeout, most) : most);
    }
    int make_page(const char* name, size_t bytes, bool read_only, void** mapping) override {
        return fails(Call::kMakePage) ? -error_ : Os::make_page(name, bytes, read_only, mapping);
    }
    int bind_process(pid_t pid, const std::vector<unsigned long>& mask) override {
        return fails(Call::kBind) ? -error_ : Os::bind_process(pid, mask);
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
    Call failing_ = Call::kCount;
    int first_ = 0, last_ = 0, error_ = 0, failed_ = 0;
};

}  // namespace heddle::test
