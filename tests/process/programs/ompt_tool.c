// A tool of OpenMP's (OMPT) that wants nothing but to be asked.
#include <stddef.h>
#include <stdio.h>

void* ompt_start_tool(unsigned version, const char* runtime);
void* ompt_start_tool(unsigned version, const char* runtime) {
    (void)version;
    (void)runtime;
    puts("asked");
    return NULL;
}
