#include "memory/joined_server.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/settings.hpp"
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
    explicit MeetingPlace(RankGroup& group) : owner_(group.rank() == 0) {
        std::string problem;
        if (owner_) {
            const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
            path_ = std::string(runtime != nullptr && *runtime != '\0' ? runtime : "/tmp") +
                    "/heddle-mesh-XXXXXX";
            if (::mkdtemp(path_.data()) == nullptr)
                problem = fmt::format("rank 0 cannot make the folder {}: {}", path_, std::strerror(errno));
        }
        problem = group.share(problem);
        if (!problem.empty()) throw Error(ErrorCode::kSystem, problem);
        path_ = group.share(path_);
    }
    ~MeetingPlace() {
        std::error_code ignored;
        if (owner_) std::filesystem::remove_all(path_, ignored);
    }
    MeetingPlace(const MeetingPlace&) = delete;
    MeetingPlace& operator=(const MeetingPlace&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    bool owner_;
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

}  // namespace heddle::memory
