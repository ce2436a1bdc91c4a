#include "memory/joined_server.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/settings.hpp"
#include "base/temporary_folder.hpp"
#include "memory/meeting_place.hpp"
#include "memory/segment_plug_in.hpp"

namespace heddle::memory {
namespace {

/// In HEDDLE_MESH: messages of MPI, and no sockets.
constexpr const char* kOverMpi = "mpi";

ServerOptions options_of(const std::string& place) {
    ServerOptions options;
    const size_t slash = place.find('/');
    const auto number = [&](const std::string& text) {
        Rank value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || error != std::errc() || end != text.data() + text.size())
            throw Error(
                ErrorCode::kBadInput,
                fmt::format("HEDDLE_RANK is \"{}\": it is to be as 1/4, the second of four ranks", place));
        return value;
    };
    options.rank = number(place.substr(0, slash));
    options.ranks = number(slash == std::string::npos ? "" : place.substr(slash + 1));
    options.folder = setting("HEDDLE_MESH");
    if (options.ranks > 1 && options.folder.empty())
        throw Error(
            ErrorCode::kBadInput,
            "HEDDLE_RANK is set and HEDDLE_MESH is not: it names the folder where the ranks find each other");
    return options;
}

/// A folder for the sockets of a mesh, which rank 0 makes and takes away.
class MeetingPlace {
  public:
    explicit MeetingPlace(RankGroup& group) {
        std::string problem;
        try {
            if (group.rank() == 0) folder_.emplace(meeting_place());
        } catch (const Error& error) {
            problem = fmt::format("rank 0 has no folder for the sockets: {}", error.what());
        }
        problem = group.share(problem);
        if (!problem.empty()) throw Error(ErrorCode::kSystem, problem);
        path_ = group.share(folder_ ? folder_->path() : "");
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::optional<TemporaryFolder> folder_;  // of rank 0
    std::string path_;
};

std::unique_ptr<ServerState> join(RankGroup& group) {
    ServerOptions options;
    options.rank = group.rank();
    options.ranks = group.ranks();
    if (setting("HEDDLE_MESH") == kOverMpi || !group.on_one_machine())
        return std::make_unique<ServerState>(options, group.transport());
    const MeetingPlace place(group);
    options.folder = place.path();
    auto server = std::make_unique<ServerState>(options);
    (void)server->meet({});  // nobody looks for anybody there any more
    return server;
}

}  // namespace

std::unique_ptr<ServerState> make_server_of_environment() {
    const std::string place = setting("HEDDLE_RANK");
    if (!place.empty()) return std::make_unique<ServerState>(options_of(place));
    if (const std::unique_ptr<RankGroup> group = ranks_of_launcher()) return join(*group);
    return std::make_unique<ServerState>(ServerOptions());
}

std::unique_ptr<ServerState> make_server(const ServerOptions& options) {
    if (!options.communicator) return std::make_unique<ServerState>(options);
    if (!program_has_mpi())
        throw Error(ErrorCode::kInvalidArgument,
                    "a server is to have the ranks of a communicator, and the program has no MPI");
    return join(*mpi_plug_in().ranks(true, options.communicator));
}

}  // namespace heddle::memory
