/* launch/park.c with its handler in reach. No thread is running, so none gets a signal: the scenario calls
 * the handler as the kernel would. */
#include "launch/park.c"

bool threads_visit(pid_t except, void (*visit)(pid_t thread, void* data), void* data) {
    (void)except;
    (void)visit;
    (void)data;
    return true;
}
bool threads_is_runnable(pid_t thread) {
    (void)thread;
    return false;
}
/* No thread of it starts a program. */
bool affinity_pass_over(pid_t thread) {
    (void)thread;
    return false;
}
bool affinity_set(pid_t thread, const cpu_set_t* cpus) {
    (void)thread;
    (void)cpus;
    return true;
}

void park_handler(void);
void park_prepare(void);
void park_handler(void) {
    sleep_until_end(SIGURG);
}
/* Installs the handler, and sleeps by the call that the explorer sees. */
void park_prepare(void) {
    (void)prepare();
    system_call = syscall;
}
