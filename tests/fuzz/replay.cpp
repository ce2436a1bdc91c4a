// Runs a fuzz target on the files of a folder, each whole and each cut short at a few places, where there is
// no libFuzzer. An input that breaks a promise ends the program.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "fuzz/fuzz.hpp"

int main(int argc, char** argv) {
    int inputs = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            std::ostringstream content;
            content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
            const std::string text = content.str();
            std::printf("%s\n", entry.path().c_str());
            std::fflush(stdout);
            constexpr size_t kCuts = 16;
            for (size_t cut = 0; cut <= kCuts; ++cut) {
                const std::string part = text.substr(0, text.size() * (kCuts - cut) / kCuts);
                (void)LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(part.data()), part.size());
            }
            ++inputs;
        }
    }
    if (inputs == 0) std::fprintf(stderr, "there is nothing to replay\n");
    return inputs > 0 ? 0 : 1;
}
