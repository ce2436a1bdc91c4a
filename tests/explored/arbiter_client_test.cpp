// ArbiterClient as it is, with an arbiter that is none, under the explorer: nobody uses a page or a link that
// was retired and freed, nobody uses a client that was destroyed while it waited, and no sleeper misses a CPU
// that is granted or handed to it.
#include <pthread.h>

#include "arbiter/grant_page.hpp"
#include "arbiter_here.hpp"
#include "cores/arbiter_link.hpp"
#include "support/exploring.hpp"

// The client's sources once more, for a machine of one CPU, under a name of their own.
#define HEDDLE_MAX_CPUS 1
#define ArbiterClient ClientHere
#define ArbiterClientOptions ClientHereOptions
#define ArbiterConnection test::ConnectionHere
#define PageMapping test::PageHere
#define poll heddle::test::poll_here
#define eventfd_write heddle::test::eventfd_write_here
#define pthread_sigmask heddle::test::pthread_sigmask_here
#define sched_getcpu heddle::test::sched_getcpu_here
#include "cores/arbiter_client.cpp"
#include "cores/arbiter_client_link.cpp"
#undef ArbiterConnection
#undef PageMapping

namespace heddle {

/// The scenarios say all that there is to say.
ClientHereOptions with_settings(ClientHereOptions options) {
    return options;
}

}  // namespace heddle

namespace heddle::test {
namespace {

struct Clients {
    std::unique_ptr<ClientHere> one, two;
};

std::unique_ptr<ClientHere> make(uint32_t number) {
    ClientHereOptions options;
    options.name = "explored";
    options.allowed = CpuSet{0};
    options.path = std::to_string(number);
    return std::make_unique<ClientHere>(options, ClientHere::Callbacks{});
}

/// As if HEDDLE_PEER had come.
void introduce(ClientHere& client, uint32_t peer) {
    ClientHere::Link& link = *client.link_.load();
    link.peers.push_back(
        std::make_unique<ClientHere::Peer>(ClientHere::Peer{peer, PageHere(&pages_here(peer).page)}));
    client.watch_lenders(link);
}

void show(uint32_t client, uint32_t number, const CpuSet& cpus) {
    Publish publish{};
    publish.epoch = 2 * number;
    publish.cpus = cpus;
    publish.wake = true;
    show_grant(pages_here(client).grant, publish);
}

/// The first client holds the CPU, and the second is its successor.
void name() {
    pages_here(2).grant.lender[0].store(heddle_word(1, 1));
    pages_here(1).grant.successor[0].store(heddle_word(1, 2));
}

/// The second client looks at the first one's release word while that page is unmapped.
void a_peer_is_forgotten(Explorer& explorer) {
    arbiter_here_begins();
    name();
    auto clients = std::make_shared<Clients>();
    clients->two = make(2);
    introduce(*clients->two, 1);
    arbiter_here_posts(2, HEDDLE_PEER_GONE, 1);
    explorer.thread([clients] {
        (void)clients->two->take(0);
        clients->two.reset();
    });
}

/// The arbiter dies, and the client registers with the next while another thread uses the old pages.
void a_link_is_lost(Explorer& explorer) {
    arbiter_here_begins(2);
    auto clients = std::make_shared<Clients>();
    clients->two = make(2);
    arbiter_here_dies();
    explorer.thread([clients] {
        (void)clients->two->others_wait();
        clients->two->set_demand(2);
        clients->two.reset();
    });
}

void destroyed_while_one_waits(Explorer& explorer) {
    arbiter_here_begins();
    auto clients = std::make_shared<Clients>();
    clients->two = make(2);
    ClientHere* client = clients->two.get();
    explorer.thread([client, &explorer] {
        if (client->wait_for(0, Nanoseconds(0), Time::max())) explorer.fail("got a CPU");
    });
    explorer.thread([clients, client, &explorer] {
        while (client->waiters_.load() == 0) {
        }
        clients->two.reset();
        explorer.gone(reinterpret_cast<uintptr_t>(client), sizeof *client);
    });
}

void a_sleeper_is_handed_a_cpu(Explorer& explorer) {
    arbiter_here_begins();
    name();
    show(1, 1, {0});
    auto clients = std::make_shared<Clients>();
    clients->one = make(1);
    clients->two = make(2);
    introduce(*clients->one, 2);
    introduce(*clients->two, 1);
    const int lends = explorer.thread([clients, &explorer] {
        if (clients->one->lend(0) != ArbiterLink::Lent::kHandedOver) explorer.fail("was not handed over");
    });
    explorer.thread([clients, lends, &explorer] {
        if (!clients->two->wait_for(0, Nanoseconds(0), Time::max())) explorer.fail("waited for nothing");
        explorer.join(lends);
        clients->one.reset();
        clients->two.reset();
    });
}

/// What the lender did before is done for the taker, which is on the very CPU.
void a_looking_thread_is_handed_a_cpu(Explorer& explorer) {
    arbiter_here_begins();
    name();
    show(1, 1, {0});
    auto clients = std::make_shared<Clients>();
    auto written = std::make_shared<int>(0);
    clients->one = make(1);
    clients->two = make(2);
    introduce(*clients->one, 2);
    introduce(*clients->two, 1);
    const int lends = explorer.thread([clients, written, &explorer] {
        *written = 1;
        if (clients->one->lend(0) != ArbiterLink::Lent::kHandedOver) explorer.fail("was not handed over");
    });
    explorer.thread([clients, written, lends, &explorer] {
        if (!clients->two->wait_for(0, Nanoseconds::max(), Time::max()) || *written != 1)
            explorer.fail("waited for nothing");
        explorer.join(lends);
        clients->one.reset();
        clients->two.reset();
    });
}

void a_sleeper_is_granted_a_cpu(Explorer& explorer) {
    arbiter_here_begins();
    auto clients = std::make_shared<Clients>();
    clients->two = make(2);
    const int grants = explorer.thread([] {
        show(2, 1, {0});
        arbiter_here_posts(2, HEDDLE_CHANGED);
    });
    explorer.thread([clients, grants, &explorer] {
        if (!clients->two->wait_for(0, Nanoseconds(0), Time::max())) explorer.fail("waited for nothing");
        explorer.join(grants);
        clients->two.reset();
    });
}

constexpr Bounds kOneSwitch{.preemptions = 1, .stale_reads = 1};

/// A thread that looks at one word again and again is made to let others go on: to go on costs a switch.
constexpr Bounds kThree{.preemptions = 3, .stale_reads = 1};

TEST(ExploredArbiterClient, NobodyReadsAPageThatIsUnmapped) {
    expect_holds(a_peer_is_forgotten);
    for (const Fault fault : {Fault::kNotSequential, Fault::kRelaxedStores})
        expect_found(a_peer_is_forgotten, fault);
}
TEST(ExploredArbiterClient, NobodyUsesALinkThatIsFreed) {
    expect_holds(a_link_is_lost, kThree);
    expect_found(a_link_is_lost, Fault::kNotSequential, kThree);
}
TEST(ExploredArbiterClient, WhoWaitsLeavesBeforeItIsDestroyed) {
    expect_holds(destroyed_while_one_waits, kOneSwitch);
    expect_found(destroyed_while_one_waits, Fault::kLostWakes, kOneSwitch);
}
TEST(ExploredArbiterClient, ASleeperIsHandedACpu) {
    expect_holds(a_sleeper_is_handed_a_cpu, kOneSwitch);
    for (const Fault fault : {Fault::kNotSequential, Fault::kLostWakes})
        expect_found(a_sleeper_is_handed_a_cpu, fault, kOneSwitch);
}
TEST(ExploredArbiterClient, AThreadThatLooksIsHandedACpu) {
    expect_holds(a_looking_thread_is_handed_a_cpu, kOneSwitch);
    for (const Fault fault : {Fault::kRelaxedStores, Fault::kRelaxedLoads})
        expect_found(a_looking_thread_is_handed_a_cpu, fault, kOneSwitch);
}
TEST(ExploredArbiterClient, ASleeperIsGrantedACpu) {
    expect_holds(a_sleeper_is_granted_a_cpu, kOneSwitch);
    expect_found(a_sleeper_is_granted_a_cpu, Fault::kLostWakes, kOneSwitch);
}

}  // namespace
}  // namespace heddle::test
