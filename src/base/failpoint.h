/* Failpoint: a named place in the arbiter's shell or in what is loaded into a program, at which a fault test
 * kills the process. C, because that library is.
 *
 * TEST_FAILPOINT=NAME:N in the environment, read when the first point is passed, kills the process by
 * SIGKILL when it passes NAME for the N-th time. Compiled in only where tests are built
 * (HEDDLE_WITH_FAILPOINTS); anywhere else a point is nothing at all. Each name stands in one source file, as
 * the count is that file's. Any thread.
 */
#ifndef HEDDLE_BASE_FAILPOINT_H
#define HEDDLE_BASE_FAILPOINT_H

/* All there are. tests/fault passes each of them: failpoint_test.cpp, for those of the fence
 * cpuset_fence_test.cpp, for those of a memory server's clients kill_memory_clients_test.cpp. On the way to
 * the first client: */
#define HEDDLE_START_FAILPOINTS(POINT) \
    POINT(daemon_has_its_lock)         \
    POINT(daemon_has_its_socket)       \
    POINT(server_has_socket)           \
    POINT(server_listens)              \
    POINT(server_has_epoll)            \
    POINT(daemon_is_ready)

/* While it serves, and over a restart: */
#define HEDDLE_ARBITER_FAILPOINTS(POINT) \
    POINT(server_accepted)               \
    POINT(server_received)               \
    POINT(server_refuses)                \
    POINT(server_says_hello)             \
    POINT(server_has_pidfd)              \
    POINT(server_has_pages)              \
    POINT(server_has_joined)             \
    POINT(server_welcomes)               \
    POINT(server_welcomed)               \
    POINT(server_looks_at_demand)        \
    POINT(server_hears_of_leaving)       \
    POINT(server_changes_limits)         \
    POINT(server_closes)                 \
    POINT(server_closed)                 \
    POINT(server_ticks)                  \
    POINT(publish_begins)                \
    POINT(publish_is_half_done)          \
    POINT(publish_wakes)                 \
    POINT(fence_begins)                  \
    POINT(fence_is_done)                 \
    POINT(grant_ends_by_force)           \
    POINT(event_goes_out)                \
    POINT(status_goes_out)               \
    POINT(watching_begins)               \
    POINT(server_seals_a_page)           \
    POINT(server_sealed_a_page)          \
    POINT(server_introduces)             \
    POINT(server_introduced)             \
    POINT(server_forgets_a_peer)         \
    POINT(successor_is_named)            \
    POINT(successor_is_shown)            \
    POINT(lender_is_named)               \
    POINT(grant_is_over)                 \
    POINT(release_is_read)               \
    POINT(release_is_taken)              \
    POINT(releases_count)                \
    POINT(state_has_a_place)             \
    POINT(state_begins)                  \
    POINT(state_is_half_done)            \
    POINT(state_is_written)              \
    POINT(state_is_removed)              \
    POINT(restore_finds_a_process)       \
    POINT(restore_keeps_a_client)        \
    POINT(server_forgets_one_away)

/* Where it holds a client by a cpuset group, and lets it go: */
#define HEDDLE_FENCE_FAILPOINTS(POINT) \
    POINT(cpuset_is_made)              \
    POINT(cpuset_is_set)               \
    POINT(cpuset_holds)                \
    POINT(cpuset_lets_go)

/* Where it ends as it was asked to: */
#define HEDDLE_END_FAILPOINTS(POINT) POINT(daemon_ends)

/* In a program that uses ArbiterClient: */
#define HEDDLE_CLIENT_FAILPOINTS(POINT) \
    POINT(client_connected)             \
    POINT(client_is_welcomed)           \
    POINT(client_has_mapped)            \
    POINT(client_said_so)               \
    POINT(client_showed_demand)         \
    POINT(client_releases)              \
    POINT(client_released)              \
    POINT(client_rang)                  \
    POINT(client_handed_over)           \
    POINT(client_reclaims)              \
    POINT(client_reclaimed)             \
    POINT(client_takes)                 \
    POINT(client_took)                  \
    POINT(client_obeys)                 \
    POINT(client_obeyed)                \
    POINT(client_says_left)             \
    POINT(client_knows_a_peer)          \
    POINT(client_forgets_a_peer)        \
    POINT(client_lost_its_arbiter)      \
    POINT(client_is_back)

/* In what is loaded into an unmodified program: */

#define HEDDLE_LAUNCH_FAILPOINTS(POINT) \
    POINT(link_connected)               \
    POINT(link_said_hello)              \
    POINT(link_was_welcomed)            \
    POINT(link_registered)              \
    POINT(link_shows_demand)            \
    POINT(link_showed_demand)           \
    POINT(link_says_left)               \
    POINT(link_said_left)               \
    POINT(link_lost_its_arbiter)        \
    POINT(link_is_back)                 \
    POINT(follow_obeys)                 \
    POINT(follow_has_bound)

/* In a program that is a client of a memory server: */
#define HEDDLE_MEMORY_FAILPOINTS(POINT) \
    POINT(memory_connected)             \
    POINT(memory_is_welcomed)           \
    POINT(memory_has_asked)             \
    POINT(memory_has_mapped)            \
    POINT(memory_has_begun)             \
    POINT(memory_was_answered)          \
    POINT(memory_is_pinning)            \
    POINT(memory_has_pinned)

#ifdef HEDDLE_WITH_FAILPOINTS

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define HEDDLE_FAILPOINT_NUMBER(name) heddle_failpoint_##name,
enum heddle_failpoint {
    HEDDLE_START_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER) HEDDLE_ARBITER_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER)
        HEDDLE_FENCE_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER) HEDDLE_END_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER)
            HEDDLE_CLIENT_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER)
                HEDDLE_LAUNCH_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER)
                    HEDDLE_MEMORY_FAILPOINTS(HEDDLE_FAILPOINT_NUMBER) heddle_failpoint_count
};

/* Which passage of `name` is the last; 0: none. */
static inline long heddle_last_passage(const char* name) {
    const char* wanted = getenv("TEST_FAILPOINT");
    const size_t length = strlen(name);
    if (wanted == NULL || strncmp(wanted, name, length) != 0 || wanted[length] != ':') return 0;
    return strtol(wanted + length + 1, NULL, 10);
}

static inline void heddle_pass(enum heddle_failpoint point, const char* name) {
    static long last[heddle_failpoint_count]; /* one more than the passage, 0: not looked up yet */
    static long passed[heddle_failpoint_count];
    long wanted = __atomic_load_n(&last[point], __ATOMIC_RELAXED);
    if (wanted == 0) {
        wanted = heddle_last_passage(name) + 1;
        __atomic_store_n(&last[point], wanted, __ATOMIC_RELAXED);
    }
    if (wanted > 1 && __atomic_add_fetch(&passed[point], 1, __ATOMIC_RELAXED) == wanted - 1) raise(SIGKILL);
}

#define HEDDLE_FAILPOINT(name) heddle_pass(heddle_failpoint_##name, #name)

#else

#define HEDDLE_FAILPOINT(name) ((void)0)

#endif

#endif
