// Programs in control groups of their own, made by this test where it may: the arbiter is in none of them;
// programs that are bound as they run; and groups of cgroup v2 that are files of the test's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "arbiter/server.hpp"
#include "base/os.hpp"
#include "cores/observer.hpp"
#include "heddle/machine.hpp"
#include "support/child.hpp"
#include "support/daemon.hpp"
#include "support/fake_groups.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"
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
        if (Machine::detect().synthetic() || all_.count() < 2) GTEST_SKIP() << "needs two real CPUs";
    }
    /// A program that is alone has all that there is.
    void start() {
        program_ = Child({kHeddle, "run", "--", HEDDLE_BUILD_DIR "/tests/programs/plain", "spin", "60"},
                         {"HEDDLE_ARBITER=" + daemon_.path()});
        ASSERT_TRUE(becomes_true([&] { return held() == all_; })) << held().to_list();
    }
    [[nodiscard]] CpuSet held() const {
        const auto clients = Observer(daemon_.path()).status().clients;
        return clients.empty() ? CpuSet{} : clients.front().granted;
    }

    const CpuSet all_ = allowance(Machine::detect()).usable;
    Daemon daemon_{{"", {}, {}}};
    Child program_;
};

TEST_F(GroupLimits, AProgramIsKeptWithinItsCpusetAsThatChanges) {
    const auto own = cpuset_group_of(Os::system(), "self");
    if (!own || own->unified) GTEST_SKIP() << "skipped: there is no cpuset hierarchy of cgroup v1";
    const Group group(own->folder);
    if (!group.made() ||
        !group.write("cpuset.mems", Os::system().read(own->folder + "/cpuset.mems").value_or("")) ||
        !group.write("cpuset.cpus", all_.to_list()))
        GTEST_SKIP() << "skipped: no group can be made here";
    start();
    ASSERT_TRUE(group.write("cgroup.procs", std::to_string(program_.pid())));
    const CpuSet last{all_.last()};
    ASSERT_TRUE(group.write("cpuset.cpus", last.to_list()));
    EXPECT_TRUE(becomes_true([&] { return held() == last; })) << held().to_list();
    ASSERT_TRUE(group.write("cpuset.cpus", all_.to_list()));
    EXPECT_TRUE(becomes_true([&] { return held() == all_; })) << held().to_list();
    program_.end();
}

/// As `taskset -ap` does with a program that runs: before its helper thread does, that one takes the mask
/// that the program was started with.
TEST_F(GroupLimits, AProgramIsKeptWithinTheAffinityThatItIsGivenAsItRuns) {
    start();
    const auto helper_runs = [&] {
        const auto masks = Os::system().thread_masks(program_.pid());
        return masks.size() > 1 && std::ranges::all_of(masks, [&](const auto& thread) {
                   return CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(thread.second.data()),
                                              thread.second.size() * sizeof(thread.second[0])) == all_;
               });
    };
    ASSERT_TRUE(becomes_true(helper_runs));
    const auto bind = [&](const CpuSet& cpus) {
        ASSERT_EQ(Os::system().bind_process(program_.pid(), cpus.to_native()), 0);
    };
    CpuSet two;
    for (const int cpu : all_)
        if (two.count() < 2) two.insert(cpu);
    for (const int cpu : two) {
        bind(CpuSet{cpu});
        EXPECT_TRUE(becomes_true([&] { return held() == CpuSet{cpu}; })) << held().to_list();
    }
    bind(all_);
    EXPECT_TRUE(becomes_true([&] { return held() == all_; })) << held().to_list();
    program_.end();
}

/// A thread that turns a server until its own end.
class Serving {
  public:
    Serving(Server& server, std::string path)
        : path_(std::move(path)), thread_([&server](const std::stop_token& end) {
              while (!end.stop_requested()) server.turn();
          }) {}
    ~Serving() {
        thread_.request_stop();
        const WireClient wakes_it(path_);
    }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

  private:
    std::string path_;
    std::jthread thread_;
};

/// The files are the test's, which writes them as the kernel does. Nobody else wakes the arbiter.
TEST(CgroupV2, TheArbiterFollowsCpusetAndQuotaOfAProgramAlone) {
    const Machine machine = Machine::detect();
    if (machine.synthetic() || machine.cpus().count() < 2) GTEST_SKIP() << "needs two real CPUs";
    const CpuSet all = machine.cpus(), last{all.last()};
    FakeGroups groups("/outer/job");
    for (const char* group : {"/outer", "/outer/job"}) {
        groups.set_cpuset(group, all.to_list());
        groups.set(group, "cpu.max", "max 100000");
    }
    const TemporaryFolder folder;
    ServerConfig config;
    config.path = folder.path() + "/arbiter.sock";
    SteadyClock clock;
    Server server(config, Arbiter(machine, make_policy("proportional"), {}, clock.now()), groups, clock);
    const Serving serving(server, config.path);
    WireClient client(config.path);
    ASSERT_TRUE(client.join(hello_of("job", HEDDLE_MAX_CPUS)));
    // It leaves what it is asked back.
    const auto held = [&] {
        const WireClient::Grant grant = client.grant();
        if (client.grant_page()->leaving.load() != 0) client.send_left(grant.epoch);
        return cpus_of(grant.mask);
    };
    const auto gets = [&](int count) { return becomes_true([&] { return held().count() == count; }); };
    EXPECT_TRUE(gets(all.count())) << held().to_list();
    groups.set_cpuset("/outer/job", last.to_list());
    EXPECT_TRUE(becomes_true([&] { return held() == last; })) << held().to_list();
    groups.set_cpuset("/outer/job", all.to_list());
    EXPECT_TRUE(gets(all.count())) << held().to_list();
    groups.set("/outer/job", "cpu.max", "100000 100000");
    EXPECT_TRUE(gets(1)) << held().to_list();
    groups.set("/outer/job", "cpu.max", "max 100000");
    EXPECT_TRUE(gets(all.count())) << held().to_list();
    groups.set("/outer", "cpu.max", "60000 100000");
    EXPECT_TRUE(gets(1)) << "less than a CPU is one; " << held().to_list();
}

}  // namespace
}  // namespace heddle::test
