#include "base/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>

namespace heddle {

FileWatch::FileWatch() : notify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

FileWatch::~FileWatch() {
    if (notify_ >= 0) ::close(notify_);
}

void FileWatch::change(const std::vector<std::string>& before, const std::vector<std::string>& now) {
    for (const std::string& path : now) {
        Watched& file = watched_[path];
        ++file.users;
        if (file.number < 0) file.number = inotify_add_watch(notify_, path.c_str(), IN_MODIFY);
    }
    for (const std::string& path : before) {
        const auto place = watched_.find(path);
        if (place == watched_.end() || --place->second.users > 0) continue;
        if (place->second.number >= 0) inotify_rm_watch(notify_, place->second.number);
        watched_.erase(place);
    }
}

std::vector<std::string> FileWatch::written() {
    std::set<int> numbers;
    bool lost = false;
    alignas(inotify_event) std::array<char, 4096> events;
    for (ssize_t bytes; notify_ >= 0 && (bytes = ::read(notify_, events.data(), events.size())) > 0;) {
        for (const char* at = events.data(); at < events.data() + bytes;) {
            inotify_event event;
            std::memcpy(&event, at, sizeof event);
            at += sizeof event + event.len;
            lost = lost || (event.mask & IN_Q_OVERFLOW) != 0;
            if ((event.mask & IN_MODIFY) != 0) numbers.insert(event.wd);
            // It was removed, and its number ends with it.
            if ((event.mask & IN_IGNORED) != 0)
                for (auto& [path, file] : watched_)
                    if (file.number == event.wd) file.number = -1;
        }
    }
    std::vector<std::string> paths;
    for (const auto& [path, file] : watched_)
        if (file.number >= 0 && (lost || numbers.contains(file.number))) paths.push_back(path);
    return paths;
}

}  // namespace heddle
