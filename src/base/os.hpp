// Os: every system call of the daemon behind one narrow interface, so that tests inject any errno at any
// call.
//
// Each function does what the system call of its name does and returns -errno on failure. It is also the
// FileSystem that the daemon reads /proc and /sys by. No state; any thread.
#pragma once

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/file_system.hpp"

namespace heddle {

struct PeerCredentials {
    pid_t pid = 0;
    uid_t uid = 0;
};

struct ProcessStatus {
    char state = 0;  ///< as in /proc/PID/stat: 'T' is stopped
    pid_t parent = 0;
    uint64_t started = 0;  ///< in the kernel's ticks since the boot; with its pid it names a process for ever
};

/// An error that is no fault of the descriptor: the same call may succeed a moment later.
[[nodiscard]] constexpr bool is_passing(ssize_t result) {
    return result == -EAGAIN || result == -EINTR || result == -ENOMEM || result == -ENOBUFS;
}

class Os : public FileSystem {
  public:
    /// One for all who inject nothing.
    [[nodiscard]] static Os& system();

    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override;
    [[nodiscard]] uint64_t identity(const std::string& path) const override;
    /// Writes to a file that exists, all in one call, as the kernel's own files ask for.
    virtual int write(const std::string& path, const std::string& text);
    virtual int make_folder(const std::string& path);
    /// Removes an empty folder; a control group counts as empty where it has neither processes nor children.
    virtual int remove_folder(const std::string& path);
    /// The names of the folders in a folder; none where it cannot be read.
    virtual std::vector<std::string> folders_in(const std::string& path);
    virtual bool may_write(const std::string& path);

    virtual int socket_seqpacket();
    /// Binds to a path and listens. `backlog` connections may wait.
    virtual int bind_listen(int fd, const std::string& path, int backlog);
    /// From now on nobody can connect; those who wait to be accepted still can be. Removes the path.
    virtual void end_listening(int fd, const std::string& path);
    virtual int accept(int fd);
    virtual int peer_credentials(int fd, PeerCredentials& credentials);
    /// A pidfd of the peer: SO_PEERPIDFD where the kernel has it, else pidfd_open of the pid.
    virtual int peer_pidfd(int fd, pid_t pid);
    /// A pidfd of any process.
    virtual int process_pidfd(pid_t pid);
    /// Nothing where there is no such process, or the system does not say.
    virtual std::optional<ProcessStatus> process_status(pid_t pid);
    /// Another one after each boot; "" where the system does not tell.
    virtual std::string boot_id();
    /// Never block. Bytes, or -EAGAIN.
    virtual ssize_t receive(int fd, void* buffer, size_t bytes);
    virtual ssize_t send(int fd, const void* buffer, size_t bytes, const std::vector<int>& descriptors);

    /// Of what was sent and has not been read, with what the kernel has beside it; 0: all was read.
    virtual size_t unread_bytes(int fd);
    /// The peer reads what is there, and then the end.
    virtual void hang_up(int fd);

    virtual int epoll_create();
    virtual int epoll_control(int epoll, int operation, int fd, epoll_event* event);
    /// Waits until an event or the timeout (none: for ever).
    virtual int epoll_wait(int epoll, epoll_event* events, int count, std::optional<Nanoseconds> timeout);

    /// A timer on the monotonic clock, readable from its time on until it is set anew.
    virtual int timer_create();
    /// Time::max(): never.
    virtual int timer_set(int timer, Time time);

    /// A shared, zeroed region that cannot grow or shrink; with `read_only_for_others`, nobody can map it for
    /// writing after this call. Gives the descriptor and the caller's own writable mapping.
    virtual int make_page(const char* name, size_t bytes, bool read_only_for_others, void** mapping);
    /// From now on nobody can map the page for writing; mappings that exist stay.
    virtual int forbid_writing(int page);
    /// Maps a private file of this user for writing, made where there is none, with all its blocks.
    virtual int map_file(const std::string& path, size_t bytes, void** mapping);
    virtual void unmap(void* mapping, size_t bytes);

    /// Asks for short turns on the CPU, so that the calling thread is on it soon after it wakes, even on a
    /// busy machine (sched_setattr's sched_runtime, Linux 6.12). Harmless where the kernel does not know it.
    virtual int prefer_short_turns();
    /// Binds each thread of a process; 0 when every thread that still lives was bound.
    virtual int bind_process(pid_t pid, const std::vector<unsigned long>& mask);
    /// One thread; 0 also where it has ended.
    virtual int bind_thread(pid_t thread, const std::vector<unsigned long>& mask);
    /// Where each thread of a process may run; none where the system does not say.
    [[nodiscard]] virtual std::map<pid_t, std::vector<unsigned long>> thread_masks(pid_t pid);
    /// Where one of them may run; empty where it is none of them.
    [[nodiscard]] virtual std::vector<unsigned long> thread_mask(pid_t pid, pid_t thread);
    /// 1 where some thread of the process may run on a CPU of the mask, 0 where none may. With `awake`, a
    /// thread that waits for something is none.
    virtual int process_may_use(pid_t pid, const std::vector<unsigned long>& mask, bool awake);
};

}  // namespace heddle
