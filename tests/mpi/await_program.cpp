// await_program ENGINE LEVEL   What tasks do that wait for MPI requests, on two ranks; prints what was wrong
// and exits with 1. LEVEL is multiple, serialized or funneled (which has to be refused). Built once for each
// MPI.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "heddle/mpi.hpp"

namespace {

using heddle::MpiProgress;
using heddle::Runtime;
using heddle::Sequence;

int failures = 0;
int rank = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::printf("rank %d: not so: %s\n", rank, what);
    ++failures;
}

/// More receives wait than there are workers, and what they wait for comes from tasks that come after them.
void everybody_waits_at_once(Runtime& runtime, MpiProgress& mpi, int tasks) {
    std::vector<int> got(static_cast<size_t>(tasks), -1);
    Sequence sequence(runtime);
    for (int i = 0; i < tasks; ++i)
        sequence.insert([&, i] {
            MPI_Request request;
            MPI_Status status;
            mpi.call([&] {
                return MPI_Irecv(&got[static_cast<size_t>(i)], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD,
                                 &request);
            });
            mpi.wait(request, &status);
            expect(request == MPI_REQUEST_NULL, "the request is null afterwards");
            expect(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == i, "the status is the message's");
        });
    for (int i = tasks - 1; i >= 0; --i)
        sequence.insert([&, i] {
            const int value = 1000 * rank + i;
            MPI_Request request;
            mpi.call([&] { return MPI_Isend(&value, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &request); });
            mpi.wait(request);
        });
    sequence.wait();
    for (int i = 0; i < tasks; ++i)
        expect(got[static_cast<size_t>(i)] == 1000 * (1 - rank) + i, "each message arrives");
}

/// Some tasks that play a ball each to the other rank and back.
void they_play(Runtime& runtime, MpiProgress& mpi, int balls, int rounds) {
    Sequence sequence(runtime);
    for (int ball = 0; ball < balls; ++ball)
        sequence.insert([&mpi, ball, rounds] {
            int value = 0;
            for (int round = 0; round < rounds; ++round) {
                MPI_Request request;
                for (const bool sends : {rank == 0, rank != 0}) {
                    mpi.call([&] {
                        return sends ? MPI_Isend(&value, 1, MPI_INT, 1 - rank, 5000 + ball, MPI_COMM_WORLD,
                                                 &request)
                                     : MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 5000 + ball, MPI_COMM_WORLD,
                                                 &request);
                    });
                    mpi.wait(request);
                    if (!sends) ++value;
                }
            }
            expect(value == 2 * rounds - (rank == 0 ? 0 : 1), "the ball has been everywhere");
        });
    sequence.wait();
}

void several_in_one_wait(Runtime& runtime, MpiProgress& mpi) {
    constexpr size_t kMessages = 20;
    Sequence sequence(runtime);
    sequence.insert([&] {
        std::array<int, kMessages> sent{}, got{};
        std::iota(sent.begin(), sent.end(), 100 * rank);
        std::array<MPI_Request, 2 * kMessages + 1> requests;
        std::array<MPI_Status, 2 * kMessages + 1> statuses;
        mpi.call([&] {
            for (size_t i = 0; i < kMessages; ++i) {
                const int tag = 7000 + static_cast<int>(i);
                MPI_Irecv(&got[i], 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[2 * i]);
                MPI_Isend(&sent[i], 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[2 * i + 1]);
            }
            return MPI_SUCCESS;
        });
        requests.back() = MPI_REQUEST_NULL;
        mpi.wait_all(static_cast<int>(requests.size()), requests.data(), statuses.data());
        for (size_t i = 0; i < kMessages; ++i) {
            expect(got[i] == 100 * (1 - rank) + static_cast<int>(i), "each of them arrives");
            expect(statuses[2 * i].MPI_TAG == 7000 + static_cast<int>(i), "each has its status");
        }
        mpi.wait_all(0, nullptr);
        bool refused = false;
        try {
            mpi.wait_all(-1, requests.data());
        } catch (const heddle::Error&) {
            refused = true;
        }
        expect(refused, "less than no requests are refused");
    });
    sequence.wait();
}

/// MPI's errors arrive where the request was waited for, and at nobody else.
void a_message_is_too_long(Runtime& runtime, MpiProgress& mpi) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::atomic<int> told{0};
    Sequence sequence(runtime);
    sequence.insert([&] {
        int small = 0;
        MPI_Request request;
        mpi.call([&] { return MPI_Irecv(&small, 1, MPI_INT, 1 - rank, 9000, MPI_COMM_WORLD, &request); });
        try {
            mpi.wait(request);
        } catch (const heddle::Error& error) {
            told += std::strstr(error.what(), "an MPI request failed") != nullptr;
        }
    });
    sequence.insert([&] {
        const std::array<int, 8> large{};
        MPI_Request request;
        mpi.call(
            [&] { return MPI_Isend(large.data(), 8, MPI_INT, 1 - rank, 9000, MPI_COMM_WORLD, &request); });
        mpi.wait(request);
    });
    sequence.wait();
    expect(told == 1, "the receiver is told that the message was too long");
}

void from_outside_of_tasks(MpiProgress& mpi) {
    int sent = rank, got = -1;
    std::array<MPI_Request, 2> requests;
    mpi.call([&] {
        MPI_Irecv(&got, 1, MPI_INT, 1 - rank, 9100, MPI_COMM_WORLD, &requests[0]);
        return MPI_Isend(&sent, 1, MPI_INT, 1 - rank, 9100, MPI_COMM_WORLD, &requests[1]);
    });
    mpi.wait_all(2, requests.data());
    expect(got == 1 - rank, "a thread outside of tasks may wait, too");
}

std::string refusal(Runtime& runtime) {
    try {
        const MpiProgress mpi(runtime);
        return "";
    } catch (const heddle::Error& error) {
        return error.what();
    }
}

void run(Runtime& runtime) {
    // Engines that cannot pause a task have a number of threads to spare.
    const bool pauses = runtime.engine() == "native" || runtime.engine() == "tbb";
    MpiProgress mpi(runtime);
    everybody_waits_at_once(runtime, mpi, pauses ? 500 : 8);
    they_play(runtime, mpi, pauses ? 20 : 4, 20);
    several_in_one_wait(runtime, mpi);
    from_outside_of_tasks(mpi);
    a_message_is_too_long(runtime, mpi);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string level = argv[2];
    const int wanted = level == "multiple"
                           ? MPI_THREAD_MULTIPLE
                           : (level == "serialized" ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED);
    int provided = 0;
    {
        Runtime runtime;
        expect(refusal(runtime).find("not initialised yet") != std::string::npos, "MPI comes first");
    }
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        Runtime runtime({.engine = argv[1], .cpus = {}, .workers = 1});
        if (level == "funneled")
            expect(provided > MPI_THREAD_FUNNELED ||
                       refusal(runtime).find("initialised for one thread") != std::string::npos,
                   "one thread is not enough");
        else if (provided < wanted)
            std::printf("skipped: this MPI does not provide the level %s\n", level.c_str());
        else
            run(runtime);
    } catch (const std::exception& error) {
        std::printf("rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
