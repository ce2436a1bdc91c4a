#include "cores/resserv_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "heddle/error.hpp"

namespace heddle::resserv {
namespace {

constexpr int kMostNumber = 1'000'000'000;

// As C's isspace() and so on are in the C locale.
bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '-';
}

}  // namespace

void refuse(std::string_view why) {
    throw Error(ErrorCode::kBadInput, std::string(why));
}

std::optional<std::string> Messages::next() {
    const auto first = std::find_if_not(buffer_.begin(), buffer_.end(), is_blank);
    buffer_.erase(buffer_.begin(), first);
    if (buffer_.empty()) return {};
    if (buffer_[0] != '{') refuse("a message of the resource protocol begins with '{'");
    int depth = 0;
    const size_t looked_at = std::min(buffer_.size(), kLongest);
    for (size_t i = 0; i < looked_at; ++i) {
        if (buffer_[i] == '{') ++depth;
        if (buffer_[i] != '}' || --depth > 0) continue;
        std::string found = buffer_.substr(1, i - 1);
        buffer_.erase(0, i + 1);
        return found;
    }
    if (buffer_.size() >= kLongest)
        throw Error(ErrorCode::kLimit,
                    fmt::format("a message of the resource protocol is longer than {} bytes", kLongest));
    return {};
}

void Scanner::skip() {
    while (!text_.empty() && is_blank(text_[0])) text_.remove_prefix(1);
}

std::string_view Scanner::word() {
    skip();
    const auto end =
        static_cast<size_t>(std::find_if_not(text_.begin(), text_.end(), is_letter) - text_.begin());
    const std::string_view found = text_.substr(0, end);
    text_.remove_prefix(end);
    return found;
}

std::optional<int> Scanner::number() {
    skip();
    if (text_.empty() || !is_digit(text_[0])) return {};
    int64_t value = 0;
    while (!text_.empty() && is_digit(text_[0])) {
        value = 10 * value + (text_[0] - '0');
        if (value > kMostNumber) refuse("a number of the resource protocol is above 1000000000");
        text_.remove_prefix(1);
    }
    if (!text_.empty() && is_letter(text_[0])) refuse("a number of the resource protocol ends with a letter");
    return static_cast<int>(value);
}

bool Scanner::takes(char brace) {
    skip();
    if (text_.empty() || text_[0] != brace) return false;
    text_.remove_prefix(1);
    return true;
}

bool Scanner::at_end() {
    skip();
    return text_.empty();
}

std::vector<int> Scanner::rest() {
    std::vector<int> numbers;
    while (const std::optional<int> one = number()) numbers.push_back(*one);
    if (!at_end()) refuse(fmt::format("numbers are wanted instead of \"{}\"", text_.substr(0, 20)));
    return numbers;
}

std::string message(std::string_view word, std::span<const int> numbers) {
    std::string text = fmt::format("{{ {} ", word);
    for (const int number : numbers) text += fmt::format("{} ", number);
    return text + "} \n";
}

std::vector<CpuPlace> procs_of(const Machine& machine, const CpuSet& among) {
    std::vector<CpuPlace> procs;
    for (const CpuPlace& place : machine.places())
        if (among.contains(place.cpu)) procs.push_back(place);
    std::ranges::stable_sort(procs, {}, [](const CpuPlace& place) {
        return std::tuple(place.numa, place.package, place.core, place.cpu);
    });
    procs.resize(std::min(procs.size(), size_t{kMostProcs}));
    return procs;
}

std::string system_text(std::string_view host, std::span<const CpuPlace> procs) {
    std::string name;
    for (const char c : host) name += is_letter(c) ? c : '-';
    if (name.empty()) name = "localhost";
    // The innermost lists first: each says how many it has. A cache has one core, since a client of the
    // public run-time system would mix up the processors of several.
    std::string systems;
    int numas = 0, logical_core = 0;
    for (size_t at = 0; at < procs.size();) {
        const int numa = procs[at].numa;
        std::string cores;
        int count = 0;
        while (at < procs.size() && procs[at].numa == numa) {
            const int core = procs[at].core;
            std::string inner;
            int threads = 0;
            for (; at < procs.size() && procs[at].core == core; ++at)
                inner += fmt::format("{{ proc {} logical {} physical {} }} \n", threads++, at, procs[at].cpu);
            cores += fmt::format(
                "{{ cache {} children 1 \n{{ core 0 logical {} physical {} children {} \n{}}} \n}} \n",
                count++, logical_core++, core, threads, inner);
        }
        systems += fmt::format("{{ numa {} children {} \n{}}} \n", numas++, count, cores);
    }
    return fmt::format("{{ system 0 hostname {} children {} \n{}}} \n", name, numas, systems);
}

namespace {

void expect(Scanner& scanner, std::string_view word) {
    if (scanner.word() != word) refuse(fmt::format("\"{}\" is wanted in the hardware of a system", word));
}
int expect_number(Scanner& scanner, std::string_view word) {
    expect(scanner, word);
    const std::optional<int> number = scanner.number();
    if (!number) refuse(fmt::format("a number is wanted behind \"{}\"", word));
    return *number;
}
void expect(Scanner& scanner, char brace) {
    if (!scanner.takes(brace)) refuse(fmt::format("'{}' is wanted in the hardware of a system", brace));
}

}  // namespace

std::vector<int> procs_in(std::string_view message) {
    Scanner in(message);
    std::vector<int> cpus;
    (void)expect_number(in, "system");
    expect(in, "hostname");
    (void)in.word();
    for (int numas = expect_number(in, "children"); numas > 0; --numas) {
        expect(in, '{');
        (void)expect_number(in, "numa");
        for (int caches = expect_number(in, "children"); caches > 0; --caches) {
            expect(in, '{');
            (void)expect_number(in, "cache");
            for (int cores = expect_number(in, "children"); cores > 0; --cores) {
                expect(in, '{');
                (void)expect_number(in, "core");
                (void)expect_number(in, "logical");
                (void)expect_number(in, "physical");
                for (int procs = expect_number(in, "children"); procs > 0; --procs) {
                    expect(in, '{');
                    (void)expect_number(in, "proc");
                    const int logical = expect_number(in, "logical"), cpu = expect_number(in, "physical");
                    expect(in, '}');
                    if (logical >= kMostProcs || cpu >= CpuSet::kMaxCpus) continue;
                    if (static_cast<size_t>(logical) >= cpus.size())
                        cpus.resize(static_cast<size_t>(logical) + 1, -1);
                    cpus[static_cast<size_t>(logical)] = cpu;
                }
                expect(in, '}');
            }
            expect(in, '}');
        }
        expect(in, '}');
    }
    if (!in.at_end()) refuse("something follows the hardware of a system");
    return cpus;
}

}  // namespace heddle::resserv
