// Signals and threads of heddle's own: signals are for the program's threads, but for those that a thread
// causes itself.
//
// SignalsBlocked: while it lives, the calling thread and those that it makes get none of the others.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace heddle {

inline sigset_t signals_of_others() noexcept {
    sigset_t set;
    sigfillset(&set);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
        sigdelset(&set, own);
    return set;
}

class SignalsBlocked {
  public:
    SignalsBlocked() {
        const sigset_t blocked = signals_of_others();
        pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

}  // namespace heddle
