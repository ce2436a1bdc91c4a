// Progress: how far a program of a fault test came, in a file that it and the test map.
//
// The program writes, the test reads, except `stop`, where it is the other way round; relaxed, as each word
// stands alone. Survives the program's death.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace heddle::test {

struct Progress {
    std::atomic<uint64_t> rounds;
    std::atomic<uint32_t> registrations;
    std::atomic<uint32_t> held;  ///< CPUs of the grant that was last obeyed
    std::atomic<uint32_t> stop;
};

/// Makes the file where there is none. Null where it cannot be.
inline Progress* map_progress(const char* file) {
    const int fd = ::open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Progress)) != 0) return nullptr;
    void* mapping = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return mapping == MAP_FAILED ? nullptr : static_cast<Progress*>(mapping);
}

}  // namespace heddle::test
