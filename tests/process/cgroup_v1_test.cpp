// A real child group of cgroup v1, where this process may make one: limits are followed when they change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/managed.hpp"
#include "topology/allowance_watch.hpp"
#include "topology/thread_affinity.hpp"

using heddle::CpuSet;

namespace {

class Group {
  public:
    explicit Group(const std::string& controller)
        : path_("/sys/fs/cgroup/" + controller + "/heddle-test-" + std::to_string(getpid())),
          made_(mkdir(path_.c_str(), 0755) == 0) {}
    ~Group() {
        if (made_) rmdir(path_.c_str());
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    [[nodiscard]] bool made() const { return made_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] bool set(const std::string& name, const std::string& value) const {
        std::ofstream file(path_ + "/" + name);
        file << value << std::flush;
        return file.good();
    }

  private:
    std::string path_;
    bool made_;
};

bool announced(const heddle::AllowanceWatch& watch) {
    pollfd poll_fd{watch.fd(), POLLIN, 0};
    return poll(&poll_fd, 1, 2000) == 1;
}

/// What the child checks; the number of the first check that fails, or 0.
int follow(const Group& cpuset, const Group& cpu, int last) {
    const std::string self = std::to_string(getpid());
    const std::string one = std::to_string(last);
    if (!cpuset.set("cgroup.procs", self) || !cpu.set("cgroup.procs", self)) return 1;
    const heddle::Machine machine = heddle::Machine::detect();
    heddle::AllowanceWatch watch(machine);
    if (watch.current().cpuset.count() < 2 || watch.current().quota_cpus != 0) return 2;

    if (!cpuset.set("cpuset.cpus", one) || !announced(watch)) return 3;
    if (!watch.refresh() || watch.current().usable != CpuSet{last}) return 4;
    if (allowance(machine).cpuset != CpuSet{last}) return 5;

    if (!cpuset.set("cpuset.cpus", "0-" + one) || !announced(watch)) return 6;
    if (!watch.refresh() || watch.current().cpuset != CpuSet::range(0, last + 1)) return 7;
    if (watch.current().usable.count() < 2) return 8;

    if (!cpu.set("cpu.cfs_quota_us", "60000") || !announced(watch)) return 9;
    if (!watch.refresh() || watch.current().quota_cpus != 0.6 || watch.current().usable.count() != 1)
        return 10;
    return 0;
}

}  // namespace

TEST(CgroupV1, CpusetAndQuotaOfAChildGroupAreFollowed) {
    const CpuSet all = heddle::thread_affinity();
    if (all.count() < 2 || all.to_list() != "0-" + std::to_string(all.last()))
        GTEST_SKIP() << "this test needs two CPUs or more, numbered from 0";
    const Group cpuset("cpuset");
    const Group cpu("cpu");
    if (!cpuset.made() || !cpu.made()) GTEST_SKIP() << "no cgroup v1 where this user may make groups";
    if (!cpuset.set("cpuset.mems", "0") || !cpuset.set("cpuset.cpus", all.to_list()))
        GTEST_SKIP() << "the cpuset controller refuses a child group";
    const pid_t child = fork();
    if (child == 0) {
        try {
            _exit(follow(cpuset, cpu, all.last()));
        } catch (...) {
            _exit(100);
        }
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the number is that of the check in follow()";
}

/// Nobody else wakes the arbiter: it hears of the change itself.
TEST(CgroupV1, TheQuotaOfAProgramAloneIsFollowed) {
    if (heddle::thread_affinity().count() < 2) GTEST_SKIP() << "this test needs two CPUs";
    const Group cpu("cpu");
    if (!cpu.made()) GTEST_SKIP() << "no cgroup v1 where this user may make groups";
    const heddle::test::Managed managed;
    const auto outcome = managed.shell(
        "echo $$ > " + cpu.path() +
        "/cgroup.procs; exec $HEDDLE run --mode mask -- sh -c '\n"
        // Only the shell itself: a child would be a newcomer.
        "cpus() { while read name value; do case $name in Cpus_allowed_list:) break;; esac; done\n"
        "    } < /proc/self/status\n"
        "await() { i=0; while cpus; ! eval \"case \\$value in $1) true;; *) false;; esac\"; do\n"
        "    i=$((i + 1)); [ $i -lt 100000 ] || { echo \"no $1 but $value\"; exit 1; }; done; echo $2; }\n"
        "await \"*[-,]*\" several\n"
        "echo 100000 > " +
        cpu.path() +
        "/cpu.cfs_quota_us\n"
        "await \"[0-9]|[0-9][0-9]\" one\n"
        "echo -1 > " +
        cpu.path() +
        "/cpu.cfs_quota_us\n"
        "await \"*[-,]*\" several'");
    EXPECT_EQ(outcome.output, "several\none\nseveral\n") << outcome.errors;
}
