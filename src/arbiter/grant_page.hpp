// The arbiter's half of the grant page (cores/protocol.h): how a grant is shown. The arbiter alone writes; an
// arbiter that is killed in the middle leaves an odd epoch, and what it showed before stands.
#pragma once

#include "arbiter/arbiter.hpp"
#include "cores/protocol.h"

namespace heddle {

void show_grant(heddle_grant_page& page, const Publish& publish);

}  // namespace heddle
