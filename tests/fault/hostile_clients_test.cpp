// Hostile clients, each by its name, against a live arbiter. After each the arbiter serves others as before,
// has grown by less than a MiB and holds no descriptor more.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>

#include "cores/observer.hpp"
#include "support/attacker.hpp"
#include "support/daemon.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

heddle_limits limits_of(uint32_t min, uint32_t max, uint32_t weight) {
    auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
    limits.min_cpus = min;
    limits.max_cpus = max;
    limits.weight = weight;
    return limits;
}

void nothing_but_a_header(const Attacker& a) {
    a.expect_refused_when_saying(message_of<heddle_header>(HEDDLE_HELLO));
}
void three_bytes(const Attacker& a) {
    WireClient client = a.connect();
    client.send_bytes("HDD", 3);
    Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
}
void no_bytes(const Attacker& a) {
    // An empty packet reads like an end: the arbiter hangs up.
    WireClient client = a.connect();
    client.send_bytes("", 0);
    WireMessage answer;
    EXPECT_EQ(client.receive(answer, kSoonMs), WireClient::Got::kClosed);
}
void wrong_magic(const Attacker& a) {
    auto hello = hello_of("x", 1);
    hello.header.magic = 0x50545448;
    a.expect_refused_when_saying(hello);
}
void wrong_version(const Attacker& a) {
    auto hello = hello_of("x", 1);
    ++hello.header.version;
    a.expect_refused_when_saying(hello, HEDDLE_REFUSED_VERSION);
}
void a_length_that_lies(const Attacker& a) {
    for (const uint32_t bytes : {0U, 1U, 65536U, 0xffffffffU}) {
        auto hello = hello_of("x", 1);
        hello.header.bytes = bytes;
        a.expect_refused_when_saying(hello);
    }
}
void an_unknown_type(const Attacker& a) {
    for (const uint16_t type : {uint16_t{0}, uint16_t{HEDDLE_WELCOME}, uint16_t{0xffff}}) {
        auto message = message_of<heddle_header>(HEDDLE_DEMAND);
        message.type = type;
        a.expect_refused_when_saying(message);
    }
}
void an_oversized_message(const Attacker& a) {
    WireClient client = a.connect();
    std::vector<char> bytes(HEDDLE_MESSAGE_BYTES + 1, 'x');
    const auto hello = hello_of("x", 1);
    std::memcpy(bytes.data(), &hello, sizeof hello);
    ASSERT_TRUE(client.send_bytes(bytes.data(), bytes.size()));
    Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
}
void a_huge_message(const Attacker& a) {
    WireClient client = a.connect();
    const std::vector<char> bytes(100'000, '\xff');
    ASSERT_TRUE(client.send_bytes(bytes.data(), bytes.size()));
    Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
}
void demand_before_hello(const Attacker& a) {
    a.expect_refused_when_saying(message_of<heddle_header>(HEDDLE_DEMAND));
}
void status_before_hello(const Attacker& a) {
    a.expect_refused_when_saying(message_of<heddle_header>(HEDDLE_STATUS));
}
void hello_of_an_unknown_kind(const Attacker& a) {
    a.expect_refused_when_saying(hello_of("x", 1, 2));
}
void hello_in_an_unknown_mode(const Attacker& a) {
    auto hello = hello_of("x", 1);
    hello.mode = 77;
    a.expect_refused_when_saying(hello);
}
void a_huge_demand(const Attacker& a) {
    a.expect_refused_when_saying(hello_of("x", HEDDLE_MAX_CPUS + 1));
}
void negative_numbers(const Attacker& a) {
    a.expect_refused_when_saying(hello_of("x", static_cast<uint32_t>(-1)));
    auto hello = hello_of("x", 1);
    hello.min_cpus = static_cast<uint32_t>(-3);
    a.expect_refused_when_saying(hello);
    hello = hello_of("x", 1);
    hello.weight = 0x80000000U;
    a.expect_refused_when_saying(hello);
}
void a_minimum_above_the_maximum(const Attacker& a) {
    auto hello = hello_of("x", 1);
    hello.min_cpus = 3;
    hello.max_cpus = 2;
    a.expect_refused_when_saying(hello);
}
void a_mask_outside_the_machine(const Attacker& a) {
    auto hello = hello_of("x", 1);
    hello.allowed.words[HEDDLE_MASK_WORDS - 1] = ~uint64_t{0};
    a.expect_refused_when_saying(hello, HEDDLE_REFUSED_PERMISSION);
}
void claims_to_hold_everything(const Attacker& a) {
    WireClient first = a.join();
    auto hello = hello_of("x", 1);
    std::memset(&hello.held, 0xff, sizeof hello.held);
    WireClient client = a.connect();
    ASSERT_TRUE(client.join(hello));
    EXPECT_LE(client.grant().count, 8U);
    EXPECT_FALSE((client.grant().mask.words[0] & first.grant().mask.words[0]) != 0);
}
void a_name_that_never_ends(const Attacker& a) {
    auto hello = hello_of("", 1);
    std::memset(hello.name, 'x', sizeof hello.name);
    WireClient client = a.connect();
    EXPECT_TRUE(client.join(hello));
}

void early_close(const Attacker& a) {
    for (int i = 0; i < 500; ++i) WireClient client = a.connect();
    for (int i = 0; i < 500; ++i) {
        WireClient client = a.connect();
        client.send(hello_of("x", 1));
    }
}
void half_closed(const Attacker& a) {
    WireClient client = a.join();
    ::shutdown(client.descriptor(), SHUT_WR);
    WireMessage answer;
    client.receive(answer, kSoonMs);
    WireClient other = a.join();
    ::shutdown(other.descriptor(), SHUT_RD);
    flood(other, message_of<heddle_header>(HEDDLE_STATUS), 100);
}
void a_silent_handshake(const Attacker& a) {
    WireClient client = a.connect();
    Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
}
void thousands_of_connections(const Attacker& a) {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit many = before;
    many.rlim_cur = std::min<rlim_t>(before.rlim_max, 4096);
    ::setrlimit(RLIMIT_NOFILE, &many);
    std::vector<WireClient> clients;
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        WireClient client = a.connect();
        WireMessage answer;
        if (!client.connected()) continue;
        if (client.receive(answer, 0) == WireClient::Got::kMessage) ++refused;
        clients.push_back(std::move(client));
    }
    WireMessage answer;
    for (WireClient& client : clients) refused += client.receive(answer, 0) == WireClient::Got::kMessage;
    EXPECT_GT(refused, 0) << "there has to be a limit";
    clients.clear();
    ::setrlimit(RLIMIT_NOFILE, &before);
}
void as_many_clients_as_it_takes(const Attacker& a) {
    std::vector<WireClient> clients;
    for (int i = 0; i < 300; ++i) {
        WireClient client = a.connect();
        if (!client.join(hello_of("x", 8))) break;
        clients.push_back(std::move(client));
    }
    EXPECT_LT(clients.size(), 300U);
}

void hello_twice(const Attacker& a) {
    a.expect_refused_when_joined(hello_of("again", 1));
}
void an_observer_with_demand(const Attacker& a) {
    for (const auto type : {HEDDLE_DEMAND}) {
        WireClient client = a.observe();
        ASSERT_TRUE(client.send(message_of<heddle_header>(type)));
        Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
    }
    WireClient client = a.observe();
    ASSERT_TRUE(client.send_left(2));
    Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
}
void never_reads_its_welcome(const Attacker& a) {
    // The pages in it stay in the system, at the arbiter's cost: who is closed counts until it was read.
    const auto hello = hello_of("silent", 1);
    std::vector<WireClient> silent;
    for (int i = 0; i < 600; ++i) {
        silent.push_back(a.connect());
        silent.back().send(hello);
        silent.back().send(hello);
    }
    EXPECT_FALSE(WireClient(a.path()).join(hello_of("late", 1)));
}
/// Nobody comes after it, at whose sight the arbiter would look at what it keeps.
void closes_what_it_never_read(const Attacker& a) {
    WireClient client = a.connect();
    ASSERT_TRUE(client.send(hello_of("unread", 4)));
    ASSERT_TRUE(client.send(message_of<heddle_welcome>(HEDDLE_WELCOME)));
    pollfd hung_up{client.descriptor(), 0, 0};
    ASSERT_EQ(::poll(&hung_up, 1, kSoonMs), 1);
    client.close();
    EXPECT_TRUE(becomes_true([&] { return a.descriptors() == a.descriptors_at_first(); }, 2s))
        << a.descriptors() << ", and there were " << a.descriptors_at_first();
}
void never_reads_the_status(const Attacker& a) {
    WireClient client = a.observe();
    flood(client, message_of<heddle_header>(HEDDLE_STATUS), 20'000);
}
void never_reads_events(const Attacker& a) {
    std::vector<WireClient> watchers;
    for (int i = 0; i < 4; ++i) {
        watchers.push_back(a.observe());
        watchers.back().send(message_of<heddle_header>(HEDDLE_WATCH));
    }
    for (int i = 0; i < 3000; ++i) WireClient joining_and_leaving = a.join();
}
void watches_again_and_again(const Attacker& a) {
    WireClient client = a.join();
    flood(client, message_of<heddle_header>(HEDDLE_WATCH), 20'000);
}
void a_flood_of_left(const Attacker& a) {
    WireClient client = a.join();
    auto message = message_of<heddle_epoch_message>(HEDDLE_LEFT);
    for (uint32_t i = 0; i < 20'000; ++i) {
        message.epoch = client.grant().epoch;
        client.send(message);
    }
}
void a_flood_of_demand(const Attacker& a) {
    WireClient client = a.join();
    for (uint32_t i = 0; i < 20'000; ++i) {
        client.page()->demand = i % 9;
        client.send(message_of<heddle_header>(HEDDLE_DEMAND));
    }
}
void epochs_that_lie(const Attacker& a) {
    WireClient client = a.join();
    WireClient other = a.join(8);
    for (const uint32_t epoch : {1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 0xfffffffeU, 0U, 4711U})
        EXPECT_TRUE(client.send_left(epoch));
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) client.send_left(static_cast<uint32_t>(random()));
}
void nonsense_limits(const Attacker& a) {
    a.expect_refused_when_joined(limits_of(5, 2, 1));
    a.expect_refused_when_joined(limits_of(0, 0, 0));
    a.expect_refused_when_joined(limits_of(0, 0, 1001));
    a.expect_refused_when_joined(limits_of(0xffffffffU, 0, 1));
    a.expect_refused_when_joined(limits_of(0, 0xffffffffU, 1));
}
void limits_back_and_forth(const Attacker& a) {
    WireClient client = a.join();
    for (uint32_t i = 0; i < 20'000; ++i) client.send(limits_of(i % 9, 0, 1 + i % 1000));
}
void a_list_of_descriptors(const Attacker& a) {
    WireClient client = a.connect();
    const auto hello = hello_of("x", 1);
    int pipes[2];
    ASSERT_EQ(::pipe(pipes), 0);
    for (int round = 0; round < 50; ++round) client.send_descriptors(hello, pipes, 200);
    ::close(pipes[0]);
    ::close(pipes[1]);
}
void random_messages(const Attacker& a) {
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
        WireClient client = round % 2 == 0 ? a.connect() : a.join();
        auto hello = hello_of("x", 1);
        auto* bytes = reinterpret_cast<unsigned char*>(&hello);
        for (int i = 0; i < 20; ++i) {
            hello.header.type = static_cast<uint16_t>(random() % 16);
            bytes[sizeof(heddle_header) + random() % (sizeof hello - sizeof(heddle_header))] =
                static_cast<unsigned char>(random());
            const size_t length = i % 3 == 0 ? random() % sizeof hello : sizeof hello;
            hello.header.bytes = static_cast<uint32_t>(length);
            client.send_bytes(&hello, length);
        }
    }
}

void random_words_in_its_page(const Attacker& a) {
    WireClient client = a.join(8);
    WireClient other = a.join(8);  // so that the page is sampled
    auto* words = reinterpret_cast<std::atomic<uint32_t>*>(client.page());
    std::mt19937 random(3);
    for (int i = 0; i < 100'000; ++i) {
        words[random() % (HEDDLE_PAGE_BYTES / sizeof(uint32_t))].store(static_cast<uint32_t>(random()));
        if (i % 20 == 0) client.send(message_of<heddle_header>(HEDDLE_DEMAND));
    }
}
/// Each grant makes it say something else before the arbiter looks again.
void answers_each_grant_with_another_need(const Attacker& a) {
    WireClient client = a.join(8);
    WireClient other = a.join(8);
    std::atomic<bool> over{false};
    std::thread flips([&] {
        const auto& epoch = client.grant_page()->epoch;
        for (uint32_t seen = epoch.load(); !over.load();) {
            const uint32_t now = epoch.load();
            if (now == seen) continue;
            seen = now;
            if (now % 2 == 0) client.page()->together = client.page()->together.load() == 0 ? 2 : 0;
        }
    });
    Observer observer(a.path());
    for (int round = 0; round < 300; ++round) {
        client.page()->together = round % 2 == 0 ? 2 : 0;
        client.send(message_of<heddle_header>(HEDDLE_DEMAND));
        EXPECT_GE(observer.status().clients.size(), 2u);
    }
    over = true;
    flips.join();
}
/// Users of every CPU there can be, and names of any bytes, while somebody asks for the status.
void components_that_lie(const Attacker& a) {
    WireClient client = a.join(8);
    Observer observer(a.path());
    std::mt19937 random(5);
    const auto shown = [&] {
        std::vector<std::string> names;
        for (const auto& cpu : observer.status().cpus) {
            EXPECT_LT(cpu.component.size(), size_t{HEDDLE_COMPONENT_BYTES});
            EXPECT_EQ(clean_text(cpu.component.data(), cpu.component.size()), cpu.component);
            names.push_back(cpu.component);
        }
        return names;
    };
    for (auto& name : client.page()->component)
        for (auto& word : name) word = 0x1b1b1b1b1b1b1b1b;
    for (unsigned user = 0; user < 256; ++user) {
        for (auto& cpu : client.page()->user) cpu = static_cast<uint8_t>(user);
        const auto named = std::ranges::count(shown(), std::string(HEDDLE_COMPONENT_BYTES - 1, '?'));
        EXPECT_EQ(named, user >= 1 && user <= HEDDLE_COMPONENTS ? 8 : 0) << user;
    }
    for (int round = 0; round < 300; ++round) {
        for (auto& name : client.page()->component)
            for (auto& word : name) word = uint64_t{random()} << 32 | random();
        for (auto& cpu : client.page()->user) cpu = static_cast<uint8_t>(random() % 40);
        (void)shown();
    }
}
void demand_from_the_future(const Attacker& a) {
    WireClient client = a.join(8);
    WireClient other = a.join(8);
    for (const uint64_t since :
         {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63, monotonic_ns() + 1'000'000'000}) {
        client.page()->since_ns = since;
        client.page()->demand = 0xffffffffU;
        client.send(message_of<heddle_header>(HEDDLE_DEMAND));
        client.page()->demand = 0;
        client.send(message_of<heddle_header>(HEDDLE_DEMAND));
        ::usleep(5000);
    }
}
void resizes_the_pages(const Attacker& a) {
    WireClient client = a.join();
    for (const int fd : {client.grant_fd, client.page_fd})
        for (const off_t bytes : {off_t{0}, off_t{1}, off_t{1} << 20})
            EXPECT_NE(::ftruncate(fd, bytes), 0) << "the arbiter would fault on what is gone";
}
void seals_the_pages(const Attacker& a) {
    WireClient client = a.join();
    for (const int fd : {client.grant_fd, client.page_fd})
        EXPECT_NE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}
void punches_holes(const Attacker& a) {
    WireClient client = a.join();
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    EXPECT_NE(::fallocate(client.grant_fd, mode, 0, HEDDLE_PAGE_BYTES), 0);
    (void)::fallocate(client.page_fd, mode, 0, HEDDLE_PAGE_BYTES);
    client.send(message_of<heddle_header>(HEDDLE_DEMAND));
}
void maps_its_grant_writable(const Attacker& a) {
    WireClient client = a.join();
    EXPECT_EQ(::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, client.grant_fd, 0),
              MAP_FAILED);
    EXPECT_NE(::mprotect(const_cast<heddle_grant_page*>(client.grant_page()), HEDDLE_PAGE_BYTES,
                         PROT_READ | PROT_WRITE),
              0);
    const uint64_t all = ~uint64_t{0};
    EXPECT_LT(::pwrite(client.grant_fd, &all, sizeof all, offsetof(heddle_grant_page, mask)), 0);
    const std::string opened = "/proc/self/fd/" + std::to_string(client.grant_fd);
    const int again = ::open(opened.c_str(), O_RDWR | O_CLOEXEC);
    if (again >= 0) {
        EXPECT_EQ(::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
                  MAP_FAILED);
        ::close(again);
    }
}

class HostileClient : public testing::TestWithParam<Attack> {
  protected:
    /// A well-behaved client joins, changes its demand, and is taken into account.
    void round_trip() {
        // Connections that were closed a moment ago may fill the arbiter until it has heard of all of them.
        std::optional<WireClient> joined;
        ASSERT_TRUE(
            becomes_true([&] { return joined.emplace(daemon_.path()).join(hello_of("good", 2)); }, 2s));
        WireClient& client = *joined;
        // An arbiter that just started waits a moment for the clients of an earlier one.
        EXPECT_TRUE(becomes_true([&] { return client.grant().count > 0; }, 3s));
        client.page()->since_ns = monotonic_ns();
        client.page()->demand = 3;
        ASSERT_TRUE(client.send(message_of<heddle_header>(HEDDLE_DEMAND)));
        EXPECT_TRUE(becomes_true([&] { return client.grant_page()->noticed.load() == 3; }, 2s));
    }
    [[nodiscard]] bool alone() { return Observer(daemon_.path()).status().clients.empty(); }

    Daemon daemon_{{"core:8 pu:1", {}, {}}};
    const int descriptors_ = daemon_.process().descriptors();
};

TEST_P(HostileClient, HarmsNobody) {
    const Attacker attacker(daemon_);
    round_trip();
    GetParam().carry_out(attacker);  // whatever is bought once, as buffers
    const long resident = daemon_.process().resident_bytes();
    GetParam().carry_out(attacker);
    ASSERT_TRUE(daemon_.process().running()) << daemon_.said();
    round_trip();
    EXPECT_TRUE(becomes_true([&] { return alone(); }, 2s));
    EXPECT_TRUE(becomes_true([&] { return daemon_.process().descriptors() == descriptors_; }, 2s))
        << daemon_.process().descriptors() << " descriptors, and there were " << descriptors_;
    if (!kSanitized) {
        EXPECT_LT(daemon_.process().resident_bytes() - resident, 1 << 20);
    }
}

class WhoDoesNotRead : public HostileClient {};

TEST_P(WhoDoesNotRead, LetsTheArbiterSleep) {
    const Attacker attacker(daemon_);
    std::vector<WireClient> others;
    for (int i = 0; i < 4; ++i) others.push_back(attacker.join(1));  // so that an answer is long
    WireClient client = attacker.observe();
    const uint16_t asks = GetParam().name == std::string("status") ? HEDDLE_STATUS : HEDDLE_WATCH;
    auto message = message_of<heddle_header>(HEDDLE_STATUS);
    message.type = asks;
    for (int i = 0, failed = 0; i < 20'000 && failed < 50; ++i) {
        if (client.send(message)) continue;
        ++failed;
        ::usleep(200);
    }
    for (const bool hangs_up : {false, true}) {
        if (hangs_up) client.hang_up();
        ::usleep(100'000);
        const double before = daemon_.process().cpu_seconds();
        ::usleep(500'000);
        EXPECT_LT(daemon_.process().cpu_seconds() - before, 0.25) << hangs_up;
    }
    round_trip();
}

INSTANTIATE_TEST_SUITE_P(Asks, WhoDoesNotRead,
                         testing::Values(Attack{"status", nullptr}, Attack{"watch", nullptr}),
                         [](const auto& attack) { return attack.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Attacks, HostileClient,
    testing::Values(ATTACK(nothing_but_a_header), ATTACK(three_bytes), ATTACK(no_bytes), ATTACK(wrong_magic),
                    ATTACK(wrong_version), ATTACK(a_length_that_lies), ATTACK(an_unknown_type),
                    ATTACK(an_oversized_message), ATTACK(a_huge_message), ATTACK(demand_before_hello),
                    ATTACK(status_before_hello), ATTACK(hello_of_an_unknown_kind),
                    ATTACK(hello_in_an_unknown_mode), ATTACK(a_huge_demand), ATTACK(negative_numbers),
                    ATTACK(a_minimum_above_the_maximum), ATTACK(a_mask_outside_the_machine),
                    ATTACK(claims_to_hold_everything), ATTACK(a_name_that_never_ends), ATTACK(early_close),
                    ATTACK(half_closed), ATTACK(a_silent_handshake), ATTACK(thousands_of_connections),
                    ATTACK(as_many_clients_as_it_takes), ATTACK(hello_twice), ATTACK(an_observer_with_demand),
                    ATTACK(never_reads_its_welcome), ATTACK(closes_what_it_never_read),
                    ATTACK(never_reads_the_status), ATTACK(never_reads_events),
                    ATTACK(watches_again_and_again), ATTACK(a_flood_of_left), ATTACK(a_flood_of_demand),
                    ATTACK(epochs_that_lie), ATTACK(nonsense_limits), ATTACK(limits_back_and_forth),
                    ATTACK(a_list_of_descriptors), ATTACK(random_messages), ATTACK(random_words_in_its_page),
                    ATTACK(answers_each_grant_with_another_need), ATTACK(components_that_lie),
                    ATTACK(demand_from_the_future), ATTACK(resizes_the_pages), ATTACK(seals_the_pages),
                    ATTACK(punches_holes), ATTACK(maps_its_grant_writable)),
    [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace heddle::test
