// gets_mpi [--quick]   For memory_ranks, by mpirun on two ranks: gets of segments of kind mpi that miss and
// lie on the other rank, against MPI_Get and a flush of an MPI_Win_allocate of its own. Rank 1 prints the
// figures.
#include <mpi.h>

#include <cstring>
#include <vector>

#include "batches.hpp"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: it is all about these

constexpr uint64_t kLargest = 16 << 20, kRanges = 4;

void misses(Client& client, DataId data, MPI_Win window, const char* name, uint64_t size, int calls) {
    const CacheId cache = client.create_cache(size);
    std::vector<std::byte> to(size);
    const auto offset = [&](int i) { return static_cast<uint64_t>(i) % kRanges * size; };
    heddle::bench::against(
        name, "us", 1e-6, calls,
        [&](int i) {
            client.release(client.get_const({data, {offset(i), size}}, cache));
        },
        [&](int i) {
            MPI_Get(to.data(), static_cast<int>(size), MPI_BYTE, 0, static_cast<MPI_Aint>(offset(i)),
                    static_cast<int>(size), MPI_BYTE, window);
            MPI_Win_flush(0, window);
        });
    client.delete_cache(cache);
}

void run(bool quick) {
    Server server;
    Client client(server);
    Collective all(server);
    void* memory = nullptr;
    MPI_Win window;
    const uint64_t bytes = kRanges * kLargest;
    MPI_Win_allocate(server.rank() == 0 ? static_cast<MPI_Aint>(bytes) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &window);
    if (server.rank() == 0) std::memset(memory, 1, bytes);
    MPI_Win_lock_all(0, window);
    const SegmentId segment = all.create_segment(2 * bytes, {"mpi", {}});
    const DataId data = all.allocate(bytes, segment, {"prefix_filled", {}});
    if (server.rank() == 1) {
        misses(client, data, window, "memory.remote_64k.mpi", 64 << 10, quick ? 20 : 500);
        misses(client, data, window, "memory.remote_1m.mpi", 1 << 20, quick ? 5 : 50);
        misses(client, data, window, "memory.remote_16m.mpi", 16 << 20, quick ? 1 : 4);
    }
    all.barrier();
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

}  // namespace

int main(int argc, char** argv) {
    int given = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    const int code = heddle::bench::run_figures(argc, argv, run);
    MPI_Finalize();
    return code;
}
