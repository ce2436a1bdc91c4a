/* Uses the C interface: two components of one process, a core lent and taken back. */
#define _GNU_SOURCE
#include <heddle/drs.h>
#include <stdlib.h>

int main(void) {
    setenv("HEDDLE_TOPOLOGY", "core:2 pu:1", 1);
    setenv("HEDDLE_ARBITER", "off", 1);
    cpu_set_t both;
    CPU_ZERO(&both);
    CPU_SET(0, &both);
    CPU_SET(1, &both);
    heddle_drs_t* owner = heddle_drs_attach("owner", &both);
    heddle_drs_t* guest = heddle_drs_attach("guest", NULL);
    if (owner == NULL || guest == NULL) return 1;
    if (heddle_drs_lend_cpu(owner, 1) != HEDDLE_DRS_SUCCESS) return 2;
    if (heddle_drs_borrow_cpu(guest, 1) != HEDDLE_DRS_SUCCESS) return 3;
    if (heddle_drs_return_cpu(guest, 1) < 0) return 4;
    return heddle_drs_detach(guest) < 0 || heddle_drs_detach(owner) < 0 ? 5 : 0;
}
