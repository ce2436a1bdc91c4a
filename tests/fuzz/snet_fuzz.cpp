// Programs of S-Net: read, typed and checked; each fault is an Error with a place.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/fuzz.hpp"
#include "streams/checker.hpp"
#include "streams/parser.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace heddle;
    using namespace heddle::streams;
    if (size > 4096) return 0;
    try {
        const auto program = parse(Source("fuzz", std::string(reinterpret_cast<const char*>(data), size)));
        const Typing typing(*program);
        Checker checker(*program, typing);
        for (const Finding& finding : checker.check())
            heddle::test::require(!finding.text().empty(), "a finding has a text");
    } catch (const Error& error) {
        heddle::test::require(error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kLimit,
                              error.what());
    }
    return 0;
}
