#include "base/descriptor_limit.hpp"

#include <algorithm>

namespace heddle {

void raise_descriptor_limit(rlim_t wanted) noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, wanted));
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace heddle
