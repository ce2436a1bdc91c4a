// parallelme::SchedulerFCFS (seed 004): heddle's scheduler fcfs.
#pragma once

#include "../parallelme/OwnScheduler.hpp"

namespace parallelme {

class SchedulerFCFS : public OwnScheduler {
  public:
    SchedulerFCFS() : OwnScheduler("fcfs") {}
};

}  // namespace parallelme
