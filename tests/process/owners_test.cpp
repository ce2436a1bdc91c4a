// Owners through the socket: a daemon with the policy "owned", and clients that say which CPUs are theirs.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "cores/arbiter_client.hpp"
#include "cores/observer.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

ArbiterClientOptions options_of(const Daemon& daemon, int demand, const CpuSet& owned) {
    ArbiterClientOptions options;
    options.name = "owner";
    options.demand = demand;
    options.allowed = CpuSet::range(0, 8);
    options.owned = owned;
    options.path = daemon.path();
    return options;
}

/// Leaves at once when asked.
class Obedient {
  public:
    Obedient(const Daemon& daemon, int demand, const CpuSet& owned)
        : client_(options_of(daemon, demand, owned), {[](const CpuSet&) {},
                                                      [this](const CpuSet& cpus) {
                                                          for (const int cpu : cpus) client_.released(cpu);
                                                      }}) {}
    ArbiterClient& operator*() { return client_; }
    ArbiterClient* operator->() { return &client_; }

  private:
    ArbiterClient client_;
};

Daemon::Options with_policy(const char* policy) {
    return {"core:8 pu:1", {"--policy", policy}, {}};
}

TEST(Owners, WinTheirsBackAndTheStatusSaysWhatIsLent) {
    Daemon daemon(with_policy("owned"));
    Obedient owner(daemon, 0, CpuSet::parse("2-5"));
    ASSERT_TRUE(owner->managed()) << owner->problem();
    EXPECT_EQ(owner->owned(), CpuSet::parse("2-5"));
    Obedient guest(daemon, 8, {});
    EXPECT_TRUE(becomes_true([&] { return guest->held().count() == 8; }, 2s));
    Observer observer(daemon.path());
    const auto lent = [&] {
        for (const auto& client : observer.status().clients)
            if (client.owned == CpuSet::parse("2-5")) return client.lent;
        return CpuSet{};
    };
    EXPECT_EQ(lent(), CpuSet::parse("2-5"));
    owner->set_demand(3, true);
    EXPECT_TRUE(becomes_true([&] { return owner->held().count() == 3; }, 2s)) << owner->held().to_list();
    EXPECT_TRUE(CpuSet::parse("2-5").contains(owner->held()));
    EXPECT_TRUE(becomes_true([&] { return lent().count() == 1; }, 2s));
    EXPECT_GT(observer.status().lent_s, 0);
}

TEST(Owners, OneCpuHasOneOwner) {
    Daemon daemon(with_policy("owned"));
    Obedient owner(daemon, 1, CpuSet::parse("0-3"));
    Obedient second(daemon, 1, CpuSet::parse("3-4"));
    EXPECT_FALSE(second->managed());
    EXPECT_EQ(second->problem(), "the arbiter at " + daemon.path() +
                                     " refuses: CPU 3 is owned by client 1 already; name CPUs that are "
                                     "nobody's, see heddle status");
    Obedient third(daemon, 1, CpuSet::parse("7-9"));
    EXPECT_EQ(third->problem(), "the arbiter at " + daemon.path() +
                                    " refuses: the machine has no CPU 8 to be owned; it has 0-7");
}

TEST(Owners, OwnTheirsAgainAfterTheArbiterWasKilled) {
    Daemon daemon(with_policy("owned"));
    Obedient owner(daemon, 4, CpuSet::parse("4-7"));
    Obedient guest(daemon, 8, {});
    EXPECT_TRUE(becomes_true([&] { return guest->held().count() == 4; }, 2s));
    daemon.process().end();
    ASSERT_TRUE(daemon.start());
    EXPECT_TRUE(becomes_true([&] { return Observer(daemon.path()).status().clients.size() == 2; }, 2s));
    EXPECT_TRUE(becomes_true([&] { return owner->owned() == CpuSet::parse("4-7"); }, 2s));
    EXPECT_TRUE(becomes_true([&] { return owner->held() == CpuSet::parse("4-7"); }, 2s));
}

/// Two clients of one process and name, and both have lent all they have.
TEST(Owners, TheirsAreNobodyElsesUntilTheyAreBackAfterTheArbiterWasKilled) {
    Daemon daemon(with_policy("owned"));
    auto low = hello_of("lender", 0), high = low;
    low.owned = mask_of(CpuSet::parse("0-1"));
    high.owned = mask_of(CpuSet::parse("4-7"));
    WireClient first(daemon.path()), second(daemon.path());
    ASSERT_TRUE(first.join(low) && second.join(high));
    Obedient guest(daemon, 8, {});
    ASSERT_TRUE(becomes_true([&] { return guest->held().count() == 8; }, 2s));
    daemon.process().end();
    ASSERT_TRUE(daemon.start());
    ASSERT_TRUE(becomes_true([&] { return guest->held().count() == 8; }, 2s)) << "it works on what they lent";

    WireClient namesake(daemon.path());
    ASSERT_TRUE(namesake.join(hello_of("lender", 0)));
    Obedient thief(daemon, 1, CpuSet::parse("1-2"));
    EXPECT_NE(thief->problem().find("CPU 1 is owned by client"), std::string::npos) << thief->problem();
    high.demand = 4;
    WireClient second_again(daemon.path()), first_again(daemon.path());
    ASSERT_TRUE(second_again.join(high));
    ASSERT_TRUE(first_again.join(low)) << "what is the first's was not taken for the second's";
    EXPECT_TRUE(becomes_true([&] { return second_again.grant().mask.words[0] == 0xf0; }, 2s));
    EXPECT_EQ(Observer(daemon.path()).status().clients.size(), 4U);
}

TEST(Owners, MeanNothingUnderAnotherPolicy) {
    Daemon daemon(with_policy("proportional"));
    Obedient owner(daemon, 8, CpuSet::parse("0-7"));
    Obedient other(daemon, 8, CpuSet::parse("0-7"));
    EXPECT_TRUE(owner->managed() && other->managed());
    EXPECT_EQ(owner->owned(), CpuSet{});
    EXPECT_TRUE(becomes_true([&] { return other->held().count() == 4; }, 2s));
}

TEST(Owners, OfVersion3AreToldThatTheirVersionIsTheReason) {
    Daemon daemon(with_policy("owned"));
    WireClient client(daemon.path());
    auto hello = hello_of("old", 1);
    hello.header.version = 3;
    constexpr uint32_t kBytes = sizeof hello - sizeof(heddle_mask);
    hello.header.bytes = kBytes;
    ASSERT_TRUE(client.send_bytes(&hello, kBytes));
    WireMessage answer;
    ASSERT_TRUE(client.receive_type(answer, HEDDLE_REFUSED, 2000));
    EXPECT_EQ(answer.refused.code, uint32_t{HEDDLE_REFUSED_VERSION});
    EXPECT_STREQ(
        answer.refused.text,
        "the arbiter speaks protocol 9, this program 3: install the same version of heddle for both");
}

/// What a command prints, with the daemon as its arbiter.
std::string output_of(const Daemon& daemon, std::vector<std::string> words) {
    const std::string file = daemon.folder() + "/output";
    words[0] = HEDDLE_BUILD_DIR "/bin/" + words[0];
    Child child(words, {"HEDDLE_ARBITER=" + daemon.path()}, -1, file);
    EXPECT_TRUE(child.ends_within(10s));
    child.reap();
    std::ifstream said(file);
    std::string text{std::istreambuf_iterator<char>(said), {}};
    std::filesystem::remove(file);
    return text;
}

TEST(Owners, AProgramSaysByAnOptionWhatItOwns) {
    Daemon daemon({"", {"--policy", "owned"}, {}});
    Child runs({kHeddle, "run", "--require", "--own", "0", "--", "/bin/sleep", "100"},
               {"HEDDLE_ARBITER=" + daemon.path()});
    EXPECT_TRUE(becomes_true([&] { return Observer(daemon.path()).status().clients.size() == 1; }, 5s));
    const auto status = nlohmann::json::parse(output_of(daemon, {"heddle", "status", "--json"}));
    EXPECT_EQ(status["arbiter"]["policy"], "owned");
    EXPECT_EQ(status["clients"][0]["owned"], nlohmann::json::array({0}));
    EXPECT_EQ(status["clients"][0]["lent"], nlohmann::json::array());
    const std::string refused =
        output_of(daemon, {"heddle", "run", "--own", "0", "--", "/bin/echo", "runs all the same"});
    EXPECT_NE(refused.find("CPU 0 is owned by client 1 already"), std::string::npos) << refused;
    EXPECT_NE(refused.find("runs all the same"), std::string::npos) << refused;
}

TEST(Owners, TheCommandOfAShellHasWhatTheShellOwns) {
    Daemon daemon({"", {"--policy", "owned"}, {}});
    const std::string script = "/bin/sleep 100; true";  // a shell that has more to do does not become it
    Child runs({kHeddle, "run", "--require", "--own", "0", "--min", "1", "--", "/bin/sh", "-c", script},
               {"HEDDLE_ARBITER=" + daemon.path()});
    const auto clients = [&] { return Observer(daemon.path()).status().clients; };
    ASSERT_TRUE(becomes_true([&] { return clients().size() == 2; }, 5s));
    ASSERT_TRUE(becomes_true(
        [&] {
            const auto both = clients();
            return both.size() == 2 && both[1].owned == CpuSet{0} && both[1].min == 1;
        },
        5s));
    EXPECT_EQ(clients()[0].owned, CpuSet{});
    EXPECT_EQ(clients()[0].min, 0);
    const std::string refused =
        output_of(daemon, {"heddle", "run", "--own", "0", "--", "/bin/echo", "of another job"});
    EXPECT_NE(refused.find("CPU 0 is owned by client 2 already"), std::string::npos) << refused;
    for (const auto& client : clients())
        ::kill(static_cast<pid_t>(client.pid), SIGTERM);  // sleep outlives its shell
}

}  // namespace
}  // namespace heddle::test
