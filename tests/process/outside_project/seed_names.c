/* Uses the seed's own header by its own name, as a program written against the published interface does. */
#define _GNU_SOURCE
#include <drs.h>
#include <stdlib.h>

int main(void) {
    setenv("HEDDLE_TOPOLOGY", "core:2 pu:1", 1);
    setenv("HEDDLE_ARBITER", "off", 1);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    drs_desc_t* component = drs_attach("component", &one);
    if (component == NULL) return 1;
    drs_detach(component);
    return 0;
}
