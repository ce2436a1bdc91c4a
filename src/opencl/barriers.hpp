// Barriers: the last one of each queue without order, until it has ended. Commands that the layer keeps from
// the driver wait for it by themselves. Any thread.
#pragma once

#include "opencl/next.hpp"

namespace heddle::opencl {

class Barriers {
  public:
    /// Of a queue without order: what is enqueued from now on does not begin before this has ended.
    static void note(cl_command_queue queue, cl_event barrier);
    /// A reference to it; null: there is none.
    [[nodiscard]] static OwnedEvent last_of(cl_command_queue queue);
};

}  // namespace heddle::opencl
