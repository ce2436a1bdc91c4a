// Programs in control groups of their own, made by this test where it may: the arbiter is in none of them;
// and programs that are bound as they run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/os.hpp"
#include "cores/observer.hpp"
#include "heddle/machine.hpp"
#include "support/child.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"
#include "topology/cgroup.hpp"

namespace heddle::test {
namespace {

/// A group below this process's in a hierarchy of cgroup v1; gone with this.
class Group {
  public:
    explicit Group(const std::string& parent) : path_(parent + "/heddle-test-" + std::to_string(::getpid())) {
        std::error_code failed;
        made_ = std::filesystem::create_directory(path_, failed);
    }
    ~Group() {
        std::error_code ignored;
        if (made_) becomes_true([&] { return std::filesystem::remove(path_, ignored); });
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    [[nodiscard]] bool made() const { return made_; }
    [[nodiscard]] bool write(const std::string& file, const std::string& text) const {
        return Os::system().write(path_ + "/" + file, text) == 0;
    }
    [[nodiscard]] std::string read(const std::string& file) const {
        return Os::system().read(path_ + "/" + file).value_or("");
    }

  private:
    std::string path_;
    bool made_ = false;
};

class GroupLimits : public testing::Test {
  protected:
    void SetUp() override {
        if (Machine::detect().synthetic() || allowance(Machine::detect()).usable.count() < 2)
            GTEST_SKIP() << "needs two real CPUs";
    }
    void start() {
        program_ = Child({kHeddle, "run", "--", HEDDLE_BUILD_DIR "/tests/programs/plain", "spin", "60"},
                         {"HEDDLE_ARBITER=" + daemon_.path()});
        ASSERT_TRUE(becomes_true([&] { return held().count() == 2; }));
    }
    [[nodiscard]] CpuSet held() const {
        const auto clients = Observer(daemon_.path()).status().clients;
        return clients.empty() ? CpuSet{} : clients.front().granted;
    }

    Daemon daemon_{{"", {}, {}}};
    Child program_;
};

TEST_F(GroupLimits, AProgramIsKeptWithinItsCpusetAsThatChanges) {
    const auto own = cpuset_group_of(Os::system(), "self");
    if (!own || own->unified) GTEST_SKIP() << "skipped: there is no cpuset hierarchy of cgroup v1";
    const Group group(own->folder);
    const CpuSet all = allowance(Machine::detect()).usable;
    if (!group.made() ||
        !group.write("cpuset.mems", Os::system().read(own->folder + "/cpuset.mems").value_or("")) ||
        !group.write("cpuset.cpus", all.to_list()))
        GTEST_SKIP() << "skipped: no group can be made here";
    start();
    ASSERT_TRUE(group.write("cgroup.procs", std::to_string(program_.pid())));
    CpuSet last;
    for (const int cpu : all) last = CpuSet{cpu};
    ASSERT_TRUE(group.write("cpuset.cpus", last.to_list()));
    EXPECT_TRUE(becomes_true([&] { return held() == last; })) << held().to_list();
    ASSERT_TRUE(group.write("cpuset.cpus", all.to_list()));
    EXPECT_TRUE(becomes_true([&] { return held().count() == 2; })) << held().to_list();
    program_.end();
}

/// As `taskset -ap` does with a program that runs: before its helper thread does, that one takes the mask
/// that the program was started with.
TEST_F(GroupLimits, AProgramIsKeptWithinTheAffinityThatItIsGivenAsItRuns) {
    const CpuSet all = allowance(Machine::detect()).usable;
    start();
    const auto helper_runs = [&] {
        const auto masks = Os::system().thread_masks(program_.pid());
        return masks.size() > 1 && std::ranges::all_of(masks, [&](const auto& thread) {
                   return CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(thread.second.data()),
                                              thread.second.size() * sizeof(thread.second[0])) == all;
               });
    };
    ASSERT_TRUE(becomes_true(helper_runs));
    const auto bind = [&](const CpuSet& cpus) {
        ASSERT_EQ(Os::system().bind_process(program_.pid(), cpus.to_native()), 0);
    };
    CpuSet two;
    for (const int cpu : all)
        if (two.count() < 2) two.insert(cpu);
    for (const int cpu : two) {
        bind(CpuSet{cpu});
        EXPECT_TRUE(becomes_true([&] { return held() == CpuSet{cpu}; })) << held().to_list();
    }
    bind(all);
    EXPECT_TRUE(becomes_true([&] { return held().count() == 2; })) << held().to_list();
    program_.end();
}

}  // namespace
}  // namespace heddle::test
