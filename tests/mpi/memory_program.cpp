// memory_program CASE   What a program that has MPI does with segments of kind mpi, on any number of ranks;
// prints what was wrong and exits with 1. Built once for each MPI.
//
//   all          all kinds of segments at once, by all ways in which MPI carries data
//   communicator  servers whose ranks are the processes of communicators of the program's own
//   uninitialised, funneled, finalised, other_ranks   have to be refused
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "heddle/compat/vmem.hpp"
#include "heddle/memory.h"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: it is all about these

int failures = 0;
std::atomic<int> made_communicators{0};  // and not freed

void expect(bool holds, const std::string& what) {
    if (holds) return;
    std::printf("not so: %s\n", what.c_str());
    ++failures;
}

void expect_error(const std::function<void()>& call, const std::string& words) {
    try {
        call();
        expect(false, "an error with: " + words);
    } catch (const heddle::Error& error) {
        expect(std::strstr(error.what(), words.c_str()) != nullptr,
               "\"" + std::string(error.what()) + "\" says " + words);
    }
}

/// Random ranges of an allocation that goes over all ranks, put by the ranks in turn and read by all.
void random_ranges(Server& server, Client& client, Collective& collective, DataId data, uint64_t size) {
    const CacheId cache = client.create_cache(2 * size);
    std::vector<unsigned char> model(size);
    std::mt19937 same(7), own(server.rank());
    for (unsigned round = 0; round < 40; ++round) {
        const uint64_t offset = same() % size, length = 1 + same() % (size - offset);
        const auto value = static_cast<unsigned char>(same());
        std::memset(model.data() + offset, value, length);
        if (round % server.ranks() == server.rank()) {
            const MutableLocalRange local = client.allocate_local(length, cache);
            std::memset(local.pointer(), value, length);
            client.put_and_release(local, {data, {offset, length}});
        }
        collective.barrier();
        for (const uint64_t first : {uint64_t{0}, own() % size}) {
            const ConstLocalRange local = client.get_const({data, {first, size - first}}, cache);
            expect(std::memcmp(local.pointer(), model.data() + first, size - first) == 0,
                   "a range holds what was put");
            client.release(local);
        }
        collective.barrier();
    }
    client.delete_cache(cache);
}

/// Threads of all ranks add to the same numbers.
void exclusive_numbers(Server& server, Client& client, Collective& collective, DataId data) {
    constexpr uint64_t kSize = 11 * sizeof(uint64_t), kRounds = 30;
    const GlobalRange all{data, {3, kSize}};
    const CacheId cache = client.create_cache(2 * kSize);
    uint64_t numbers[11] = {};
    if (server.rank() == 0) {
        const MutableLocalRange zero = client.allocate_local(kSize, cache);
        std::memset(zero.pointer(), 0, kSize);
        client.put_and_release(zero, all);
    }
    collective.barrier();
    for (uint64_t round = 0; round < kRounds; ++round) {
        const MutableLocalRange mine = client.get_exclusive(all, cache);
        std::memcpy(numbers, mine.pointer(), kSize);
        for (uint64_t& number : numbers) ++number;
        std::memcpy(mine.pointer(), numbers, kSize);
        client.put_and_release(mine, all);
    }
    collective.barrier();
    const ConstLocalRange sum = client.get_const(all, cache);
    std::memcpy(numbers, sum.pointer(), kSize);
    for (const uint64_t number : numbers) expect(number == kRounds * server.ranks(), "nothing added is lost");
    client.release(sum);
    collective.barrier();
    client.delete_cache(cache);
}

void run_all() {
    constexpr uint64_t kSize = 5'003;
    Server server;
    Client client(server);
    Collective collective(server);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(static_cast<Rank>(rank) == server.rank() && static_cast<Rank>(ranks) == server.ranks(),
           "the ranks are MPI's");
    std::vector<SegmentId> segments;
    std::vector<DataId> all;
    for (const char* data : {"", "shared", "windows", "messages", "shm"}) {
        SegmentDescription description{"mpi", {}};
        if (std::strcmp(data, "shm") == 0)
            description.kind = "shm";
        else if (*data != '\0')
            description.options["data"] = data;
        segments.push_back(collective.create_segment(kSize + 100, description));
        all.push_back(collective.allocate(kSize, segments.back()));
    }
    for (const DataId data : all) {
        random_ranges(server, client, collective, data, kSize);
        exclusive_numbers(server, client, collective, data);
    }
    // One goes, and another one comes in its place.
    collective.free(all[2]);
    collective.delete_segment(segments[2]);
    segments[2] = collective.create_segment(kSize, {"mpi", {{"data", "windows"}}});
    all[2] = collective.allocate(kSize, segments[2]);
    random_ranges(server, client, collective, all[2], kSize);

    expect_error(
        [&] {
            (void)collective.create_segment(1, {"mpi", {{"data", "pigeons"}}});
        },
        "one of auto, shared, windows, messages");
    expect_error(
        [&] {
            (void)collective.create_segment(1, {"mpi", {{"path", "/tmp"}}});
        },
        "segments of kind mpi have no option \"path\"");
    for (const char* data : {"auto", "shared", "windows", "messages"})
        expect_error(
            [&] {
                (void)collective.create_segment(uint64_t{1} << 60, {"mpi", {{"data", data}}});
            },
            "bytes");
    collective.barrier();
}

/// Its last rank first; what is put by one is got by all.
void on_communicator(MPI_Comm communicator) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    vmem::server wrapped{vmem::mpi::context::params(communicator)};
    Server& server = wrapped.native();
    expect(server.rank() == static_cast<Rank>(rank) && server.ranks() == static_cast<Rank>(ranks),
           "ranks are those of the communicator");
    Client client(server);
    Collective collective(server);
    constexpr uint64_t kSize = 1000;
    for (const char* kind : {"mpi", "shm"}) {
        const DataId data = collective.allocate(kSize, collective.create_segment(kSize, {kind, {}}));
        random_ranges(server, client, collective, data, kSize);
    }
    collective.barrier();
}

/// From C.
void on_communicator_in_c(MPI_Comm communicator) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    heddle_memory_server_t* const server = heddle_memory_server_create_of(MPI_Comm_c2f(communicator), 30);
    uint32_t own = 99, all = 99;
    expect(heddle_memory_server_rank(server, &own, &all) == HEDDLE_MEMORY_SUCCESS &&
               own == static_cast<uint32_t>(rank) && all == static_cast<uint32_t>(ranks),
           "ranks are those of the communicator in C, too");
    expect(heddle_memory_barrier(server) == HEDDLE_MEMORY_SUCCESS, heddle_memory_error_message());
    expect(heddle_memory_server_destroy(server) == HEDDLE_MEMORY_SUCCESS, heddle_memory_error_message());
    expect(heddle_memory_server_create_of(MPI_Comm_c2f(MPI_COMM_NULL), 30) == nullptr &&
               std::strstr(heddle_memory_error_message(), "is none") != nullptr,
           "no communicator is refused in C");
}

void run_on_communicators() {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm turned, half;
    MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &turned);
    on_communicator(turned);
    // Two servers of one half of the processes each, at once.
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    on_communicator(half);
    const int made = made_communicators;
    expect(made > 0, "communicators are counted");
    on_communicator(turned);
    expect(made_communicators == made, "what stays of a group's servers is made once");
    expect_error([] { (void)Server({.communicator = MPI_Comm_c2f(MPI_COMM_NULL)}); }, "is none");
    on_communicator_in_c(turned);
    MPI_Comm_free(&half);
    MPI_Comm_free(&turned);
}

}  // namespace

/// By MPI's profiling interface: also what libraries make.
int MPI_Comm_dup(MPI_Comm communicator, MPI_Comm* copy) {
    ++made_communicators;
    return PMPI_Comm_dup(communicator, copy);
}
int MPI_Comm_split_type(MPI_Comm communicator, int type, int key, MPI_Info info, MPI_Comm* part) {
    ++made_communicators;
    return PMPI_Comm_split_type(communicator, type, key, info, part);
}
int MPI_Comm_free(MPI_Comm* communicator) {
    --made_communicators;
    return PMPI_Comm_free(communicator);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string which = argv[1];
    int level = 0;
    if (which == "uninitialised") {
        expect_error(
            [] {
                Server server;
                (void)Client(server).create_segment(1, {"mpi", {}});
            },
            "MPI is not initialised yet");
        return failures == 0 ? 0 : 1;
    }
    MPI_Init_thread(&argc, &argv, which == "funneled" ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    try {
        if (which == "all") run_all();
        if (which == "communicator") run_on_communicators();
        if (which == "funneled" && level >= MPI_THREAD_MULTIPLE)
            std::printf("skipped: this MPI gives more threads than were asked for\n");
        else if (which == "funneled")
            expect_error(
                [] {
                    Server server;
                    (void)Client(server).create_segment(1, {"mpi", {}});
                },
                "MPI was initialised with MPI_THREAD_FUNNELED");
        if (which == "other_ranks") {
            ::setenv("HEDDLE_RANK", "0/1", 1);
            Server server;
            expect_error(
                [&] {
                    (void)Client(server).create_segment(1, {"mpi", {}});
                },
                "which must be the same for segments of kind mpi");
        }
    } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    if (which == "finalised")
        expect_error(
            [] {
                Server server;
                (void)Client(server).create_segment(1, {"mpi", {}});
            },
            "MPI was finalised already");
    return failures == 0 ? 0 : 1;
}
