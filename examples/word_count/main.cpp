// word_count FILE...: lines, words and bytes of each file, in the order of the arguments, as wc(1) tells
// them. Each file is read and counted by itself, several at once; a network of streams says how
// (docs/STREAMS.md).
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "heddle/streams.hpp"

using namespace heddle::snet;  // NOLINT: each name here is of it

using Path = Field<"path", std::string>;
using Text = Field<"text", std::string>;
using Lines = Tag<"lines">;
using Words = Tag<"words">;
using Bytes = Tag<"bytes">;

namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw heddle::Error(heddle::ErrorCode::kBadInput, path + " cannot be opened");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int words_of(const std::string& text) {
    int words = 0;
    bool inside = false;
    for (const char c : text) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!blank && !inside) ++words;
        inside = !blank;
    }
    return words;
}

/// Several files at once, and what comes of the first leaves first.
Net counting() {
    const BoxOptions several{.calls = 8, .ordered = true};
    const Net read = box<In<Path>, Out<Path, Text>>(
        "read", [](const std::string& path) { return std::tuple(path, text_of(path)); }, several);
    const Net count = box<In<Text>, Out<Lines, Words, Bytes>>(
        "count",
        [](std::string text) {
            const auto lines = std::count(text.begin(), text.end(), '\n');
            return std::tuple(static_cast<int>(lines), words_of(text), static_cast<int>(text.size()));
        },
        several);
    return read >> count;
}

}  // namespace

int main(int argc, char** argv) {
    int failed = 0;
    NetworkOptions options;
    options.dead_letter = [&](const Record& /*record*/, const std::string& why) {
        std::fprintf(stderr, "word_count: %s\n", why.c_str());
        ++failed;
    };
    Network network(counting(), options);
    std::jthread files([&] {
        for (int i = 1; i < argc; ++i) network.push(record<Path>(argv[i]));
        network.close();
    });
    while (const std::optional<Record> out = network.pull())
        std::printf("%d %d %d %s\n", out->get<Lines>(), out->get<Words>(), out->get<Bytes>(),
                    out->get<Path>().c_str());
    return failed == 0 ? 0 : 1;
}
