// ScriptedArbiter: listens where an arbiter would, and says exactly what a test wants said to one client.
//
// Owned by one thread; no call blocks for longer than it is told to. Its end is that of an arbiter that was
// killed: the pages stay as they are in whoever has mapped them.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include "base/os.hpp"
#include "cores/codec.hpp"

namespace heddle::test {

/// A page in shared memory, as the arbiter makes them.
template <class Page>
class SharedPage {
  public:
    SharedPage() : fd_(::memfd_create("page", MFD_CLOEXEC)) {
        if (::ftruncate(fd_.get(), HEDDLE_PAGE_BYTES) != 0) return;
        void* mapped = ::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (mapped != MAP_FAILED) page_ = static_cast<Page*>(mapped);
    }
    ~SharedPage() {
        if (page_ != nullptr) ::munmap(page_, HEDDLE_PAGE_BYTES);
    }
    SharedPage(const SharedPage&) = delete;
    SharedPage& operator=(const SharedPage&) = delete;
    Page* operator->() { return page_; }
    [[nodiscard]] int descriptor() const { return fd_.get(); }

  private:
    Descriptor fd_;
    Page* page_ = nullptr;
};

class ScriptedArbiter {
  public:
    explicit ScriptedArbiter(const std::string& path)
        : path_(path), listening_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        ::unlink(path.c_str());
        grant->magic = HEDDLE_PROTOCOL_MAGIC;
        grant->version = HEDDLE_PROTOCOL_VERSION;
        works_ = ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                 ::listen(listening_.get(), 4) == 0 &&
                 ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;  // as Os::bind_listen
    }
    ~ScriptedArbiter() { ::unlink(path_.c_str()); }
    ScriptedArbiter(const ScriptedArbiter&) = delete;
    ScriptedArbiter& operator=(const ScriptedArbiter&) = delete;

    /// Waits for a client's HELLO. False: none came.
    bool receive_hello(heddle_hello& hello) {
        if (!works_ || !readable(listening_.get())) return false;
        socket_ = Descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        return readable(socket_.get()) &&
               ::recv(socket_.get(), &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello);
    }
    /// Takes the client in, with the pages as they are now.
    bool welcome(uint32_t client) {
        auto message = message_of<heddle_welcome>(HEDDLE_WELCOME);
        message.client = client;
        message.cpus = HEDDLE_MAX_CPUS;
        const int pages[2] = {grant.descriptor(), page.descriptor()};
        return send(&message, sizeof message, pages);
    }
    /// Says why it does not take the client in, and closes its socket.
    bool refuse(heddle_refusal code) {
        auto message = message_of<heddle_refused>(HEDDLE_REFUSED);
        message.code = code;
        const bool sent = send(&message, sizeof message, {});
        socket_ = Descriptor();
        return sent;
    }
    bool introduce(uint32_t client, int its_page) {
        auto message = message_of<heddle_peer>(HEDDLE_PEER);
        message.client = client;
        return send(&message, sizeof message, {&its_page, 1});
    }
    bool say_changed() {
        auto message = message_of<heddle_epoch_message>(HEDDLE_CHANGED);
        message.epoch = grant->epoch.load();
        return send(&message, sizeof message, {});
    }

    SharedPage<heddle_grant_page> grant;
    SharedPage<heddle_client_page> page;

  private:
    static bool readable(int fd) {
        pollfd ready{fd, POLLIN, 0};
        return ::poll(&ready, 1, 5000) == 1;
    }
    bool send(const void* bytes, size_t length, std::span<const int> descriptors) {
        alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
        iovec part{const_cast<void*>(bytes), length};
        msghdr packet{};
        packet.msg_iov = &part;
        packet.msg_iovlen = 1;
        if (!descriptors.empty()) {
            packet.msg_control = control;
            packet.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
            cmsghdr* rights = CMSG_FIRSTHDR(&packet);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
            std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
        }
        return ::sendmsg(socket_.get(), &packet, MSG_NOSIGNAL) == static_cast<ssize_t>(length);
    }

    std::string path_;
    Descriptor listening_, socket_;
    bool works_ = false;
};

}  // namespace heddle::test
