// What the arbiter asks the system about its peers.
#include "base/os.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/temporary_folder.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace heddle::test {
namespace {

/// The number of a peer that is gone may be another process's by now: here it is this one's.
TEST(Os, NoDescriptorOfWhoHasTheNumberOfAPeerThatIsGone) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const Descriptor listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listening.get(), 1), 0);
    const pid_t peer = ::fork();
    if (peer == 0) {
        const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
        ::_exit(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
    }
    int status = -1;
    ASSERT_EQ(::waitpid(peer, &status, 0), peer);
    ASSERT_EQ(status, 0);
    const Descriptor accepted(::accept(listening.get(), nullptr, nullptr));
    int known = -1;
    socklen_t bytes = sizeof known;
    if (::getsockopt(accepted.get(), SOL_SOCKET, SO_PEERPIDFD, &known, &bytes) != 0 && errno == ENOPROTOOPT)
        GTEST_SKIP() << "this kernel cannot tell";
    const Descriptor kept(known);

    Os os;
    const Descriptor found(os.peer_pidfd(accepted.get(), ::getpid()));
    if (!found.valid()) return;
    // Kernels from 6.16 on keep one of who is gone: it must be that one's, which has ended.
    EXPECT_NE(::syscall(SYS_pidfd_send_signal, found.get(), 0, nullptr, 0), 0);
}

/// An arbiter's is one for its socket.
TEST(Os, AFolderCanBeEnteredWhateverTheUmask) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/group";
    const mode_t before = ::umask(0177);
    EXPECT_EQ(Os().make_folder(path), 0);
    ::umask(before);
    struct stat made;
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777U, 0755U);
}

}  // namespace
}  // namespace heddle::test
