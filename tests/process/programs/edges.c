/* What programs do with threads and objects that a library in their midst may spoil. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void* say_done(void* unused) {
    usleep(50000);
    printf("done\n"); /* left in the buffer, for exit() to write */
    return unused;
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

int main(int count, char** words) {
    const char* what = count > 1 ? words[1] : "";
    if (strcmp(what, "leave") == 0) return leave();
    if (strcmp(what, "load") == 0) return dlopen(words[2], RTLD_NOW) == NULL;
    if (strcmp(what, "reload") == 0) return reload(words + 2);
    if (strcmp(what, "bind-child") == 0) return bind_child(atoi(words[2]));
    if (strcmp(what, "no-mask") == 0) {
        const long result = syscall(SYS_sched_setaffinity, 0, 8, NULL);
        return !(result == -1 && errno == EFAULT);
    }
    if (strcmp(what, "alone") == 0) return unshare(CLONE_THREAD) != 0; /* for a process with one thread */
    return 64;
}
