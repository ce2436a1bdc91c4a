// Any bytes as what two clients send and write into their pages, against the server on a system made of
// nothing: no socket, no descriptor, no time but the fuzzer's. After each step the arbiter's books are right.
//
// The input is a row of steps: a byte that says what happens, one that says to whom, and its operands.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <vector>

#include "arbiter/server.hpp"
#include "fuzz/fuzz.hpp"

using namespace heddle;
using heddle::test::require;

namespace {

constexpr int kListening =
    100'000;  // far above any descriptor that this process has: closing one is harmless
constexpr size_t kPeers = 2;

/// A system of two peers. Descriptors are numbers that nobody opened.
class NothingOs final : public Os {
  public:
    struct Peer {
        int socket = -1;
        bool hung_up = false;
        std::deque<std::vector<std::byte>> messages;
        std::vector<void*> pages;
    };
    std::array<Peer, kPeers> peers;
    std::deque<int> waiting;

    ~NothingOs() override {
        for (void* page : pages_) ::operator delete (page, std::align_val_t{4096});
    }
    int next_descriptor() { return ++last_; }
    Peer* peer_of(int fd) {
        const auto place = std::ranges::find(peers, fd, &Peer::socket);
        return place == peers.end() ? nullptr : &*place;
    }

    int accept(int) override {
        if (waiting.empty()) return -EAGAIN;
        const int fd = waiting.front();
        waiting.pop_front();
        return fd;
    }
    int peer_credentials(int, PeerCredentials& credentials) override {
        credentials = {1, 0};
        return 0;
    }
    int peer_pidfd(int, pid_t) override { return next_descriptor(); }
    ssize_t receive(int fd, void* buffer, size_t bytes) override {
        Peer* peer = peer_of(fd);
        if (peer == nullptr || (peer->messages.empty() && peer->hung_up)) return 0;
        if (peer->messages.empty()) return -EAGAIN;
        const auto message = peer->messages.front();
        peer->messages.pop_front();
        if (!message.empty()) std::memcpy(buffer, message.data(), std::min(bytes, message.size()));
        return static_cast<ssize_t>(message.size());
    }
    ssize_t send(int fd, const void*, size_t bytes, const std::vector<int>&) override {
        const Peer* peer = peer_of(fd);
        if (peer == nullptr) return -EPIPE;
        return full ? -EAGAIN : static_cast<ssize_t>(bytes);
    }
    int epoll_create() override { return next_descriptor(); }
    int epoll_control(int, int, int, epoll_event*) override { return 0; }
    int epoll_wait(int, epoll_event* events, int, std::optional<Nanoseconds>) override {
        int count = 0;
        if (!waiting.empty()) events[count++] = {EPOLLIN, {.fd = kListening}};
        for (const Peer& peer : peers)
            if (peer.socket >= 0)
                events[count++] = {full ? EPOLLIN : EPOLLIN | EPOLLOUT, {.fd = peer.socket}};
        return count;
    }
    int make_page(const char*, size_t bytes, bool, void** mapping) override {
        *mapping = ::operator new (bytes, std::align_val_t{4096});
        std::memset(*mapping, 0, bytes);
        pages_.push_back(*mapping);
        made.push_back(*mapping);
        return next_descriptor();
    }
    void unmap(void* mapping, size_t) override { std::erase(made, mapping); }
    int forbid_writing(int) override { return 0; }
    int prefer_short_turns() override { return 0; }
    int bind_process(pid_t, const std::vector<unsigned long>&) override { return 0; }
    int bind_thread(pid_t, const std::vector<unsigned long>&) override { return 0; }

    bool full = false;
    std::vector<void*> made;

  private:
    int last_ = kListening;
    std::vector<void*> pages_;
};

class Input {
  public:
    Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
    [[nodiscard]] bool empty() const { return size_ == 0; }
    void take(void* to, size_t bytes) {
        if (bytes == 0) return;
        const size_t count = std::min(bytes, size_);
        std::memset(to, 0, bytes);
        if (count > 0) std::memcpy(to, data_, count);
        data_ += count;
        size_ -= count;
    }
    template <class Value>
    Value next() {
        Value value;
        take(&value, sizeof value);
        return value;
    }

  private:
    const uint8_t* data_;
    size_t size_;
};

template <class Message>
void say(NothingOs::Peer& peer, const Message& message) {
    const auto* first = reinterpret_cast<const std::byte*>(&message);
    peer.messages.emplace_back(first, first + sizeof message);
}

/// Demand, and release words that are near to being right.
void write_page(heddle_client_page& page, Input& input) {
    page.demand = input.next<uint8_t>() % 8 == 0 ? input.next<uint32_t>() : input.next<uint8_t>() % 6;
    page.since_ns = input.next<uint8_t>() % 8 == 0 ? input.next<uint64_t>() : 0;
    constexpr std::array kTo = {HEDDLE_HELD, 1U, 2U, 3U, HEDDLE_LENT, HEDDLE_TAKEN};
    for (size_t cpu = 0; cpu < 4; ++cpu)
        page.release[cpu] = heddle_word(input.next<uint8_t>() % 16, kTo[input.next<uint8_t>() % kTo.size()]);
}

/// Names and users of CPUs, some of which are there.
void write_components(heddle_client_page& page, Input& input) {
    for (size_t cpu = 0; cpu < 4; ++cpu) page.user[cpu] = input.next<uint8_t>();
    auto& name = page.component[input.next<uint8_t>() % HEDDLE_COMPONENTS];
    for (auto& word : name) word = input.next<uint64_t>();
}

void step(NothingOs& os, FakeClock& clock, Input& input) {
    const auto what = input.next<uint8_t>();
    NothingOs::Peer& peer = os.peers[input.next<uint8_t>() % kPeers];
    switch (what % 11) {
        case 0:
            if (peer.socket >= 0) return;
            peer = {};
            peer.socket = os.next_descriptor();
            os.waiting.push_back(peer.socket);
            return;
        case 1: {
            auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
            hello.kind = input.next<uint8_t>() % 3;
            hello.demand = input.next<uint8_t>();
            hello.weight = input.next<uint16_t>();
            hello.min_cpus = input.next<uint8_t>();
            hello.max_cpus = input.next<uint8_t>();
            hello.allowed.words[0] = input.next<uint8_t>();
            hello.held.words[0] = input.next<uint8_t>();
            hello.features = input.next<uint8_t>();
            return say(peer, hello);
        }
        case 2: {
            std::vector<std::byte> bytes(input.next<uint16_t>() % 1200);
            input.take(bytes.data(), bytes.size());
            peer.messages.push_back(bytes);
            return;
        }
        case 3: {
            constexpr std::array kTypes = {HEDDLE_DEMAND, HEDDLE_STATUS, HEDDLE_WATCH, HEDDLE_MAPPED,
                                           HEDDLE_RELEASED};
            return say(peer, message_of<heddle_header>(kTypes[input.next<uint8_t>() % kTypes.size()]));
        }
        case 4: {
            auto left = message_of<heddle_epoch_message>(HEDDLE_LEFT);
            left.epoch = input.next<uint8_t>() % 2 == 0 ? input.next<uint8_t>() : input.next<uint32_t>();
            return say(peer, left);
        }
        case 5: {
            auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
            limits.min_cpus = input.next<uint8_t>();
            limits.max_cpus = input.next<uint8_t>();
            limits.weight = input.next<uint16_t>();
            return say(peer, limits);
        }
        case 6:
            // The second page of each pair is the client's.
            for (size_t i = 1; i < os.made.size(); i += 2)
                write_page(*static_cast<heddle_client_page*>(os.made[i]), input);
            return;
        case 7:
            return clock.advance(Nanoseconds(input.next<uint32_t>()));
        case 8:
            os.full = !os.full;
            return;
        case 10:
            for (size_t i = 1; i < os.made.size(); i += 2)
                write_components(*static_cast<heddle_client_page*>(os.made[i]), input);
            return;
        default:
            peer.hung_up = true;
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Machine machine = Machine::synthetic("core:2 pu:2");
    Input input(data, size);
    NothingOs os;
    FakeClock clock;
    clock.advance(std::chrono::hours(1));
    ServerConfig config;
    config.queued_bytes = 1 << 14;
    Server server(config,
                  Arbiter(machine, make_policy(size % 2 == 0 ? "proportional" : "owned"), {}, clock.now()),
                  os, clock, kListening);
    for (int steps = 0; !input.empty() && steps < 400; ++steps) {
        step(os, clock, input);
        require(server.turn(), "the server goes on");
        require(server.arbiter().check().empty(), "the books are right");
        for (NothingOs::Peer& peer : os.peers)
            if (peer.hung_up && peer.messages.empty()) peer.socket = -1;
    }
    return 0;
}
