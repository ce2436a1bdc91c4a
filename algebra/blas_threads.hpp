// BlasThreads: how many threads the BLAS uses for calls of this thread, while the object lives.
//
// A task that runs on one core must not start threads on others, and the program around it may call the same
// BLAS with threads. OpenBLAS built on OpenMP (Debian's libopenblas0-openmp) asks OpenMP for the number,
// which each thread has for itself: nobody else sees a change. OpenBLAS with threads of its own has one
// number for the process: it is changed while at least one object lives and put back with the last, so other
// callers get that number meanwhile; of several objects with different numbers the first decides. Other
// libraries are left as they are.
//
// An object belongs to the thread that made it. Costs some 10 ns, so that each kernel may have one.
#pragma once

namespace heddle::algebra {

class BlasThreads {
  public:
    /// Throws as lapack().
    explicit BlasThreads(int threads);
    ~BlasThreads();
    BlasThreads(const BlasThreads&) = delete;
    BlasThreads& operator=(const BlasThreads&) = delete;

  private:
    int before_ = 0;  ///< OpenMP's number for this thread; 0: not changed
    bool shared_ = false;
};

}  // namespace heddle::algebra
