/* The loaded object that an address lies in, without the loader's lock: a library's constructor may hold it,
 * and wait for a thread that calls us. Any thread; good for as long as the object is loaded. */
#ifndef HEDDLE_LAUNCH_OBJECT_H
#define HEDDLE_LAUNCH_OBJECT_H

#include <link.h>

/* NULL: none. */
const struct link_map* object_at(const void* address);
/* Without its folder; "" for the program itself, and where there is none. */
const char* object_name_at(const void* address);

#endif
