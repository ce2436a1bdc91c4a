// FakeGroups: the real system, in which all processes are in a group of cgroup v2 of the test's: real files
// in a folder, so that the kernel tells who writes them. It binds nobody to CPUs.
//
// The test writes; others may read meanwhile, but move_to() is for when nobody does.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/os.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {

class FakeGroups final : public Os {
  public:
    /// As "/outer/inner"; "": the uppermost one.
    explicit FakeGroups(const std::string& group) { move_to(group); }

    void move_to(const std::string& group) {
        std::filesystem::create_directories(folder_.path() + group);
        group_ = group;
    }
    void set(const std::string& group, const std::string& file, const std::string& text) const {
        std::ofstream(folder_.path() + group + "/" + file) << text << "\n";
    }
    /// As the kernel does where somebody writes a cpuset: what is in force is there before that is told.
    void set_cpuset(const std::string& group, const std::string& list) const {
        set(group, "cpuset.cpus.effective", list);
        set(group, "cpuset.cpus", list);
    }

    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
        if (path == "/proc/self/mountinfo")
            return "32 25 0:28 / " + folder_.path() + " rw - cgroup2 none rw\n";
        if (path.starts_with("/proc/") && path.ends_with("/cgroup")) return "0::" + group_ + "\n";
        return Os::read(path);
    }
    int bind_process(pid_t /*pid*/, const std::vector<unsigned long>& /*mask*/) override { return 0; }
    int bind_thread(pid_t /*thread*/, const std::vector<unsigned long>& /*mask*/) override { return 0; }

  private:
    TemporaryFolder folder_;
    std::string group_;
};

}  // namespace heddle::test
