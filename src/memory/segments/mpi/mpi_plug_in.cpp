// The plug-in: segments of kind mpi, and the ranks that mpirun has started.
#include <fmt/format.h>

#include <optional>

#include "memory/segment_plug_in.hpp"
#include "memory/segments/mpi/mpi_runtime.hpp"
#include "memory/segments/mpi/mpi_segments.hpp"
#include "memory/segments/mpi/mpi_transport.hpp"

namespace heddle::memory {
namespace {

/// The servers' ranks have to be MPI's.
void check_ranks(const SegmentPlan& plan) {
    const Communicator& all = communicator_of_changes();
    if (plan.self == all.rank() && plan.part_sizes.size() == all.ranks()) return;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("rank {} of {} servers is rank {} of {} of MPI, which must be the same for segments "
                    "of kind mpi: start the ranks with mpirun and without HEDDLE_RANK, or make the server of "
                    "a communicator",
                    plan.self, plan.part_sizes.size(), all.rank(), all.ranks()));
}

/// What a window of that kind ended with, on all ranks the same, when these tried it for the first time.
const std::string& problem_of_windows(Window kind) {
    std::optional<std::string>& problem = known_problem_of_windows(kind == Window::kShared ? 0 : 1);
    if (!problem) problem = test_windows(kind);
    return *problem;
}

/// The best way that works, or the one that was asked for.
std::unique_ptr<Segment> create(const SegmentPlan& plan) {
    plan.allow_only({"data"}, "mpi");
    const std::string way = plan.option("data", {"auto", "shared", "windows", "messages"});
    check_ranks(plan);
    const uint64_t size = plan.part_sizes[plan.self];
    std::string problem;
    for (const Window kind : {Window::kShared, Window::kTransfers}) {
        if (way != "auto" && way != (kind == Window::kShared ? "shared" : "windows")) continue;
        problem = problem_of_windows(kind);
        if (!problem.empty()) continue;
        if (auto made = make_window_segment(kind, plan.self, size, problem)) return made;
    }
    if (way == "auto" || way == "messages") return make_message_segment(plan.self, size);
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("data={} does not work with this MPI here: {}; leave the option away, and a way that "
                    "works is taken",
                    way, problem));
}

std::string version() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    // The first line or part says enough, and words are divided as it comes.
    std::string words;
    for (const char* at = text; *at != '\0' && *at != ',' && *at != '\n'; ++at)
        words += *at == '\t' ? ' ' : *at;
    while (words.find("  ") != std::string::npos) words.erase(words.find("  "), 1);
    return words;
}

class MpiRanks final : public RankGroup {
  public:
    Rank rank() const override { return all_.rank(); }
    Rank ranks() const override { return all_.ranks(); }
    bool on_one_machine() const override {
        return all_.first_problem(all_.ranks_of_machine() == all_.ranks() ? "" : "others are elsewhere")
            .empty();
    }
    std::string share(const std::string& text) override { return all_.share(text, 0); }
    std::unique_ptr<Transport> transport() override { return make_mpi_transport(); }

  private:
    const Communicator& all_ = communicator_of_servers();
};

std::unique_ptr<RankGroup> ranks(bool program_has_it, std::optional<int> communicator) {
    start_mpi(program_has_it);
    use_communicator(communicator);
    return std::make_unique<MpiRanks>();
}

const SegmentPlugIn kPlugIn{{"mpi", create}, version, ranks, start_mpi};

}  // namespace
}  // namespace heddle::memory

extern "C" __attribute__((visibility("default"))) const heddle::memory::SegmentPlugIn* heddle_segment() {
    return &heddle::memory::kPlugIn;
}
