#include "memory/segments/mpi/mpi_runtime.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <vector>

namespace heddle::memory {
namespace {

struct Communicators {
    explicit Communicators(MPI_Comm like) : changes(like), servers(like) {}
    Communicator changes, servers;
    std::optional<std::string> problems_of_windows[2];
};

/// Of each group of processes that has had a server by a communicator of the program's. Never ended:
/// MPI_Finalize does that.
std::vector<Communicators*> of_groups;
/// The one of these that is used, or null.
Communicators* of_program = nullptr;

Communicators& communicators() {
    static Communicators* const of_all = new Communicators(MPI_COMM_WORLD);
    return of_program != nullptr ? *of_program : *of_all;
}

void end_mpi(int status, void*) {
    if (status == 0 && mpi_is_running()) MPI_Finalize();
}

const char* name_of_level(int level) {
    switch (level) {
        case MPI_THREAD_SINGLE:
            return "MPI_THREAD_SINGLE";
        case MPI_THREAD_FUNNELED:
            return "MPI_THREAD_FUNNELED";
        case MPI_THREAD_SERIALIZED:
            return "MPI_THREAD_SERIALIZED";
        default:
            return "MPI_THREAD_MULTIPLE";
    }
}

/// Its own plug-ins look for its symbols in all of the process.
void show_to_all() {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) != 0)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

}  // namespace

bool mpi_is_running() {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun != 0 && ended == 0;
}

void start_mpi(bool program_has_it) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    int begun = 0, ended = 0, level = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (ended != 0)
        throw Error(ErrorCode::kInvalidArgument, "MPI was finalised already: end the server before");
    if (begun == 0 && program_has_it)
        throw Error(ErrorCode::kInvalidArgument,
                    "MPI is not initialised yet: the program has MPI, so it calls MPI_Init_thread, with "
                    "MPI_THREAD_MULTIPLE, before it makes a server");
    if (begun == 0) {
        show_to_all();
        check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
        ::on_exit(end_mpi, nullptr);
    } else {
        MPI_Query_thread(&level);
    }
    if (level == MPI_THREAD_MULTIPLE) return;
    if (begun == 0)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("this MPI provides {} at most, and threads of heddle call it beside those of "
                                "the program: use an MPI built with MPI_THREAD_MULTIPLE",
                                name_of_level(level)));
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("MPI was initialised with {}, and threads of heddle call it beside those of the "
                    "program: call MPI_Init_thread with MPI_THREAD_MULTIPLE, and look at what it provides",
                    name_of_level(level)));
}

void check_mpi(int code, const std::string& what) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Error(ErrorCode::kSystem, fmt::format("{} failed: {}", what, text));
}

Communicator::Communicator(MPI_Comm like) {
    check_mpi(MPI_Comm_dup(like, &own_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(own_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

Communicator::~Communicator() {
    if (mpi_is_running()) MPI_Comm_free(&own_);
}

Rank Communicator::rank() const {
    int rank = 0;
    check_mpi(MPI_Comm_rank(own_, &rank), "MPI_Comm_rank");
    return static_cast<Rank>(rank);
}

Rank Communicator::ranks() const {
    int ranks = 0;
    check_mpi(MPI_Comm_size(own_, &ranks), "MPI_Comm_size");
    return static_cast<Rank>(ranks);
}

Rank Communicator::ranks_of_machine() const {
    MPI_Comm near = MPI_COMM_NULL;
    int count = 0;
    check_mpi(MPI_Comm_split_type(own_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near),
              "MPI_Comm_split_type");
    check_mpi(MPI_Comm_size(near, &count), "MPI_Comm_size");
    MPI_Comm_free(&near);
    return static_cast<Rank>(count);
}

std::string Communicator::share(const std::string& text, int root) const {
    int size = static_cast<int>(std::min<size_t>(text.size(), INT_MAX));
    check_mpi(MPI_Bcast(&size, 1, MPI_INT, root, own_), "MPI_Bcast");
    std::string all = text;
    all.resize(static_cast<size_t>(size));
    check_mpi(MPI_Bcast(all.data(), size, MPI_CHAR, root, own_), "MPI_Bcast");
    return all;
}

std::string Communicator::first_problem(const std::string& problem) const {
    const int none = static_cast<int>(ranks());
    const int mine = problem.empty() ? none : static_cast<int>(rank());
    int first = none;
    check_mpi(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, own_), "MPI_Allreduce");
    return first == none ? std::string() : share(fmt::format("rank {}: {}", first, problem), first);
}

void use_communicator(std::optional<int> communicator) {
    of_program = nullptr;
    if (!communicator) return;
    const MPI_Comm like = MPI_Comm_f2c(*communicator);
    int is_between_two_groups = 1;
    if (like == MPI_COMM_NULL || MPI_Comm_test_inter(like, &is_between_two_groups) != MPI_SUCCESS ||
        is_between_two_groups != 0)
        throw Error(ErrorCode::kInvalidArgument,
                    "the communicator of a server is none, or one between two groups: the ranks are the "
                    "processes of one group");
    for (Communicators* const known : of_groups) {
        int alike = MPI_UNEQUAL;
        check_mpi(MPI_Comm_compare(like, known->servers.get(), &alike), "MPI_Comm_compare");
        if (alike == MPI_CONGRUENT) of_program = known;
    }
    if (of_program == nullptr) of_program = of_groups.emplace_back(new Communicators(like));
}

std::optional<std::string>& known_problem_of_windows(int kind) {
    return communicators().problems_of_windows[kind];
}

const Communicator& communicator_of_changes() {
    return communicators().changes;
}
const Communicator& communicator_of_servers() {
    return communicators().servers;
}

}  // namespace heddle::memory
