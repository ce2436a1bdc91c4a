// Any packets as what two clients of other processes send to a memory server, without sockets: requests of
// small numbers, so that many of them mean something, and such as are cut, longer, or nothing at all; and any
// numbers in the memory that they write. When both have gone nothing of them is left.
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "fuzz/fuzz.hpp"
#include "memory/ipc_session.hpp"

using namespace heddle;
using namespace heddle::memory;
using heddle::test::require;

namespace {

class Input {
  public:
    Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
    [[nodiscard]] bool empty() const { return size_ == 0; }
    uint8_t next() {
        if (size_ == 0) return 0;
        --size_;
        return *data_++;
    }
    /// Mostly small; now and then one at the end of what there is.
    uint64_t number() {
        const uint8_t byte = next();
        return byte < 240 ? byte % 24 : byte < 250 ? UINT64_MAX - byte % 4 : uint64_t{next()} * 300;
    }
    uint64_t size() { return next() * uint64_t{3}; }
    std::optional<Tag> tag() {
        if (next() % 8 != 0) return {};
        return Tag{next()} % 3;
    }
    GlobalRange global() { return {{number()}, {number(), number()}}; }
    LocalRange local() {
        LocalRange local;
        local.cache = {number()};
        local.id = (uint64_t{1} + next() % 3) << 32u | next() % 8;
        local.range = {number(), number()};
        return local;
    }

  private:
    const uint8_t* data_;
    size_t size_;
};

/// Takes every reply, and makes changes at once.
class Nowhere final : public IpcSession::Host {
  public:
    void reply(uint64_t, Packet packet, IpcSession::Regions regions, std::function<void()>) override {
        const auto parsed = ipc::parse_reply(packet);
        require(parsed.has_value(), "a reply is one");
        if (std::holds_alternative<ipc::CacheIs>(parsed->content)) pins_.push_back(regions.back());
    }
    /// Into what one of the clients may write there.
    void scribble(size_t which, size_t word, uint64_t value) {
        if (pins_.empty()) return;
        std::memcpy(pins_[which % pins_.size()]->data() + 8 * word, &value, 8);
    }
    void do_later(std::function<void()> work) override { work(); }
    std::string status() override { return "{}"; }

  private:
    std::vector<std::shared_ptr<MemoryRegion>> pins_;
};

ipc::Request request_of(Input& input) {
    switch (input.next() % 21) {
        case 19:
            return ipc::ReserveVersions{{input.number()}, static_cast<uint32_t>(input.number())};
        case 20:
            return ipc::RegisterReader{input.global(), input.next() % 2 == 0};
        case 0:
            return ipc::CreateSegment{input.size(), {input.next() % 8 == 0 ? "tape" : "shm", {}}};
        case 1:
            return ipc::DeleteSegment{{input.number()}};
        case 2:
            return ipc::AllocateData{input.size(), {input.number()}, {"prefix_filled"}};
        case 3:
            return ipc::AllocateData{
                input.size(), {input.number()}, {"mine", true, {{0, input.number()}, {0, input.number()}}}};
        case 4:
            return ipc::FreeData{{input.number()}};
        case 5:
            return ipc::CreateCache{input.size(), {.shareable = input.next() % 2 == 0}};
        case 6:
            return ipc::AttachCache{{input.number()}};
        case 7:
            return ipc::DeleteCache{{input.number()}};
        case 8:
            return ipc::GiveUp{input.number()};
        case 9:
            return op::Allocate{input.number(), {input.number()}};
        case 10:
            return op::Release{input.local()};
        case 11:
            return op::GetConst{input.global(), {input.number()}, input.tag(), input.next() % 2 == 0};
        case 12:
            return op::GetMutable{input.global(), {input.number()}, input.tag()};
        case 13:
            return op::GetExclusive{input.global(), {input.number()}};
        case 17:
            return ipc::HoldPinned{{input.number()}, pin_of(input.next() % 128, input.number())};
        case 14:
            return ipc::AskStatistics{{input.number()}};
        case 15:
            return ipc::AskCosts{{{input.number(), input.number(), input.number(), input.number(),
                                   input.next() % 2 == 0, input.next() % 2 == 0, input.next() % 2 == 0}}};
        case 16:
            return ipc::AskLocality{{input.global(), input.global()}};
        default: {
            op::Put put{input.local(), input.global(), input.tag(), input.next() % 2 == 0};
            put.readers = put.tag ? input.next() % 2 : 0;
            put.retain = input.next() % 3;
            return put;
        }
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input input(data, size);
    Nowhere nowhere;
    ServerState server(ServerOptions{});
    std::array<std::shared_ptr<IpcSession>, 2> sessions;
    for (uint64_t i = 0; i < sessions.size(); ++i)
        sessions[i] = std::make_shared<IpcSession>(server, nowhere, i + 1);
    for (auto& session : sessions)
        require(session->handle(ipc::packet_of(1, ipc::Hello{"fuzz"})), "hello is taken");
    uint64_t number = 1;
    for (int steps = 0; !input.empty() && steps < 300; ++steps) {
        if (input.next() % 8 == 0)
            nowhere.scribble(input.next(), input.next(),
                             input.next() % 2 == 0 ? input.number() * 0x0101010101010101u
                                                   : pin_of(input.next() % 128, 1 + input.next() % 8));
        auto& session = sessions[input.next() % 2];
        Packet packet = ipc::packet_of(++number, request_of(input));
        const uint8_t how = input.next();
        if (how == 255) packet.resize(packet.size() * input.next() / 255);
        if (how == 254) packet.push_back(std::byte{input.next()});
        if (how == 253) packet[input.next() % 8] = std::byte{input.next()};
        if (session->handle(packet)) continue;
        session->close();
        session = std::make_shared<IpcSession>(server, nowhere, number);
        (void)session->handle(ipc::packet_of(1, ipc::Hello{"fuzz"}));
    }
    for (auto& session : sessions) session->close();
    const auto is_empty = [&] {
        const ServerStatus left = server.status();
        return left.local_ranges == 0 && left.operations == 0 && left.caches.empty();
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!is_empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    require(is_empty(), "nothing of the clients is left");
    return 0;
}
