// The signals by which a server is asked to end.
#pragma once

#include <signal.h>

namespace heddle {

/// SIGINT, SIGTERM and SIGHUP, but for those that whoever started this process has it ignore, as nohup(1) and
/// shells in the background do.
[[nodiscard]] inline sigset_t ending_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
            ::sigaddset(&signals, signal);
    }
    return signals;
}

}  // namespace heddle
