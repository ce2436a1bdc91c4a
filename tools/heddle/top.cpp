// heddle top: who holds which core, live. Five times a second on a terminal; without one, or where it cannot
// be drawn on, a snapshot a second as lines.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "command.hpp"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "memory_looks.hpp"
#include "status_text.hpp"

namespace heddle::tool {
namespace {

using namespace std::chrono_literals;

volatile std::sig_atomic_t to_end = 0, to_pause = 0;

/// The terminal in a state for drawing; as it was again at the end, whatever ended it, and while it is
/// somebody else's.
class Screen {
  public:
    Screen() {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) note(signal, [](int) { to_end = 1; });
        note(SIGTSTP, note_pause);
        begin();
    }
    ~Screen() { end(); }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    [[nodiscard]] static std::pair<int, int> size() {
        winsize window{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {80, 24};
        return {window.ws_col, window.ws_row};
    }
    /// True when the user asked to end within the time, or the terminal has gone.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) {
        pollfd key{STDIN_FILENO, POLLIN, 0};
        if (::poll(&key, 1, static_cast<int>(time.count())) == 1) {
            char letter = 0;
            const ssize_t got = ::read(STDIN_FILENO, &letter, 1);
            if (got == 0 || (got < 0 && errno != EINTR)) return true;
            if (got == 1 && (letter == 'q' || letter == 'Q' || letter == 3)) return true;
        }
        if (std::exchange(to_pause, 0) != 0) {
            end();
            std::signal(SIGTSTP, SIG_DFL);
            ::raise(SIGTSTP);  // which does nothing where nobody could continue us
            note(SIGTSTP, note_pause);
            begin();
        }
        return to_end != 0;
    }

  private:
    static void note_pause(int /*signal*/) { to_pause = 1; }
    /// Unless it is ignored, as who started us wants it. Interrupts no writing.
    static void note(int signal, void (*handler)(int)) {
        struct sigaction before {
        }, ours{};
        if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
        ours.sa_handler = handler;
        ours.sa_flags = SA_RESTART;
        ::sigaction(signal, &ours, nullptr);
    }
    void begin() {
        ::tcgetattr(STDIN_FILENO, &before_);
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        std::fputs("\x1b[?1049h\x1b[?25l", stdout);
    }
    void end() {
        std::fputs("\x1b[?25h\x1b[?1049l", stdout);
        std::fflush(stdout);
        ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }

    termios before_{};
};

/// Looks at the status again and again, and tells what happened since the look before.
class Looks {
  public:
    void look() {
        const auto now = std::chrono::steady_clock::now();
        seconds_ = std::chrono::duration<double>(now - looked_at_).count();
        looked_at_ = now;
        before_ = std::exchange(status_, counted_status(observer_));
        memory_text_ = memory_.look();
    }
    [[nodiscard]] const ArbiterSnapshot& status() const { return *status_; }
    [[nodiscard]] std::string text() const {
        return status_text(*status_, before_ ? &*before_ : nullptr, seconds_) + memory_text_;
    }

  private:
    Observer observer_{Observer::default_path()};
    std::chrono::steady_clock::time_point looked_at_;
    double seconds_ = 0;
    std::optional<ArbiterSnapshot> status_, before_;
    MemoryLooks memory_;
    std::string memory_text_;
};

void draw(const Looks& looks) {
    const auto [width, height] = Screen::size();
    std::string page = "\x1b[H";
    int rows = 0;
    const auto line = [&](std::string_view text) {
        if (++rows < height) page += fmt::format("{}\x1b[K\n", text);
    };
    for (const std::string& row : core_map(looks.status(), width, true)) line(row);
    std::string_view rest;
    const std::string text = looks.text();
    for (rest = text; !rest.empty();) {
        const size_t end = rest.find('\n');
        line(rest.substr(0, std::min(end, static_cast<size_t>(width))));
        rest.remove_prefix(end + 1);
    }
    line("");
    line("q ends");
    fmt::print("{}\x1b[J", page);
    std::fflush(stdout);
}

bool can_draw() {
    const std::string_view type = std::getenv("TERM") == nullptr ? "" : std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDIN_FILENO) != 0 && !type.empty() && type != "dumb";
}

void top(int count) {
    Looks looks;
    if (count == 0 && can_draw()) {
        Screen screen;
        do {
            looks.look();
            draw(looks);
        } while (!screen.wait(200ms));
        return;
    }
    for (int i = 0; count == 0 || i < count; ++i) {
        if (i > 0) ::poll(nullptr, 0, 1000);
        looks.look();
        for (const std::string& row : core_map(looks.status(), 80, false)) fmt::print("{}\n", row);
        fmt::print("{}", looks.text());
        std::fflush(stdout);
    }
}

}  // namespace

void add_top(CLI::App& app) {
    CLI::App* command = app.add_subcommand("top", "Who holds which core, live (q ends)");
    const auto count = std::make_shared<int>(0);
    command->add_option("--count", *count, "Print so many snapshots, one a second, and end")
        ->check(CLI::Range(1, 1000000));
    command->callback([count] {
        try {
            top(*count);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::kUnavailable) throw ServiceAbsent(error.what());
            throw;
        }
    });
}

}  // namespace heddle::tool
