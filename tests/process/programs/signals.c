/* signals: tells each SIGINT that it gets, and from whom, until SIGTERM. */
#include <signal.h>
#include <stdio.h>

int main(void) {
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigprocmask(SIG_BLOCK, &all, NULL);
    puts("ready");
    fflush(stdout);
    siginfo_t got;
    while (sigwaitinfo(&all, &got) == SIGINT) {
        puts(got.si_code == SI_KERNEL ? "from the terminal" : "from a process");
        fflush(stdout);
    }
    return 0;
}
