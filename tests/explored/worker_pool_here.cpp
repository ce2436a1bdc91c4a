// cores/worker_pool.cpp with its thread-local in reach: the explorer's threads are fibers, and share it.
#include "cores/worker_pool.cpp"

namespace heddle::test {

void no_worker_here();
void no_worker_here() {
    this_worker = nullptr;
}

}  // namespace heddle::test
