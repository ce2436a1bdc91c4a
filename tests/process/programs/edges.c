/* What programs do with threads and objects that a library in their midst may spoil. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static void* say_done(void* unused) {
    usleep(50000);
    printf("done\n"); /* left in the buffer, for exit() to write */
    return unused;
}

static int start_one_thread(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, say_done, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

/* The first thread leaves; the last one ends the program. */
static int leave(void) {
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, say_done, NULL) != 0) return 1;
        pthread_detach(thread);
    }
    pthread_exit(NULL);
}

static int say_done_c11(void* unused) {
    say_done(unused);
    return 0;
}

static int leave_c11(void) {
    for (int i = 0; i < 3; ++i) {
        thrd_t thread;
        if (thrd_create(&thread, say_done_c11, NULL) != thrd_success) return 1;
        thrd_detach(thread);
    }
    thrd_exit(0);
}

static void* cancel(void* thread) {
    pthread_cancel(*(pthread_t*)thread);
    return say_done(NULL);
}

static int be_cancelled(void) {
    static pthread_t first;
    first = pthread_self();
    pthread_t thread;
    if (pthread_create(&thread, NULL, cancel, &first) != 0) return 1;
    while (1) pause();
}

static int leave_by_the_system(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, say_done, NULL) != 0) return 1;
    syscall(SYS_exit, 0);
    return 1;
}

/* As who looks what each CPU is like, and goes back to all of them; then how many there are. */
static int look_at_each(void) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) return 1;
    }
    if (sched_setaffinity(0, sizeof all, &all) != 0 || sched_getaffinity(0, sizeof all, &all) != 0) return 1;
    printf("%d\n", CPU_COUNT(&all));
    return 0;
}

/* Loads a library, and again from the same path after another one was put there. */
static int reload(char** paths) {
    for (int i = 1; i <= 2; ++i) {
        char command[1024];
        snprintf(command, sizeof command, "cp %s %s.new && mv %s.new %s", paths[i], paths[0], paths[0],
                 paths[0]);
        if (system(command) != 0) return 1;
        void* library = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
        int (*sum)(void) = NULL;
        if (library != NULL) *(void**)&sum = dlsym(library, "sum");
        if (sum == NULL) return 2;
        printf("%d ", sum());
        dlclose(library);
        printf("%s\n", dlopen(paths[0], RTLD_NOW | RTLD_NOLOAD) == NULL ? "gone" : "there");
    }
    return 0;
}

static int bind_child(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    const pid_t child = fork();
    if (child == 0) {
        if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
        execlp("grep", "grep", "Cpus_allowed_list", "/proc/self/status", (char*)NULL);
        _exit(1);
    }
    int status = 1;
    return waitpid(child, &status, 0) == child ? status : 1;
}

/* As setpriv does: another user that may still choose its groups, by capabilities of this thread's. */
static int become_nobody(void) {
    enum { kNobody = 65534 };
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) return 1;
    if (syscall(SYS_capget, &header, sets) != 0) return 2;
    for (int i = 0; i < 2; ++i) sets[i].effective = sets[i].permitted;
    if (syscall(SYS_capset, &header, sets) != 0 || setresgid(kNobody, kNobody, kNobody) != 0) return 3;
    pthread_t thread;
    return pthread_create(&thread, NULL, say_done, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
           setresgid(kNobody, kNobody, kNobody) != 0;
}

int main(int count, char** words) {
    const char* what = count > 1 ? words[1] : "";
    if (strcmp(what, "start-one-thread") == 0) return start_one_thread();
    if (strcmp(what, "leave") == 0) return leave();
    if (strcmp(what, "leave-c11") == 0) return leave_c11();
    if (strcmp(what, "be-cancelled") == 0) return be_cancelled();
    if (strcmp(what, "leave-by-the-system") == 0) return leave_by_the_system();
    if (strcmp(what, "look-at-each") == 0) return look_at_each();
    if (strcmp(what, "load") == 0) return dlopen(words[2], RTLD_NOW) == NULL;
    if (strcmp(what, "reload") == 0) return reload(words + 2);
    if (strcmp(what, "bind-child") == 0) return bind_child(atoi(words[2]));
    if (strcmp(what, "become-nobody") == 0) return become_nobody();
    if (strcmp(what, "no-mask") == 0) {
        const long result = syscall(SYS_sched_setaffinity, 0, 8, NULL);
        return !(result == -1 && errno == EFAULT);
    }
    if (strcmp(what, "alone") == 0) return unshare(CLONE_THREAD) != 0; /* for a process with one thread */
    return 64;
}
