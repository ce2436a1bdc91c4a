// parallelme::SchedulerPAMS (seed 004): heddle's scheduler pams.
#pragma once

#include "../parallelme/OwnScheduler.hpp"

namespace parallelme {

class SchedulerPAMS : public OwnScheduler {
  public:
    SchedulerPAMS() : OwnScheduler("pams") {}
};

}  // namespace parallelme
