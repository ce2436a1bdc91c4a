#include "base/os.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "base/short_turns.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace heddle {
namespace {

constexpr size_t kAffinityWords = 1024;  // of a mask as large as any kernel's

int result(long value) {
    return value < 0 ? -errno : static_cast<int>(value);
}

/// Where it may run; empty where it is not there.
std::vector<unsigned long> mask_of(pid_t thread) {
    std::vector<unsigned long> mask(kAffinityWords);
    const long bytes = ::syscall(SYS_sched_getaffinity, thread, mask.size() * sizeof(mask[0]), mask.data());
    mask.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes) / sizeof(mask[0]));
    return mask;
}

/// Calls visit with each thread of a process, as far as they are there at the time; 0, or -errno where the
/// process is not there.
template <class Visit>
int for_each_thread(pid_t pid, Visit visit) {
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(fmt::format("/proc/{}/task", pid).c_str()),
                                                    ::closedir);
    if (tasks == nullptr) return -errno;
    while (const dirent* entry = ::readdir(tasks.get()))
        if (const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)); thread > 0)
            visit(thread);
    return 0;
}

/// What follows the name of the program in a stat file; that is in brackets and may hold spaces and brackets.
std::string after_name(const std::string& stat) {
    const size_t name_ends = stat.rfind(')');
    return name_ends == std::string::npos ? "" : stat.substr(name_ends + 1);
}

/// It runs, or would if it had a CPU.
bool is_awake(pid_t process, pid_t thread) {
    std::ifstream file(fmt::format("/proc/{}/task/{}/stat", process, thread));
    std::string line;
    std::getline(file, line);
    return after_name(line).starts_with(" R");
}

/// Who it is for the system, or -1.
long user_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("Uid:")) continue;
        std::istringstream words(line.substr(4));
        long real = -1, effective = -1;
        words >> real >> effective;
        return words ? effective : -1;
    }
    return -1;
}

}  // namespace

int Os::socket_seqpacket() {
    return result(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int Os::bind_listen(int fd, const std::string& path, int backlog) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return -ENAMETOOLONG;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return -errno;
    if (::listen(fd, backlog) != 0) return -errno;
    // Who saw the file appear may have come before anybody listened: touching it tells them to come again.
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    return 0;
}

void Os::end_listening(int fd, const std::string& path) {
    ::shutdown(fd, SHUT_RD);
    ::unlink(path.c_str());
}

int Os::accept(int fd) {
    return result(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int Os::peer_credentials(int fd, PeerCredentials& credentials) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return -errno;
    if (bytes != sizeof peer || peer.pid <= 0) return -ENODATA;
    credentials = {peer.pid, peer.uid};
    return 0;
}

int Os::peer_pidfd(int fd, pid_t pid) {
    int pidfd = -1;
    socklen_t bytes = sizeof pidfd;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) == 0 && pidfd >= 0) {
        ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
        return pidfd;
    }
    // A kernel that knows the word and says no: the peer is gone, and its number may be another's by now.
    if (errno != ENOPROTOOPT) return -errno;
    PeerCredentials peer;
    if (const int failed = peer_credentials(fd, peer); failed < 0) return failed;
    const int opened = result(::syscall(SYS_pidfd_open, pid, 0));
    if (opened < 0 || user_of(pid) == static_cast<long>(peer.uid)) return opened;
    ::close(opened);
    return -ESRCH;
}

int Os::process_pidfd(pid_t pid) {
    return result(::syscall(SYS_pidfd_open, pid, 0));
}

std::optional<ProcessStatus> Os::process_status(pid_t pid) {
    const auto line = read(fmt::format("/proc/{}/stat", pid));
    if (!line) return std::nullopt;
    // The start is the 20th word after the name.
    std::istringstream words(after_name(*line));
    ProcessStatus status;
    words >> status.state >> status.parent;
    std::string word;
    for (int i = 0; i < 17; ++i) words >> word;
    words >> status.started;
    return words ? std::optional(status) : std::nullopt;
}

std::string Os::boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

ssize_t Os::receive(int fd, void* buffer, size_t bytes) {
    // MSG_TRUNC: the true length, so that a message that is too long is seen as such.
    const ssize_t got = ::recv(fd, buffer, bytes, MSG_DONTWAIT | MSG_TRUNC);
    return got < 0 ? -errno : got;
}

ssize_t Os::send(int fd, const void* buffer, size_t bytes, const std::vector<int>& descriptors) {
    iovec part{const_cast<void*>(buffer), bytes};
    msghdr packet{};
    packet.msg_iov = &part;
    packet.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    if (!descriptors.empty()) {
        if (descriptors.size() > 4) return -EINVAL;
        packet.msg_control = control;
        packet.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr* rights = CMSG_FIRSTHDR(&packet);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    const ssize_t sent = ::sendmsg(fd, &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

size_t Os::unread_bytes(int fd) {
    int bytes = 0;
    return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

void Os::hang_up(int fd) {
    (void)::shutdown(fd, SHUT_RDWR);
}

int Os::epoll_create() {
    return result(::epoll_create1(EPOLL_CLOEXEC));
}

int Os::epoll_control(int epoll, int operation, int fd, epoll_event* event) {
    return result(::epoll_ctl(epoll, operation, fd, event));
}

int Os::epoll_wait(int epoll, epoll_event* events, int count, std::optional<Nanoseconds> timeout) {
    timespec limit{};
    if (timeout) {
        const auto ns = std::max<int64_t>(timeout->count(), 0);
        limit = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    }
    return result(::epoll_pwait2(epoll, events, count, timeout ? &limit : nullptr, nullptr));
}

int Os::timer_create() {
    return result(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

int Os::timer_set(int timer, Time time) {
    itimerspec setting{};  // zero: never
    const auto ns = std::max<int64_t>(time.time_since_epoch().count(), 1);
    if (time != Time::max())
        setting.it_value = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    return result(::timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, nullptr));
}

int Os::make_page(const char* name, size_t bytes, bool read_only_for_others, void** mapping) {
    Descriptor page(static_cast<int>(::syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!page.valid()) return -errno;
    if (::ftruncate(page.get(), static_cast<off_t>(bytes)) != 0) return -errno;
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
    if (mapped == MAP_FAILED) return -errno;
    const int seals =
        F_SEAL_GROW | F_SEAL_SHRINK | (read_only_for_others ? F_SEAL_FUTURE_WRITE | F_SEAL_SEAL : 0);
    if (::fcntl(page.get(), F_ADD_SEALS, seals) != 0) {
        const int failure = errno;
        ::munmap(mapped, bytes);
        return -failure;
    }
    *mapping = mapped;
    return page.release();
}

int Os::forbid_writing(int page) {
    return result(::fcntl(page, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL));
}

int Os::map_file(const std::string& path, size_t bytes, void** mapping) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return -errno;
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return -errno;
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return -EPERM;
    // With all its blocks: a store into a hole of a full file system would be a signal.
    if (const int failure = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); failure != 0)
        return -failure;
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapped == MAP_FAILED) return -errno;
    *mapping = mapped;
    return 0;
}

void Os::unmap(void* mapping, size_t bytes) {
    ::munmap(mapping, bytes);
}

int Os::prefer_short_turns() {
    return result(heddle_prefer_short_turns());
}

int Os::bind_thread(pid_t thread, const std::vector<unsigned long>& mask) {
    const int bound = ::sched_setaffinity(thread, mask.size() * sizeof(mask[0]),
                                          reinterpret_cast<const cpu_set_t*>(mask.data()));
    return bound != 0 && errno != ESRCH ? -errno : 0;
}

int Os::bind_process(pid_t pid, const std::vector<unsigned long>& mask) {
    int failure = 0;
    const int found = for_each_thread(pid, [&](pid_t thread) {
        if (const int bound = Os::bind_thread(thread, mask); bound != 0) failure = bound;
    });
    return found < 0 ? found : failure;
}

std::map<pid_t, std::vector<unsigned long>> Os::thread_masks(pid_t pid) {
    std::map<pid_t, std::vector<unsigned long>> masks;
    (void)for_each_thread(pid, [&](pid_t thread) {
        if (std::vector<unsigned long> mask = mask_of(thread); !mask.empty())
            masks.emplace(thread, std::move(mask));
    });
    return masks;
}

std::vector<unsigned long> Os::thread_mask(pid_t pid, pid_t thread) {
    const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread);
    return ::access(path.c_str(), F_OK) == 0 ? mask_of(thread) : std::vector<unsigned long>{};
}

int Os::process_may_use(pid_t pid, const std::vector<unsigned long>& mask, bool awake) {
    int may = 0;
    const int found = for_each_thread(pid, [&](pid_t thread) {
        const std::vector<unsigned long> own = mask_of(thread);
        bool common = false;
        for (size_t i = 0; i < std::min(own.size(), mask.size()); ++i)
            common = common || (own[i] & mask[i]) != 0;
        if (common && (!awake || is_awake(pid, thread))) may = 1;
    });
    return found < 0 ? found : may;
}

Os& Os::system() {
    static Os system;
    return system;
}

uint64_t Os::identity(const std::string& path) const {
    return SystemFiles{}.identity(path);
}

std::optional<std::string> Os::read(const std::string& path) const {
    return SystemFiles{}.read(path);
}

int Os::write(const std::string& path, const std::string& text) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW));
    if (!file.valid()) return -errno;
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) return -errno;
    return static_cast<size_t>(written) == text.size() ? 0 : -EIO;
}

int Os::make_folder(const std::string& path) {
    if (const int made = result(::mkdir(path.c_str(), 0755)); made < 0) return made;
    // The process's umask may be one for sockets, with which nobody could enter it.
    return result(::chmod(path.c_str(), 0755));
}

int Os::remove_folder(const std::string& path) {
    return result(::rmdir(path.c_str()));
}

std::vector<std::string> Os::folders_in(const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr) return names;
    while (const dirent* entry = ::readdir(folder.get()))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    return names;
}

bool Os::may_write(const std::string& path) {
    return ::access(path.c_str(), W_OK) == 0;
}

}  // namespace heddle
