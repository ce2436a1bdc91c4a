#include "engines/starpu/starpu_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr const char* kName = "STARPU_PERF_MODEL_DIR";
constexpr Nanoseconds kPatience = std::chrono::seconds(10), kPause = std::chrono::milliseconds(2);

std::optional<std::string> variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// Where StarPU will write; "" where no variable says so.
std::string folder_of_user() {
    if (const auto folder = variable(kName)) return *folder;
    for (const char* name : {"XDG_CACHE_HOME", "STARPU_HOME", "HOME"})
        if (const auto home = variable(name)) return *home + "/.starpu/sampling";
    return "";
}

/// With all folders above it that are missing. False: errno says why.
bool make_and_write(const std::string& path) {
    for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        (void)::mkdir(path.substr(0, end).c_str(), 0700);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

bool is_writable(const std::string& folder) {
    if (folder.empty()) return false;
    for (const char* part : {"/bus", "/codelets", "/debug"})
        if (!make_and_write(folder + part)) return false;
    return true;
}

}  // namespace

StarPuFolder::StarPuFolder() {
    const std::string folder = folder_of_user();
    if (!is_writable(folder)) {
        const std::string why = folder.empty() ? "HOME is not set" : folder + ": " + std::strerror(errno);
        try {
            own_.emplace(TemporaryFolder::place() + "/heddle-starpu-");
        } catch (const Error& error) {
            throw Error(ErrorCode::kUnavailable, "StarPU needs a folder for what it measures (" + why +
                                                     "): " + error.what() +
                                                     ". Let STARPU_HOME name one that can be written");
        }
        named_ = variable(kName);
        set_variable(kName, own_->path());
        return;
    }
    lock_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const SteadyClock clock;
    const Time end = clock.now() + kPatience;
    while (lock_.valid() && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && clock.now() < end)
        std::this_thread::sleep_for(kPause);
}

StarPuFolder::~StarPuFolder() {
    if (named_)
        set_variable(kName, *named_);
    else if (own_)
        unset_variable(kName);
}

}  // namespace heddle
