// What benchmarks of several processes share: processes that are forked for a piece of work, and bound.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "heddle/error.hpp"

namespace heddle::bench {

/// The calling thread. Throws kSystem.
inline void bind_to(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<size_t>(cpu), &cpus);
    if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        throw Error(ErrorCode::kSystem, "cannot bind a thread to a CPU");
}

/// A new one for the processes that are forked from now on. Never freed.
template <class Value>
Value& shared_with_children() {
    void* memory = ::mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(ErrorCode::kSystem, "no shared memory");
    return *new (memory) Value{};
}

/// A process of its own that does this until the object ends.
class Background {
  public:
    template <class Work>
    explicit Background(const Work& work) : child_(::fork()) {
        if (child_ == 0) ::_exit(done(work) ? 0 : 1);
    }
    ~Background() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    /// False where it throws, which is told on stderr.
    template <class Work>
    static bool done(const Work& work) {
        try {
            work();
            return true;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            return false;
        }
    }

  private:
    pid_t child_;
};

/// Runs work(0) and work(1) in processes of their own; throws kUnavailable where one fails.
template <class Work>
void in_two_processes(const Work& work) {
    pid_t children[2];
    for (int side = 0; side < 2; ++side) {
        children[side] = ::fork();
        if (children[side] == 0) ::_exit(Background::done([&] { work(side); }) ? 0 : 1);
    }
    bool failed = false;
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        failed |= status != 0;
    }
    if (failed) throw Error(ErrorCode::kUnavailable, "a process of the pair failed");
}

}  // namespace heddle::bench
