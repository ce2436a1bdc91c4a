// RecordedGroups: an Os whose control groups and processes are made from one recorded text, and behave as the
// kernel's: a group has its files as soon as it is made, a process is in one at a time, and only an empty
// group can be removed.
//
// The text is RecordedFiles'. Each folder with a cgroup.procs is a group with these processes, /proc/N/task
// lists the threads of a process, and "line" and "top" are how its /proc/N/cgroup begins and the folder that
// stands for "/" there. For a test of one thread.
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/os.hpp"
#include "support/recorded_files.hpp"

namespace heddle::test {

class RecordedGroups final : public Os {
  public:
    explicit RecordedGroups(std::string_view text) : files_(RecordedFiles(text).all()) {
        for (const auto& [path, content] : files_)
            if (name_of(path) == "cgroup.procs") {
                for (const std::string& process : words(content)) group_[process] = parent_of(path);
                groups_.insert(parent_of(path));
            }
    }

    /// The calls that changed something, in order: "make PATH", "remove PATH", "PATH < TEXT".
    std::vector<std::string> log;
    /// Which of these calls fail, and how: 0 or an errno.
    std::function<int(const std::string&)> failure = [](const std::string&) { return 0; };

    [[nodiscard]] std::string group_of(pid_t process) const { return group_.at(std::to_string(process)); }
    [[nodiscard]] bool has_group(const std::string& path) const { return groups_.contains(path); }
    [[nodiscard]] std::string content(const std::string& path) const { return files_.at(path); }
    void fork(pid_t parent, pid_t child) { group_[std::to_string(child)] = group_of(parent); }
    void end(pid_t process) { group_.erase(std::to_string(process)); }

    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
        if (path.starts_with("/proc/")) {
            const auto process = group_.find(path.substr(6, path.find('/', 6) - 6));
            const auto wanted = files_.find(path);
            if (wanted != files_.end()) return wanted->second;
            if (process == group_.end() || !path.ends_with("/cgroup")) return std::nullopt;
            const std::string below = process->second.substr(setting("top").size());
            return setting("line") + (below.empty() ? "/" : below) + "\n";
        }
        const std::string folder = parent_of(path);
        const bool threaded = is_threaded(folder);
        if (groups_.contains(folder) &&
            (name_of(path) == "cgroup.threads" || (name_of(path) == "cgroup.procs" && !threaded))) {
            std::string members;
            for (const auto& [process, group] : group_)
                if (group == folder) members += process + "\n";
            return members;
        }
        const auto found = files_.find(path);
        return found == files_.end() ? std::nullopt : std::optional(found->second);
    }
    int write(const std::string& path, const std::string& text) override {
        if (const int failed = note(path + " < " + text); failed != 0) return failed;
        const std::string folder = parent_of(path);
        if (!groups_.contains(folder)) return -ENOENT;
        if (name_of(path) == "cgroup.subtree_control") return give(folder, text);
        if (name_of(path) == "cpuset.cpus" && unified() && !gives(parent_of(folder))) return -ENOENT;
        if (name_of(path) != "cgroup.procs") {
            files_[path] = text;
            return 0;
        }
        if (!group_.contains(text)) return -ESRCH;
        if (is_made(folder) && (!has(folder, "cpuset.cpus") || (!unified() && !has(folder, "cpuset.mems"))))
            return -ENOSPC;
        group_[text] = folder;
        return 0;
    }
    int make_folder(const std::string& path) override {
        if (const int failed = note("make " + path); failed != 0) return failed;
        return groups_.insert(path).second ? 0 : -EEXIST;
    }
    int remove_folder(const std::string& path) override {
        if (const int failed = note("remove " + path); failed != 0) return failed;
        if (!groups_.contains(path)) return -ENOENT;
        for (const auto& [process, group] : group_)
            if (group == path) return -EBUSY;
        groups_.erase(path);
        std::erase_if(files_, [&](const auto& file) { return parent_of(file.first) == path; });
        return 0;
    }
    std::vector<std::string> folders_in(const std::string& path) override {
        std::vector<std::string> names;
        for (const std::string& group : groups_)
            if (parent_of(group) == path) names.push_back(name_of(group));
        if (path.starts_with("/proc/"))
            for (const std::string& thread : words(files_[path])) names.push_back(thread);
        return names;
    }
    bool may_write(const std::string& path) override { return failure("write " + path) == 0; }

  private:
    static std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
    static std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
    static std::vector<std::string> words(const std::string& text) {
        std::istringstream stream(text);
        return {std::istream_iterator<std::string>(stream), {}};
    }
    [[nodiscard]] bool is_made(const std::string& group) const {
        return name_of(group).starts_with("heddle-fence-");
    }
    [[nodiscard]] std::string setting(const std::string& name) const { return words(files_.at(name)).at(0); }
    [[nodiscard]] bool unified() const { return setting("line").starts_with("0:"); }
    [[nodiscard]] bool has(const std::string& folder, const std::string& file) const {
        const auto found = files_.find(folder + "/" + file);
        return found != files_.end() && !words(found->second).empty();
    }
    [[nodiscard]] bool is_threaded(const std::string& folder) const {
        return has(folder, "cgroup.type") && words(files_.at(folder + "/cgroup.type"))[0] == "threaded";
    }
    [[nodiscard]] bool gives(const std::string& folder) const {
        return has(folder, "cgroup.subtree_control");
    }
    /// A group with processes gives controllers to threaded children only.
    int give(const std::string& folder, const std::string& text) {
        const auto names = folders_in(folder);
        const bool to_threaded = std::ranges::any_of(
            names, [&](const std::string& name) { return is_threaded(folder + "/" + name); });
        if (text.starts_with('+') && !to_threaded) return -EBUSY;
        files_[folder + "/cgroup.subtree_control"] = text.starts_with('+') ? text.substr(1) : "";
        return 0;
    }
    int note(const std::string& call) {
        log.push_back(call);
        return -failure(call);
    }

    std::map<std::string, std::string> files_;
    std::set<std::string> groups_;
    std::map<std::string, std::string> group_;  // by process
};

}  // namespace heddle::test
