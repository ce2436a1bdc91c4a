/* Short turns on the CPU, for a thread that sleeps most of the time and is waited for when it wakes: it runs
 * soon, though others compute on every CPU. C, because the library in managed programs is. No state; any
 * thread. */
#ifndef HEDDLE_BASE_SHORT_TURNS_H
#define HEDDLE_BASE_SHORT_TURNS_H

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For the calling thread (sched_setattr's sched_runtime, Linux 6.12). Returns 0, or -1 and errno; a kernel
 * that does not know it ignores the wish. */
static inline long heddle_set_turns(uint64_t ns) {
    struct { /* sched_attr of linux/sched/types.h, which does not go with <sched.h> */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    attributes.runtime_ns = ns;
    return syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static inline long heddle_prefer_short_turns(void) {
    return heddle_set_turns(100000); /* the least that the kernel takes */
}

/* As the kernel gives them by itself. A thread inherits those of the one that makes it. */
static inline long heddle_prefer_usual_turns(void) {
    return heddle_set_turns(0);
}

#endif
