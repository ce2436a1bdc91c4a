#include "box_crash.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace heddle::tool {
namespace {

/// Of this thread; read by its own signal handler.
struct Running {
    const char* name = nullptr;
    uintptr_t frame = 0;  ///< an address on the stack that it runs on
};
thread_local Running running;
size_t stack_size = 0;

/// A full stack is none to handle a signal on.
struct SignalStack {
    SignalStack() {
        stack_t before{}, own{};
        if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
        own.ss_sp = bytes.data();
        own.ss_size = bytes.size();
        is_set = ::sigaltstack(&own, nullptr) == 0;
    }
    ~SignalStack() {
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        if (is_set) (void)::sigaltstack(&none, nullptr);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;
    std::array<char, size_t{16} << 10> bytes;
    bool is_set = false;
};

/// What can be called in a signal handler.
struct Line {
    void add(std::string_view more) {
        const size_t fits = std::min(more.size(), text.size() - size);
        std::memcpy(text.data() + size, more.data(), fits);
        size += fits;
    }
    std::array<char, 512> text;
    size_t size = 0;
};

bool is_overflow(uintptr_t address) {
    constexpr uintptr_t kBelow = size_t{64} << 10;  // the guard page, and what one frame may skip
    return address < running.frame && running.frame - address < stack_size + kBelow &&
           running.frame - address > stack_size / 2;
}

/// `how` it has ended the run, in parts.
void tell_of_end(std::initializer_list<std::string_view> how) {
    Line line;
    line.add("heddle snet: the box \"");
    line.add(running.name);
    line.add("\" has ended the run by ");
    for (const std::string_view part : how) line.add(part);
    line.add("\n");
    (void)!::write(STDERR_FILENO, line.text.data(), line.size);
}

void tell(int signal, siginfo_t* info, void*) {
    if (running.name != nullptr) {
        const bool overflow = signal == SIGSEGV && is_overflow(reinterpret_cast<uintptr_t>(info->si_addr));
        tell_of_end({"SIG", ::sigabbrev_np(signal),
                     overflow ? ": its stack is full; --stack gives it a larger one" : ""});
    }
    // The default again (SA_RESETHAND): a fault comes again when this returns; what was sent does not.
    if (info->si_code <= 0) (void)::raise(signal);
}

/// Not inlined: a task that was paused may be in another thread than before.
[[gnu::noinline]] void set_running(const char* name) {
    static thread_local const SignalStack own;
    (void)own;
    running = {name, reinterpret_cast<uintptr_t>(__builtin_frame_address(0))};
}

}  // namespace

void tell_of_box_crashes(size_t stack_bytes) {
    stack_size = stack_bytes;
    (void)::on_exit(
        [](int code, void*) {
            if (running.name != nullptr)
                tell_of_end({"exit(", std::to_string(code), "): what was under way is lost"});
        },
        nullptr);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        struct sigaction before {};
        if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
        struct sigaction ours {};
        ours.sa_sigaction = tell;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
        (void)::sigaction(signal, &ours, nullptr);
    }
}

RunningBox::RunningBox(streams::BoxCall& call) : call_(call), name_(call.box().name.c_str()) {
    note();
}
RunningBox::~RunningBox() {
    set_running(nullptr);
}

void RunningBox::note() const {
    set_running(name_);
}

void RunningBox::emit_moved(size_t variant, std::span<streams::BoxValue> values) {
    const Back back{*this};
    call_.emit_moved(variant, values);
}

void RunningBox::emit_last(size_t variant, std::span<streams::BoxValue> values) {
    const Back back{*this};
    call_.emit_last(variant, values);
}

}  // namespace heddle::tool
