#define _GNU_SOURCE
#include "object.h"

#include <dlfcn.h>
#include <string.h>

const struct link_map* object_at(const void* address) {
    struct dl_find_object found;
    return _dl_find_object((void*)(size_t)address, &found) == 0 ? found.dlfo_link_map : NULL;
}

const char* object_name_at(const void* address) {
    const struct link_map* object = object_at(address);
    if (object == NULL || object->l_name == NULL) return "";
    const char* slash = strrchr(object->l_name, '/');
    return slash == NULL ? object->l_name : slash + 1;
}
