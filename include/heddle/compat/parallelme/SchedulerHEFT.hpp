// parallelme::SchedulerHEFT (seed 004): heddle's scheduler heft.
#pragma once

#include "../parallelme/OwnScheduler.hpp"

namespace parallelme {

class SchedulerHEFT : public OwnScheduler {
  public:
    SchedulerHEFT() : OwnScheduler("heft") {}
};

}  // namespace parallelme
