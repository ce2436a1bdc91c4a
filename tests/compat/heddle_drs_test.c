/* heddle's own C names: what the seed's have not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "expect.h"
#include "heddle/drs.h"

/* An attach that fails leaves nothing: the next one reads the variables again. */
static void expect_refused(const char* variable, const char* value) {
    setenv(variable, value, 1);
    errno = 0;
    EXPECT(heddle_drs_attach("a", NULL) == NULL && errno == EINVAL);
    EXPECT(heddle_drs_lend(NULL) == HEDDLE_DRS_PERM);
    unsetenv(variable);
}

int main(void) {
    expect_refused("HEDDLE_OWN", "junk");
    expect_refused("HEDDLE_MIN", "many");
    cpu_set_t two = {{3}}, usable, four = {{16}};
    heddle_drs_t* a = heddle_drs_attach("a", &two);
    heddle_drs_t* b = heddle_drs_attach("b", NULL);
    EXPECT(heddle_drs_borrow(b) == HEDDLE_DRS_NOUPDT);
    EXPECT(heddle_drs_borrow_cpu(b, 4) == HEDDLE_DRS_PERM && heddle_drs_borrow_cpu(b, -1) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_borrow_cpus(b, -1) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_borrow_cpu_mask(b, NULL) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_borrow_cpu_mask(b, &four) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_lend(a) == HEDDLE_DRS_SUCCESS);
    EXPECT(heddle_drs_borrow_cpus(b, 1) == HEDDLE_DRS_SUCCESS);
    EXPECT(heddle_drs_borrow_cpu_mask(b, &two) == HEDDLE_DRS_SUCCESS);
    EXPECT(heddle_drs_usable(b, &usable) == HEDDLE_DRS_SUCCESS && usable.__bits[0] == 3);
    EXPECT(heddle_drs_usable(b, NULL) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_reclaim_cpu(a, 1) == HEDDLE_DRS_NOTED);
    EXPECT(heddle_drs_check_cpu(a, 1) == HEDDLE_DRS_NOTED);
    EXPECT(heddle_drs_return_cpus(b, -1) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_return_cpu_mask(b, &two) == HEDDLE_DRS_SUCCESS);
    EXPECT(heddle_drs_check_cpu(a, 1) == HEDDLE_DRS_SUCCESS && heddle_drs_check_cpu(a, 0) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_detach(b) == HEDDLE_DRS_SUCCESS && heddle_drs_detach(b) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_borrow(b) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_detach((heddle_drs_t*)-1) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_usable(b, &usable) == HEDDLE_DRS_PERM);
    EXPECT(heddle_drs_detach(a) == HEDDLE_DRS_SUCCESS);
    return failures == 0 ? 0 : 1;
}
