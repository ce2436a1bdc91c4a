// MpiProgress: tasks that wait for MPI requests, and keep no worker meanwhile.
//
//     heddle::MpiProgress mpi(runtime);
//     sequence.insert([&] {
//         MPI_Request request;
//         mpi.call([&] { return MPI_Irecv(buffer, n, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request); });
//         mpi.wait(request);
//     });
//
// Idle workers test all requests that are waited for with one MPI_Testsome. A blocking call (MPI_Recv) keeps
// its worker instead, and with as many of them as workers a program that would go on elsewhere stands still.
//
// Any thread and any task may wait; each request is waited for by one. MPI must have been initialised with
// MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED. With the latter MPI is called by one thread at a time: the
// program makes each of its own calls in call() then, which is the call alone with MPI_THREAD_MULTIPLE.
//
// Header-only: libheddle.so knows nothing of MPI, and a program brings the one it is built with (Open MPI,
// MPICH). Outlived by its runtime; to be destroyed before MPI_Finalize.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/mpi.h"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"

namespace heddle {

class MpiProgress {
  public:
    /// Throws kInvalidArgument where MPI was not initialised, or with a level that lets one thread alone call
    /// it.
    explicit MpiProgress(Runtime& runtime) : runtime_(runtime) {
        int begun = 0, ended = 0, level = 0;
        MPI_Initialized(&begun);
        MPI_Finalized(&ended);
        if (begun == 0 || ended != 0)
            throw Error(ErrorCode::kInvalidArgument,
                        begun == 0 ? "MPI is not initialised yet: call MPI_Init_thread first"
                                   : "MPI was finalised already");
        MPI_Query_thread(&level);
        if (level < MPI_THREAD_SERIALIZED)
            throw Error(ErrorCode::kInvalidArgument,
                        "MPI was initialised for one thread, and tasks run on several: call MPI_Init_thread "
                        "with MPI_THREAD_MULTIPLE, and look at what it provides");
        serialized_ = level < MPI_THREAD_MULTIPLE;
    }
    /// Nobody waits.
    ~MpiProgress() {
        try {
            unregister_polling_service(runtime_, &MpiProgress::poll, this);
        } catch (const Error&) {
            // It has ended by itself, as it does when nobody waits any more.
        }
    }
    MpiProgress(const MpiProgress&) = delete;
    MpiProgress& operator=(const MpiProgress&) = delete;

    /// Makes a call of MPI that does not block, alone where MPI asks for it. Throws kSystem, with MPI's
    /// words, where it returns another code than MPI_SUCCESS (under MPI_ERRORS_RETURN).
    template <class Call>
    void call(const Call& call) {
        std::unique_lock lock(one_at_a_time(), std::defer_lock);
        if (serialized_) lock.lock();
        check(call(), "a call of MPI");
    }

    /// Returns when the request is done, which is MPI_REQUEST_NULL afterwards (a persistent one is inactive).
    /// Throws kSystem where MPI says that it failed, and as BlockCondition::block(): it is still the caller's
    /// then.
    void wait(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) {
        wait_for(1, &request, status == MPI_STATUS_IGNORE ? nullptr : status);
    }
    /// The same for several; nulls among them are done. Throws for the first that failed, when all are done.
    void wait_all(int count, MPI_Request* requests, MPI_Status* statuses = MPI_STATUSES_IGNORE) {
        if (count < 0 || (count > 0 && requests == nullptr))
            throw Error(ErrorCode::kInvalidArgument,
                        "wait_all() was given " + std::to_string(count) + " requests");
        wait_for(static_cast<size_t>(count), requests, statuses == MPI_STATUSES_IGNORE ? nullptr : statuses);
    }

  private:
    /// On the stack of who waits.
    struct Wait {
        BlockCondition done;
        size_t left = 0;
        int error = MPI_SUCCESS;  // the first
    };
    /// What is to be written when requests_[i] is done.
    struct Place {
        Wait* wait;  // null: it is done
        MPI_Request* request;
        MPI_Status* status;  // null: nobody wants it
    };

    void wait_for(size_t count, MPI_Request* requests, MPI_Status* statuses) {
        Wait wait;
        bool blocks = false;
        {
            const std::lock_guard entering(entering_);
            std::unique_lock lock(mutex_);
            std::unique_lock alone(one_at_a_time(), std::defer_lock);
            if (serialized_) alone.lock();
            make_room(count);
            for (size_t i = 0; i < count; ++i) {
                MPI_Status* const status = statuses == nullptr ? nullptr : &statuses[i];
                int done = 0;
                const int error =
                    MPI_Test(&requests[i], &done, status == nullptr ? MPI_STATUS_IGNORE : status);
                if (error != MPI_SUCCESS) note(wait, error);
                if (done != 0 || error != MPI_SUCCESS) continue;
                requests_.push_back(requests[i]);
                places_.push_back({&wait, &requests[i], status});
                ++wait.left;
            }
            blocks = wait.left > 0;
            const bool first = blocks && !std::exchange(registered_, true);
            if (serialized_) alone.unlock();
            lock.unlock();  // the service takes it
            if (first) start_service(wait);
        }
        if (blocks) {
            try {
                wait.done.block();
            } catch (...) {
                const std::lock_guard lock(mutex_);
                forget(wait);
                throw;
            }
        }
        check(wait.error, "an MPI request");
    }

    void start_service(const Wait& wait) {
        try {
            register_polling_service(runtime_, "MPI", &MpiProgress::poll, this);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            registered_ = false;
            forget(wait);
            throw;
        }
    }

    /// So that testing needs no memory.
    void make_room(size_t count) {
        try {
            const size_t all = requests_.size() + count;
            requests_.reserve(all);
            places_.reserve(all);
            indices_.resize(std::max(indices_.size(), all));
            statuses_.resize(std::max(statuses_.size(), all));
        } catch (const std::bad_alloc&) {
            throw Error(ErrorCode::kLimit, "there is no memory to wait for one more MPI request");
        }
    }

    static bool poll(void* self) { return static_cast<MpiProgress*>(self)->test(); }

    /// True: nobody waits any more.
    bool test() noexcept {
        const std::lock_guard lock(mutex_);
        if (!requests_.empty()) {
            std::unique_lock alone(one_at_a_time(), std::defer_lock);
            if (serialized_) alone.lock();
            int count = 0;
            const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                           indices_.data(), statuses_.data());
            const bool some = (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) && count != MPI_UNDEFINED;
            for (int k = 0; some && k < count; ++k) {
                const MPI_Status& status = statuses_[static_cast<size_t>(k)];
                finish(static_cast<size_t>(indices_[static_cast<size_t>(k)]), status,
                       error == MPI_SUCCESS ? MPI_SUCCESS : status.MPI_ERROR);
            }
            // None of them is active any more, or MPI cannot say which has failed.
            for (size_t i = 0; !some && i < requests_.size(); ++i) finish(i, MPI_Status{}, error);
            close_gaps();
        }
        registered_ = !requests_.empty();
        return !registered_;
    }

    void finish(size_t index, const MPI_Status& status, int error) noexcept {
        const Place place = std::exchange(places_[index], {nullptr, nullptr, nullptr});
        *place.request = requests_[index];
        if (place.status != nullptr) *place.status = status;
        if (error != MPI_SUCCESS) note(*place.wait, error);
        if (--place.wait->left == 0) place.wait->done.signal();
    }

    /// It does not wait any more; its requests are its own again.
    void forget(const Wait& wait) noexcept {
        for (Place& place : places_)
            if (place.wait == &wait) place.wait = nullptr;
        close_gaps();
    }

    void close_gaps() noexcept {
        size_t kept = 0;
        for (size_t i = 0; i < places_.size(); ++i) {
            if (places_[i].wait == nullptr) continue;
            places_[kept] = places_[i];
            requests_[kept++] = requests_[i];
        }
        places_.resize(kept);
        requests_.resize(kept);
    }

    static void note(Wait& wait, int error) noexcept {
        if (wait.error == MPI_SUCCESS) wait.error = error;
    }

    static void check(int error, const char* what) {
        if (error == MPI_SUCCESS) return;
        char text[MPI_MAX_ERROR_STRING + 1] = "";
        int length = 0;
        MPI_Error_string(error, text, &length);
        throw Error(ErrorCode::kSystem, std::string(what) + " failed: " + text);
    }

    /// Of all in the process, whichever their runtimes, and of heddle/mpi.h.
    class OneAtATime {
      public:
        void lock() { pthread_mutex_lock(&heddle_mpi_one_at_a_time); }
        void unlock() { pthread_mutex_unlock(&heddle_mpi_one_at_a_time); }
    };
    static OneAtATime& one_at_a_time() {
        static OneAtATime lock;
        return lock;
    }

    Runtime& runtime_;
    bool serialized_ = false;
    std::mutex entering_;  // around mutex_: nobody relies on a service that another cannot start
    std::mutex mutex_;     // for all below
    bool registered_ = false;
    std::vector<MPI_Request> requests_;
    std::vector<Place> places_;  // as many
    std::vector<int> indices_;   // for MPI_Testsome, as many or more
    std::vector<MPI_Status> statuses_;
};

}  // namespace heddle
