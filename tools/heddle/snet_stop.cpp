#include "snet_stop.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "heddle/error.hpp"

namespace heddle::tool {
namespace {

// Written by the handler, which any thread may be interrupted for: lock-free, and nothing else follows from
// the order of these.
std::atomic<int> first_signal{0}, last_signal{0};
std::atomic<int> arrived{-1};
/// As many as the eventfd counts for each signal; less for the end of the thread.
constexpr uint64_t kEnd = uint64_t{1} << 32;

void note(int signal) {
    const int saved = errno;
    int none = 0;
    first_signal.compare_exchange_strong(none, signal);
    last_signal.store(signal);
    const uint64_t one = 1;
    (void)!::write(arrived.load(), &one, sizeof one);
    errno = saved;
}

Descriptor event() {
    Descriptor made(::eventfd(0, EFD_CLOEXEC));
    if (!made.valid())
        throw Error(ErrorCode::kSystem,
                    std::string("there is no event for signals: ") + std::strerror(errno));
    return made;
}

void listen_to(int signal, struct sigaction& before) {
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) return;  // as nohup and shells in the background want it
    struct sigaction ours {};
    ours.sa_handler = note;
    ours.sa_flags = SA_RESTART;
    ::sigaction(signal, &ours, nullptr);
}

}  // namespace

InputEnd::InputEnd() : event_(event()) {}

void InputEnd::tell() const noexcept {
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
}

SnetStop::SnetStop(const InputEnd& input, std::function<void(int)> on_first, std::function<void()> on_second)
    : on_first_(std::move(on_first)), on_second_(std::move(on_second)), input_(input), arrived_(event()) {
    first_signal = 0;
    arrived = arrived_.get();
    thread_ = std::thread([this] { run(); });
    listen_to(SIGINT, before_int_);
    listen_to(SIGTERM, before_term_);
}

SnetStop::~SnetStop() {
    ::sigaction(SIGINT, &before_int_, nullptr);
    ::sigaction(SIGTERM, &before_term_, nullptr);
    (void)!::write(arrived_.get(), &kEnd, sizeof kEnd);
    thread_.join();
}

int SnetStop::signal() noexcept {
    return first_signal.load();
}

void SnetStop::run() {
    uint64_t told = 0;
    while (true) {
        uint64_t count = 0;
        if (::read(arrived_.get(), &count, sizeof count) < 0 && errno == EINTR) continue;
        for (uint64_t i = 0; i < count % kEnd; ++i) {
            if (++told == 1) {
                input_.tell();
                on_first_(signal());
            } else if (told == 2) {
                on_second_();
            } else {
                const int last = last_signal.load();
                std::signal(last, SIG_DFL);
                (void)::kill(::getpid(), last);
            }
        }
        if (count >= kEnd) return;
    }
}

}  // namespace heddle::tool
