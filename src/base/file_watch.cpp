#include "base/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace heddle {

FileWatch::FileWatch() : notify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

FileWatch::~FileWatch() {
    if (notify_ >= 0) ::close(notify_);
}

void FileWatch::watch(const std::vector<std::string>& paths) {
    if (notify_ < 0) return;
    std::erase_if(watched_, [&](const auto& entry) {
        if (std::ranges::find(paths, entry.first) != paths.end()) return false;
        inotify_rm_watch(notify_, entry.second);
        return true;
    });
    for (const std::string& path : paths) {
        if (watched_.contains(path)) continue;
        const int number = inotify_add_watch(notify_, path.c_str(), IN_MODIFY);
        if (number >= 0) watched_.emplace(path, number);
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
                std::erase_if(watched_, [&](const auto& entry) { return entry.second == event.wd; });
        }
    }
    std::vector<std::string> paths;
    for (const auto& [path, number] : watched_)
        if (lost || numbers.contains(number)) paths.push_back(path);
    return paths;
}

}  // namespace heddle
