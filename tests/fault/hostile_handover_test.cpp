// Hostile clients that hand CPUs over, each by its name, against a live arbiter. During each attack another
// program keeps to the protocol, and the arbiter's status says at every moment that each CPU is somebody's or
// free, and nobody's twice. After it that program gets all CPUs, so none is lost, and the arbiter holds no
// descriptor more.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cores/observer.hpp"
#include "support/attacker.hpp"
#include "support/daemon.hpp"
#include "support/honest_client.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

constexpr uint32_t kCpus = 8;
constexpr auto kSettled = 30ms;  // longer than a fence takes

const auto kMapped = message_of<heddle_header>(HEDDLE_MAPPED);
const auto kReleased = message_of<heddle_header>(HEDDLE_RELEASED);
const auto kDemand = message_of<heddle_header>(HEDDLE_DEMAND);

uint64_t successor_of(const WireClient& client, uint32_t cpu) {
    return client.grant_page()->successor[cpu].load();
}
uint32_t generation_of(const WireClient& client, uint32_t cpu) {
    return heddle_word_generation(successor_of(client, cpu));
}
bool holds(const WireClient& client, uint32_t cpu) {
    return (client.grant().mask.words[0] >> cpu & 1U) != 0;
}
/// A CPU of the client's for which another client is named; kCpus where there is none.
uint32_t cpu_with_successor(const WireClient& client) {
    for (uint32_t cpu = 0; cpu < kCpus; ++cpu)
        if (holds(client, cpu) && heddle_word_client(successor_of(client, cpu)) != 0) return cpu;
    return kCpus;
}

/// Has half of the CPUs, the honest client the other half, and each is named for those of the other.
WireClient contender(const Attacker& a) {
    WireClient client = a.connect();
    EXPECT_TRUE(client.join(handover_hello("contender", kCpus)));
    EXPECT_TRUE(client.send(kMapped));
    EXPECT_TRUE(becomes_true(
        [&] { return client.grant().count == kCpus / 2 && cpu_with_successor(client) < kCpus; }, 3s));
    return client;
}

/// Writes a word for each CPU, and nothing moves.
template <class Lie>
void nothing_moves_by(WireClient& client, Lie lie) {
    const heddle_mask before = client.grant().mask;
    for (uint32_t cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu) client.page()->release[cpu] = lie(cpu);
    EXPECT_TRUE(client.send(kReleased));
    std::this_thread::sleep_for(kSettled);
    EXPECT_EQ(client.grant().mask.words[0], before.words[0]);
}

void words_of_other_generations(const Attacker& a) {
    WireClient client = contender(a);
    const uint32_t honest = heddle_word_client(successor_of(client, cpu_with_successor(client)));
    for (const uint32_t off : {1U, 0xffffffffU, 0x80000000U, 7U})
        for (const uint32_t to : {honest, uint32_t{HEDDLE_LENT}, client.id})
            nothing_moves_by(client, [&](uint32_t cpu) {
                return heddle_word(cpu < kCpus ? generation_of(client, cpu) + off : off, to);
            });
}
void releases_what_others_hold(const Attacker& a) {
    WireClient client = contender(a);
    for (const uint32_t to : {client.id, uint32_t{HEDDLE_LENT}})
        nothing_moves_by(client, [&](uint32_t cpu) -> uint64_t {
            if (cpu >= kCpus || holds(client, cpu)) return 0;
            return heddle_word(heddle_word_generation(client.grant_page()->lender[cpu].load()), to);
        });
}
void releases_cpus_that_are_not_there(const Attacker& a) {
    WireClient client = contender(a);
    for (const uint32_t generation : {0U, 1U, 2U, 0xffffffffU})
        nothing_moves_by(client, [&](uint32_t cpu) {
            return cpu < kCpus ? uint64_t{0} : heddle_word(generation, HEDDLE_LENT);
        });
}
void successors_that_are_no_peers(const Attacker& a) {
    WireClient client = contender(a);
    WireClient observer = a.observe();
    for (const uint32_t to : {client.id, client.id + 1, 0x7fffffffU, 0xfffffffdU, uint32_t{HEDDLE_TAKEN}})
        nothing_moves_by(client, [&](uint32_t cpu) {
            return cpu < kCpus ? heddle_word(generation_of(client, cpu), to) : uint64_t{0};
        });
}
void takes_back_after_naming_a_successor(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 2000; ++i) {
        const uint32_t cpu = cpu_with_successor(client);
        if (cpu == kCpus) continue;
        const uint64_t word = successor_of(client, cpu);
        client.page()->release[cpu] = word;
        if (i % 2 == 0) client.send(kReleased);
        client.page()->release[cpu] = heddle_word(heddle_word_generation(word), HEDDLE_HELD);
        if (i % 2 == 1) client.send(kReleased);
        if (client.grant_page()->leaving.load() != 0) client.send_left(client.grant().epoch);
    }
}
void takes_back_what_was_taken(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 20; ++i) {
        const uint32_t cpu = cpu_with_successor(client);
        if (cpu == kCpus) continue;
        const uint32_t generation = generation_of(client, cpu);
        client.page()->release[cpu] = heddle_word(generation, HEDDLE_LENT);
        client.page()->demand = 1;
        client.send(kReleased);
        becomes_true([&] { return !holds(client, cpu); }, 50ms);
        for (const uint32_t again : {HEDDLE_HELD, HEDDLE_LENT, HEDDLE_TAKEN, client.id}) {
            client.page()->release[cpu] = heddle_word(generation, again);
            client.send(kReleased);
        }
        client.page()->demand = kCpus;
        client.send(kDemand);
        std::this_thread::sleep_for(1ms);
        if (client.grant_page()->leaving.load() != 0) client.send_left(client.grant().epoch);
    }
}
void releases_to_two_successors_at_once(const Attacker& a) {
    WireClient client = contender(a);
    WireClient other = a.connect();
    ASSERT_TRUE(other.join(handover_hello("other", kCpus)));
    ASSERT_TRUE(other.send(kMapped));
    for (int i = 0; i < 2000; ++i)
        for (uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            const uint32_t generation = generation_of(client, cpu);
            client.page()->release[cpu] =
                heddle_word(generation, other.id - 1 - static_cast<uint32_t>(i % 2));
            if (i % 50 == 0) client.send(kReleased);
            client.page()->release[cpu] = heddle_word(generation, other.id);
            if (i % 70 == 0) other.send(kReleased);
        }
}
void never_leaves_what_is_asked_back(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 5; ++i) {
        WireClient other = a.connect();
        ASSERT_TRUE(other.join(handover_hello("other", kCpus)));
        EXPECT_TRUE(becomes_true([&] { return other.grant().count > 0; }, 3s));
    }
}
void leaves_epochs_that_never_were(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 20; ++i) {
        WireClient other = a.join(kCpus);  // takes some of its CPUs
        for (const uint32_t off : {2U, 1U, 0x7fffffffU, 0x80000000U, 0x80000001U, 0xfffffff0U})
            client.send_left(client.grant().epoch + off);
    }
}

void mapped_twice(const Attacker& a) {
    WireClient client = contender(a);
    flood(client, kMapped, 20'000);
}
void mapped_without_being_asked(const Attacker& a) {
    WireClient client = a.join(kCpus);
    EXPECT_TRUE(client.send(kMapped));
    EXPECT_TRUE(becomes_true([&] { return client.grant().count == kCpus / 2; }, 3s));
    EXPECT_EQ(cpu_with_successor(client), kCpus);
    nothing_moves_by(client, [&](uint32_t cpu) {
        return cpu < kCpus ? heddle_word(generation_of(client, cpu), HEDDLE_LENT) : uint64_t{0};
    });
    WireMessage message;
    while (client.receive(message, 0) == WireClient::Got::kMessage)
        EXPECT_NE(message.header.type, HEDDLE_PEER);
}
void hands_over_before_hello(const Attacker& a) {
    a.expect_refused_when_saying(kMapped);
    a.expect_refused_when_saying(kReleased);
}
void an_observer_hands_over(const Attacker& a) {
    for (const auto& message : {kMapped, kReleased}) {
        WireClient client = a.observe();
        ASSERT_TRUE(client.send(message));
        Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
    }
}
void hands_over_without_mapped(const Attacker& a) {
    WireClient client = a.connect();
    ASSERT_TRUE(client.join(handover_hello("x", kCpus)));
    EXPECT_TRUE(becomes_true([&] { return client.grant().count == kCpus / 2; }, 3s));
    EXPECT_EQ(cpu_with_successor(client), kCpus);
    nothing_moves_by(client, [&](uint32_t cpu) {
        return cpu < kCpus ? heddle_word(generation_of(client, cpu), client.id - 1) : uint64_t{0};
    });
}
void seals_its_page_first(const Attacker& a) {
    for (const int seal : {F_SEAL_SEAL, F_SEAL_WRITE}) {
        WireClient client = a.connect();
        ASSERT_TRUE(client.join(handover_hello("x", kCpus)));
        (void)::fcntl(client.page_fd, F_ADD_SEALS, seal);
        client.send(kMapped);
        flood(client, kReleased, 100);
    }
}
void features_that_there_are_not(const Attacker& a) {
    auto hello = hello_of("x", kCpus);
    hello.features = 0xffffffffU;
    WireClient client = a.connect();
    ASSERT_TRUE(client.join(hello));
    client.send(kMapped);
    flood(client, kReleased, 100);
}
void writes_into_its_peers_page(const Attacker& a) {
    WireClient client = contender(a);
    WireMessage message;
    ASSERT_TRUE(client.receive_type(message, HEDDLE_PEER, kSoonMs));
    const int page = client.peer_fd;
    ASSERT_GE(page, 0);
    EXPECT_EQ(::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0), MAP_FAILED);
    void* mapped = ::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ, MAP_SHARED, page, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_NE(::mprotect(mapped, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
    const uint64_t word = heddle_word(1, client.id);
    EXPECT_LT(::pwrite(page, &word, sizeof word, offsetof(heddle_client_page, release)), 0);
    EXPECT_NE(::fallocate(page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HEDDLE_PAGE_BYTES), 0);
    EXPECT_NE(::ftruncate(page, 0), 0);
    EXPECT_NE(::fcntl(page, F_ADD_SEALS, F_SEAL_WRITE), 0);
    const int again = ::open(("/proc/self/fd/" + std::to_string(page)).c_str(), O_RDWR | O_CLOEXEC);
    if (again >= 0) {
        EXPECT_EQ(::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
                  MAP_FAILED);
        EXPECT_LT(::pwrite(again, &word, sizeof word, offsetof(heddle_client_page, release)), 0);
        ::close(again);
    }
    ::munmap(mapped, HEDDLE_PAGE_BYTES);
}

/// A thread writes what may be a word all over the page, while the arbiter grants, asks back and looks.
void scribbles_while_the_arbiter_grants(const Attacker& a) {
    WireClient client = contender(a);
    const std::jthread scribbler([&client](const std::stop_token& stop) {
        std::mt19937_64 random(4);
        auto* words = reinterpret_cast<std::atomic<uint32_t>*>(client.page());
        while (!stop.stop_requested()) {
            words[random() % (HEDDLE_PAGE_BYTES / sizeof(uint32_t))] = static_cast<uint32_t>(random());
            const auto cpu = static_cast<uint32_t>(random() % kCpus);
            const uint32_t to[] = {HEDDLE_HELD, HEDDLE_LENT,   HEDDLE_TAKEN,
                                   client.id,   client.id - 1, static_cast<uint32_t>(random() % 16)};
            client.page()->release[cpu] = heddle_word(generation_of(client, cpu), to[random() % 6]);
        }
    });
    std::mt19937 random(5);
    for (int i = 0; i < 3000; ++i) {
        if (i % 2 == 0) client.send(kReleased);
        if (i % 3 == 0) client.send(kDemand);
        if (i % 5 == 0) client.send_left(client.grant().epoch);
        if (i % 7 == 0) client.send_left(static_cast<uint32_t>(random()));
        if (i % 500 == 0) WireClient comes_and_goes = a.join(kCpus);
        ::usleep(50);
    }
}
void needs_everything_together(const Attacker& a) {
    WireClient client = contender(a);
    for (const uint32_t together : {0xffffffffU, 0x80000000U, kCpus, 2U}) {
        client.page()->together = together;
        client.page()->meeting = ~together;
        client.send(kDemand);
        const uint64_t end = monotonic_ns() + 150'000'000;
        while (monotonic_ns() < end) {
            if (client.grant_page()->leaving.load() != 0) client.send_left(client.grant().epoch);
            ::usleep(500);
        }
    }
}

void a_flood_of_released(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 20'000; ++i) {
        const auto cpu = static_cast<uint32_t>(i) % kCpus;
        client.page()->release[cpu] =
            i % 3 == 0 ? successor_of(client, cpu) : heddle_word(generation_of(client, cpu), HEDDLE_LENT);
        client.send(kReleased);
    }
}
void a_flood_of_half_messages(const Attacker& a) {
    const std::pair<heddle_message_type, size_t> messages[] = {
        {HEDDLE_DEMAND, sizeof(heddle_header)},   {HEDDLE_LEFT, sizeof(heddle_epoch_message)},
        {HEDDLE_LIMITS, sizeof(heddle_limits)},   {HEDDLE_STATUS, sizeof(heddle_header)},
        {HEDDLE_WATCH, sizeof(heddle_header)},    {HEDDLE_MAPPED, sizeof(heddle_header)},
        {HEDDLE_RELEASED, sizeof(heddle_header)}, {HEDDLE_HELLO, sizeof(heddle_hello)}};
    for (const auto& [type, whole] : messages)
        for (size_t bytes = 1; bytes<whole; bytes += whole> 100 ? 13 : 3) {
            heddle_hello message = hello_of("x", 1);
            message.header.type = static_cast<uint16_t>(type);
            message.header.bytes = static_cast<uint32_t>(bytes);
            WireClient client = type == HEDDLE_HELLO ? a.connect() : a.join();
            ASSERT_TRUE(client.send_bytes(&message, bytes));
            Attacker::expect_refused(client, HEDDLE_REFUSED_MALFORMED);
        }
}
void a_flood_of_longer_messages(const Attacker& a) {
    for (const auto type : {HEDDLE_DEMAND, HEDDLE_LEFT, HEDDLE_LIMITS, HEDDLE_STATUS, HEDDLE_WATCH,
                            HEDDLE_MAPPED, HEDDLE_RELEASED}) {
        auto message = hello_of("x", 1);
        message.header.type = static_cast<uint16_t>(type);
        a.expect_refused_when_joined(message);
    }
}
void answers_of_the_arbiter(const Attacker& a) {
    for (const auto type : {HEDDLE_WELCOME, HEDDLE_REFUSED, HEDDLE_CHANGED, HEDDLE_STATUS_HEAD,
                            HEDDLE_STATUS_END, HEDDLE_EVENT, HEDDLE_PEER, HEDDLE_PEER_GONE})
        a.expect_refused_when_joined(message_of<heddle_peer>(type));
}
/// The kernel keeps what travels with a message open until somebody reads it.
void descriptors_with_every_message(const Attacker& a) {
    WireClient client = contender(a);
    const int before = a.descriptors();
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const int sent[] = {pair[0], pair[1], client.descriptor(), client.page_fd, client.grant_fd};
    for (int round = 0; round < 2000; ++round) {
        const heddle_header& message = round % 3 == 0 ? kMapped : round % 3 == 1 ? kReleased : kDemand;
        if (!client.send_descriptors(message, sent, 250)) ::usleep(500);
    }
    for (const int fd : pair) ::close(fd);
    EXPECT_TRUE(becomes_true([&] { return a.descriptors() == before; }, 2s))
        << a.descriptors() << ", and there were " << before;
}
void a_swarm_that_joins_maps_and_goes(const Attacker& a) {
    std::mt19937 random(6);
    std::vector<WireClient> swarm(24);
    for (int i = 0; i < 400; ++i) {
        WireClient& client = swarm[random() % swarm.size()];
        client = a.connect();
        if (!client.send(handover_hello("swarm", kCpus)) || random() % 4 == 0) continue;
        client.send(kMapped);
        if (random() % 2 == 0) client.send(kReleased);
    }
}
void never_reads_of_its_peers(const Attacker& a) {
    WireClient client = contender(a);
    for (int i = 0; i < 300; ++i) {
        WireClient other = a.connect();
        ASSERT_TRUE(other.join(handover_hello("other", kCpus)));
        other.send(kMapped);
        client.send_left(client.grant().epoch);
    }
}

class HostileHandover : public testing::TestWithParam<Attack> {
  protected:
    /// What the status says of one moment fits together.
    static void expect_sound(const ArbiterSnapshot& status) {
        EXPECT_EQ(status.cpus.size(), kCpus);
        CpuSet seen;
        for (const auto& client : status.clients) {
            EXPECT_FALSE(seen.intersects(client.granted))
                << "a CPU of " << client.name << " has a second owner";
            seen |= client.granted;
        }
        for (const auto& cpu : status.cpus) {
            const auto holder = std::ranges::find(status.clients, cpu.client, &ArbiterSnapshot::Client::id);
            const bool granted = holder != status.clients.end() && holder->granted.contains(cpu.cpu);
            EXPECT_EQ(granted, cpu.client != 0 && !cpu.leaving) << "CPU " << cpu.cpu;
            EXPECT_EQ(seen.contains(cpu.cpu), granted) << "CPU " << cpu.cpu;
        }
    }
    [[nodiscard]] size_t clients() { return Observer(daemon_.path()).status().clients.size(); }

    Daemon daemon_{{"core:8 pu:1", {}, {}}};
};

TEST_P(HostileHandover, HarmsNobody) {
    const Attacker attacker(daemon_);
    const int descriptors = daemon_.process().descriptors() + 3;  // a socket, a pidfd, a page
    HonestClient honest(daemon_.path(), kCpus);
    ASSERT_TRUE(becomes_true([&] { return honest.cpus() == kCpus && clients() == 1; }, 5s));
    for (int round = 0; round < 2; ++round) {
        (void)honest.mean_cpus();
        {
            Observer observer(daemon_.path());
            const std::jthread watcher([&observer](const std::stop_token& stop) {
                for (; !stop.stop_requested(); std::this_thread::sleep_for(2ms))
                    expect_sound(observer.status());
            });
            GetParam().carry_out(attacker);
        }
        EXPECT_GE(honest.mean_cpus(), 1.0) << "it did not get its share";
        ASSERT_TRUE(daemon_.process().running()) << daemon_.said();
        ASSERT_FALSE(honest.hung_up_on());
        EXPECT_TRUE(becomes_true([&] { return honest.cpus() == kCpus; }, 2s))
            << "a CPU is lost: it has " << honest.cpus();
        EXPECT_TRUE(becomes_true([&] { return clients() == 1; }, 2s));
        EXPECT_TRUE(becomes_true([&] { return daemon_.process().descriptors() == descriptors; }, 2s))
            << daemon_.process().descriptors() << " descriptors, and there were " << descriptors;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Attacks, HostileHandover,
    testing::Values(ATTACK(words_of_other_generations), ATTACK(releases_what_others_hold),
                    ATTACK(releases_cpus_that_are_not_there), ATTACK(successors_that_are_no_peers),
                    ATTACK(takes_back_after_naming_a_successor), ATTACK(takes_back_what_was_taken),
                    ATTACK(releases_to_two_successors_at_once), ATTACK(never_leaves_what_is_asked_back),
                    ATTACK(leaves_epochs_that_never_were), ATTACK(mapped_twice),
                    ATTACK(mapped_without_being_asked), ATTACK(hands_over_before_hello),
                    ATTACK(an_observer_hands_over), ATTACK(hands_over_without_mapped),
                    ATTACK(seals_its_page_first), ATTACK(features_that_there_are_not),
                    ATTACK(writes_into_its_peers_page), ATTACK(scribbles_while_the_arbiter_grants),
                    ATTACK(needs_everything_together), ATTACK(a_flood_of_released),
                    ATTACK(a_flood_of_half_messages), ATTACK(a_flood_of_longer_messages),
                    ATTACK(answers_of_the_arbiter), ATTACK(descriptors_with_every_message),
                    ATTACK(a_swarm_that_joins_maps_and_goes), ATTACK(never_reads_of_its_peers)),
    [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace heddle::test
