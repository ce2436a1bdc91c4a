// The text protocol of S-Net's resource server: its words, what a server answers, and this process as a
// client.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "cores/resserv_link.hpp"
#include "cores/resserv_session.hpp"
#include "heddle/error.hpp"
#include "support/tcp_listener.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using namespace resserv;               // NOLINT: each name here is of it
using namespace std::chrono_literals;  // NOLINT
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Machine kMachine = Machine::synthetic("numa:2 core:2 pu:1");

TEST(ResservWordsTest, MessagesComeInPieces) {
    Messages messages;
    messages.append("  { loc");
    EXPECT_EQ(messages.next(), std::nullopt);
    messages.append("al 3 }{ system 0 { numa 1 } } \n");
    EXPECT_EQ(messages.next(), " local 3 ");
    EXPECT_EQ(messages.next(), " system 0 { numa 1 } ");
    EXPECT_EQ(messages.next(), std::nullopt);
}

TEST(ResservWordsTest, WhatIsNoMessageIsRefused) {
    Messages words;
    words.append("GET / HTTP/1.1");
    EXPECT_THROW((void)words.next(), Error);
    Messages endless;
    endless.append("{ local " + std::string(kLongest, '1'));
    EXPECT_THROW((void)endless.next(), Error);
    EXPECT_THROW((void)Scanner("99999999999").number(), Error);
    EXPECT_THROW((void)Scanner("1 2 x").rest(), Error);
}

TEST(ResservWordsTest, HardwareIsReadAsItIsWritten) {
    const std::string text = system_text("my_host", procs_of(kMachine, CpuSet::parse("0,2-3")));
    EXPECT_THAT(text, StartsWith("{ system 0 hostname my-host children 2 \n{ numa 0 children 1 "));
    EXPECT_THAT(procs_in(text.substr(1, text.rfind('}') - 1)), ElementsAre(0, 2, 3));
    EXPECT_LT(
        system_text("h", procs_of(Machine::synthetic("numa:4 core:64 pu:2"), CpuSet::range(0, 512))).size(),
        kLongest);
    for (const char* none : {"", "system", "system 0 hostname h children 1",
                             "system 0 hostname h children 1 {", "system 0 hostname h children 0 more"})
        EXPECT_THROW((void)procs_in(none), Error) << none;
}

Session ready_session(int local) {
    Session session(procs_of(kMachine, kMachine.cpus()), "host", 7);
    const auto actions =
        session.received("{ list }{ access 0 }{ topology 0 }{ local " + std::to_string(local) + " }");
    EXPECT_THAT(actions.say, StartsWith("{ systems 0 } \n{ system 0 "));
    EXPECT_EQ(actions.demand, local);
    return session;
}

TEST(ResservSessionTest, GrantsAreAcceptedRevokedAndReturned) {
    Session session = ready_session(2);
    EXPECT_EQ(session.granted({0, 2}).say, "{ grant 0 0 2 } \n");
    EXPECT_EQ(session.granted({0}).say, "");  // it has it
    EXPECT_FALSE(session.received("{ accept 0 0 2 }").close);
    EXPECT_EQ(session.asked_back({2}).say, "{ revoke 0 2 } \n");
    EXPECT_THAT(session.received("{ state }").say,
                HasSubstr("client 7 local 2 remote 0 \n    granted 2 accepted 1 "
                          "revoked 1 "));
    const auto returned = session.received("{ return 0 2 }");
    EXPECT_EQ(returned.returned, CpuSet{2});
    EXPECT_TRUE(returned.lent.empty());
    EXPECT_EQ(session.in_use(), CpuSet{0});
    EXPECT_EQ(session.received("{ return 0 0 }").lent, CpuSet{0});
}

TEST(ResservSessionTest, NothingIsGrantedBeforeTheClientKnowsWhatThereIs) {
    Session session(procs_of(kMachine, kMachine.cpus()), "host", 1);
    EXPECT_EQ(session.received("{ local 2 }").demand, 0);
    EXPECT_EQ(session.granted({1}).say, "");
    EXPECT_EQ(session.asked_back({1}).returned, CpuSet{1});  // it never heard of it
    EXPECT_EQ(session.granted({1}).say, "");
    EXPECT_EQ(session.received("{ access 0 }").demand, 0);
    const auto actions = session.received("{ topology 0 }");
    EXPECT_EQ(actions.demand, 2);
    EXPECT_THAT(actions.say, testing::EndsWith("{ grant 0 1 } \n"));
}

/// A client of the public run-time system ends where it is granted what it has not returned yet.
TEST(ResservSessionTest, WhatWasRevokedIsGrantedAgainOnlyOnceItHasComeBack) {
    Session session = ready_session(1);
    (void)session.granted({1});
    (void)session.asked_back({1});
    EXPECT_EQ(session.granted({1}).say, "");
    const auto actions = session.received("{ accept 0 1 }{ return 0 1 }");
    EXPECT_EQ(actions.say, "{ grant 0 1 } \n");
    EXPECT_TRUE(actions.returned.empty());
}

TEST(ResservSessionTest, WhatNoClientMaySayEndsTheConnection) {
    for (const char* said : {"{ accept 0 1 }", "{ return 0 1 }", "{ accept 0 99 }", "{ return 1 0 }",
                             "{ topology 1 }", "{ local }", "{ local 1 2 }", "{ grant 0 1 }", "{ quit }",
                             "{ shutdown }", "}", "{ local 12345678901234 }", "{ }"})
        EXPECT_TRUE(ready_session(1).received(said).close) << said;
}

/// A resource server that says what a test wants.
class FakeServer {
  public:
    [[nodiscard]] const std::string& port() const { return listener_.port(); }
    void accept() { socket_ = listener_.accept(); }
    void say(const std::string& text) const {
        EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    /// Reads until the text was said, in any pieces.
    void expect(const std::string& text) {
        while (heard_.find(text) == std::string::npos) {
            char bytes[256];
            const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
            ASSERT_GT(got, 0) << "\"" << text << "\" is missing in \"" << heard_ << "\"";
            heard_.append(bytes, static_cast<size_t>(got));
        }
        heard_.erase(0, heard_.find(text) + text.size());
    }
    void hang_up() { socket_ = Descriptor(); }

  private:
    test::Listener listener_;
    Descriptor socket_;
    std::string heard_;
};

void answer_as_a_server(FakeServer& server) {
    server.accept();
    server.expect("{ list }");
    server.say("{ systems 0 } \n");
    server.expect("{ topology 0 }");
    server.say(system_text("host", procs_of(kMachine, kMachine.cpus())));
}

TEST(ResservLinkTest, TakesWhatIsGrantedAndReturnsWhatIsRevoked) {
    FakeServer server;
    std::thread answers([&] { answer_as_a_server(server); });
    std::mutex mutex;
    CpuSet gained, asked_back;
    ResservLink link(server.port(), CpuSet::parse("0-2"),
                     {[&](const CpuSet& cpus) {
                          const std::lock_guard guard(mutex);
                          gained |= cpus;
                      },
                      [&](const CpuSet& cpus) {
                          const std::lock_guard guard(mutex);
                          asked_back |= cpus;
                      }});
    answers.join();
    EXPECT_TRUE(link.managed());
    EXPECT_TRUE(link.held().empty());
    link.set_demand(3);
    server.expect("{ local 3 }");
    server.say("{ grant 0 0 2 3 } ");
    server.expect("{ accept 0 0 2 }");
    server.expect("{ return 0 3 }");  // one that the process may not use
    const auto all_gained = [&] {
        const std::lock_guard guard(mutex);
        return gained == CpuSet{0, 2};
    };
    EXPECT_TRUE(becomes_true(all_gained, 60s));
    EXPECT_EQ(link.held(), (CpuSet{0, 2}));
    server.say("{ revoke 0 2 }");
    const auto revoked = [&] {
        const std::lock_guard guard(mutex);
        return asked_back == CpuSet{2};
    };
    EXPECT_TRUE(becomes_true(revoked, 60s));
    EXPECT_FALSE(link.holds(2));
    link.released(2);
    server.expect("{ return 0 2 }");
    EXPECT_EQ(link.lend(0), ArbiterLink::Lent::kHandedOver);
    server.expect("{ return 0 0 }");
    EXPECT_EQ(link.lend(0), ArbiterLink::Lent::kNotHeld);
    server.hang_up();
    EXPECT_TRUE(becomes_true([&] { return !link.managed(); }, 60s));
}

/// Nobody would ever grant it anything: it goes on with what it has, and where that is nothing with all.
TEST(ResservLinkTest, WhereTheServerEndsItHasSomething) {
    for (const char* granted : {"", "{ grant 0 0 }", "{ grant 0 0 }{ revoke 0 0 }"}) {
        FakeServer server;
        std::thread answers([&] { answer_as_a_server(server); });
        const CpuSet allowed = CpuSet::parse("0-2");
        std::mutex mutex;
        CpuSet usable;
        ResservLink link(server.port(), allowed,
                         {[&](const CpuSet& cpus) {
                              const std::lock_guard guard(mutex);
                              usable |= cpus;
                          },
                          [&](const CpuSet& cpus) {
                              const std::lock_guard guard(mutex);
                              usable -= cpus;
                          }});
        answers.join();
        link.set_demand(3);
        server.expect("{ local 3 }");
        server.say(granted);
        if (*granted != 0) server.expect("{ accept 0 0 }");
        server.hang_up();
        ASSERT_TRUE(becomes_true([&] { return !link.managed(); }, 60s));
        const CpuSet has = std::string_view(granted) == "{ grant 0 0 }" ? CpuSet{0} : allowed;
        EXPECT_EQ(link.held(), has) << granted;
        EXPECT_EQ(usable, has) << granted;  // told before
    }
}

TEST(ResservLinkTest, WhatIsNoResourceServerIsTold) {
    EXPECT_THROW(ResservLink("nowhere", CpuSet{0}, {}), Error);
    for (const char* said :
         {"HTTP/1.1 400 Bad Request\r\n", "{ full } \n", "{ systems 1 }", "{ systems 0 }{ system }"}) {
        FakeServer server;
        std::thread answers([&] {
            server.accept();
            server.expect("{ list }");
            server.say(said);
        });
        try {
            ResservLink link(server.port(), CpuSet{0}, {});
            ADD_FAILURE() << said;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
        }
        answers.join();
    }
}

}  // namespace
}  // namespace heddle::test
