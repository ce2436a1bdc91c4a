// RegionThread: a thread that opens parallel regions of OpenMP, for as long as an engine or kernels need it.
//
// With libgomp it ends, and with it the region's threads. libomp keeps the threads of regions in any case,
// and its memory is damaged when one that opened a region ends (seen with libomp 14: tasks are freed into
// lists of the thread that made them): there it is kept too, asleep, for the next engine.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace heddle {

class RegionThread {
  public:
    RegionThread() = default;
    ~RegionThread() { join(); }
    RegionThread(const RegionThread&) = delete;
    RegionThread& operator=(const RegionThread&) = delete;

    /// Runs `job`. Throws std::system_error where there can be no thread.
    void start(std::function<void()> job, bool keep);
    /// Returns when it has.
    void join();

  private:
    /// A thread that is kept. Lives as long as the process.
    struct Kept {
        std::mutex mutex;
        std::condition_variable changed;
        std::function<void()> job;  // empty: none, or done
        Kept* next = nullptr;       // in the list of those without a job
        void run();
    };

    std::thread own_;
    Kept* kept_ = nullptr;
};

}  // namespace heddle
