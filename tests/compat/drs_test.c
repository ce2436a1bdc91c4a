/* The seed's own names, compiled as C against the installed headers' layout and the shared library. The
 * machine is the one of HEDDLE_TOPOLOGY, which the build sets to four CPUs. */
#include "drs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

static int enabled[2][4], disabled[2][4], threads, mask_calls;
static cpu_set_t last_mask, last_added;

static void a_enable(int cpu) {
    ++enabled[0][cpu];
}
static void a_disable(int cpu) {
    ++disabled[0][cpu];
}
static void b_enable(int cpu) {
    ++enabled[1][cpu];
}
static void b_disable(int cpu) {
    ++disabled[1][cpu];
}
static void b_threads(int count) {
    threads = count;
}
static void b_mask(const cpu_set_t* mask) {
    last_mask = *mask;
    ++mask_calls;
}
static void b_add(const cpu_set_t* mask) {
    last_added = *mask;
}

static cpu_set_t set_of(int first, int last) {
    cpu_set_t set;
    memset(&set, 0, sizeof set);
    for (int cpu = first; cpu <= last; ++cpu)
        ((unsigned char*)&set)[cpu / 8] |= (unsigned char)(1 << (cpu % 8));
    return set;
}

static void two_components_share(void) {
    const cpu_set_t first = set_of(0, 1), second = set_of(2, 3), one = set_of(1, 1);
    drs_desc_t* a = drs_attach("a", &first);
    drs_desc_t* b = drs_attach("b", &second);
    EXPECT(a != NULL && b != NULL);
    errno = 0;
    EXPECT(drs_attach("c", &one) == NULL && errno == EPERM);

    EXPECT(callback_set(a, drs_callback_enable_cpu, (drs_cb_t)a_enable) == DRS_SUCCESS);
    EXPECT(callback_set(a, drs_callback_disable_cpu, (drs_cb_t)a_disable) == DRS_SUCCESS);
    EXPECT(callback_set(b, drs_callback_enable_cpu, (drs_cb_t)b_enable) == DRS_SUCCESS);
    EXPECT(callback_set(b, drs_callback_disable_cpu, (drs_cb_t)b_disable) == DRS_SUCCESS);
    EXPECT(callback_set(b, drs_callback_set_num_threads, (drs_cb_t)b_threads) == DRS_SUCCESS);
    EXPECT(callback_set(b, drs_callback_set_active_mask, (drs_cb_t)b_mask) == DRS_SUCCESS);
    EXPECT(callback_set(b, drs_callback_add_active_mask, (drs_cb_t)b_add) == DRS_SUCCESS);
    drs_cb_t found = NULL;
    EXPECT(callback_get(b, drs_callback_set_num_threads, &found) == DRS_SUCCESS &&
           found == (drs_cb_t)b_threads);
    EXPECT(callback_get(a, drs_callback_set_active_mask, &found) == DRS_SUCCESS && found == NULL);

    EXPECT(lend_cpu(a, 1) == DRS_SUCCESS && disabled[0][1] == 1);
    EXPECT(acquire_cpu(b, 1) == DRS_SUCCESS && enabled[1][1] == 1);
    EXPECT(threads == 3 && mask_calls == 1);
    const cpu_set_t three = set_of(1, 3);
    EXPECT(memcmp(&last_mask, &three, sizeof three) == 0);
    EXPECT(memcmp(&last_added, &one, sizeof one) == 0);
    EXPECT(acquire_cpu(b, 0) == DRS_NOTED && enabled[1][0] == 0);
    EXPECT(lend_cpu_mask(a, &first) == DRS_SUCCESS && enabled[1][0] == 1);

    EXPECT(reclaim_cpu(b, 0) == DRS_PERM);
    EXPECT(reclaim_cpu(a, 0) == DRS_NOTED && enabled[0][0] == 1 && disabled[1][0] == 1);
    EXPECT(return_cpu(b, 1) == DRS_NOUPDT);
    EXPECT(return_cpu(b, 0) == DRS_SUCCESS);
    EXPECT(return_cpu(b, 0) == DRS_PERM);
    EXPECT(reclaim(a) == DRS_NOTED);
    EXPECT(return_all(b) == DRS_SUCCESS && return_all(b) == DRS_NOUPDT);
    EXPECT(reclaim_cpus(a, 2) == DRS_NOUPDT && reclaim_cpu_mask(a, &first) == DRS_NOUPDT);
    EXPECT(reclaim_cpu_mask(a, &three) == DRS_PERM);

    EXPECT(lend(a) == DRS_SUCCESS);
    EXPECT(set_max_parallelism(b, 3) == DRS_SUCCESS);
    EXPECT(acquire(b) == DRS_SUCCESS && threads == 3);
    EXPECT(acquire_cpus(b, 1) == DRS_NOUPDT);
    EXPECT(set_max_parallelism(b, 0) == DRS_SUCCESS);
    EXPECT(lend_cpus(b, 1) == DRS_SUCCESS && threads == 2);
    EXPECT(acquire_cpu_mask(b, &first) == DRS_SUCCESS && threads == 4);

    EXPECT(set_drs_disable(b) == DRS_SUCCESS && threads == 2);
    EXPECT(lend(b) == DRS_DISBLD && set_drs_disable(b) == DRS_DISBLD);
    EXPECT(set_drs_enable(b) == DRS_SUCCESS && set_drs_enable(b) == DRS_NOUPDT);
    drs_detach(a);
    drs_detach(b);
}

static void too_many_requests(void) {
    const cpu_set_t all = set_of(0, 3);
    drs_desc_t* owner = drs_attach("owner", &all);
    drs_desc_t* others[9];
    for (int i = 0; i < 9; ++i) {
        others[i] = drs_attach("other", NULL);
        EXPECT(acquire_cpu(others[i], 0) == (i < 8 ? DRS_NOTED : DRS_REQST));
    }
    for (int i = 0; i < 9; ++i) drs_detach(others[i]);
    drs_detach(owner);
}

static void bad_input(void) {
    const cpu_set_t all = set_of(0, 3), outside = set_of(4, 4);
    drs_desc_t* a = drs_attach("a", &all);
    errno = 0;
    EXPECT(drs_attach(NULL, NULL) == NULL && errno == EINVAL);
    EXPECT(drs_attach("outside", &outside) == NULL && errno == EPERM);
    EXPECT(lend_cpu(a, -1) == DRS_PERM && lend_cpu(a, 4) == DRS_PERM && acquire_cpu(a, 100000) == DRS_PERM);
    EXPECT(lend_cpus(a, -1) == DRS_PERM && reclaim_cpus(a, -1) == DRS_PERM &&
           acquire_cpus(a, -5) == DRS_PERM);
    EXPECT(set_max_parallelism(a, -1) == DRS_PERM);
    EXPECT(lend_cpu_mask(a, NULL) == DRS_PERM && lend_cpu_mask(a, &outside) == DRS_PERM);
    EXPECT(reclaim_cpu_mask(a, NULL) == DRS_PERM && acquire_cpu_mask(a, NULL) == DRS_PERM);
    EXPECT(callback_set(a, (drs_cbs_t)99, (drs_cb_t)a_enable) == DRS_PERM);
    EXPECT(callback_get(a, drs_callback_enable_cpu, NULL) == DRS_PERM);
    EXPECT(lend(NULL) == DRS_PERM && set_drs_enable(NULL) == DRS_PERM && return_all(NULL) == DRS_PERM);
    EXPECT(callback_set(NULL, drs_callback_enable_cpu, (drs_cb_t)a_enable) == DRS_PERM);
    drs_detach(NULL);
    drs_detach(a);
    drs_detach(a);
    EXPECT(lend(a) == DRS_PERM);
    drs_desc_t* b = drs_attach("b", &all);
    EXPECT(b != NULL && lend_cpu(a, 0) == DRS_PERM);
    drs_detach(a);
    EXPECT(lend_cpu(b, 0) == DRS_SUCCESS);
    drs_detach(b);
}

int main(void) {
    two_components_share();
    too_many_requests();
    bad_input();
    return failures == 0 ? 0 : 1;
}
