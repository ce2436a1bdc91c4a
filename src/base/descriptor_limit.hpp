// raise_descriptor_limit(): room for the descriptors of many clients.
#pragma once

#include <sys/resource.h>

namespace heddle {

/// Lets the process have so many descriptors, or as many as the system allows; it may have more already. For
/// servers, before their first client: nobody is told where it cannot be.
void raise_descriptor_limit(rlim_t wanted) noexcept;

}  // namespace heddle
