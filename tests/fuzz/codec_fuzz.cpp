// Any bytes as a message to the arbiter: a request within its bounds, or a refusal that says why.
#include "cores/codec.hpp"
#include "fuzz/fuzz.hpp"

using heddle::test::require;

namespace {

bool in(int value, int low, int high) {
    return value >= low && value <= high;
}

void check(const heddle::HelloRequest& hello) {
    require(in(hello.demand, 0, HEDDLE_MAX_CPUS) && in(hello.min, 0, HEDDLE_MAX_CPUS) &&
                in(hello.max, 0, HEDDLE_MAX_CPUS) && in(hello.weight, 1, 1000),
            "numbers are within bounds");
    require(hello.max == 0 || hello.min <= hello.max, "the minimum is not above the maximum");
    require(hello.allowed.last() < HEDDLE_MAX_CPUS && hello.held.last() < HEDDLE_MAX_CPUS,
            "masks are within bounds");
    require(heddle::cpus_of(heddle::mask_of(hello.allowed)) == hello.allowed, "a mask is what its set says");
    require(hello.name.size() <= HEDDLE_NAME_BYTES, "a name is within bounds");
    for (const char c : hello.name) {
        const auto byte = static_cast<unsigned char>(c);
        require(byte >= 0x20 && byte != 0x7f, "a name has no controls");
    }
    require(hello.name.find("\xc2\x9b") == std::string::npos, "a name has no controls of 8 bits either");
    char told[HEDDLE_NAME_BYTES];
    heddle::copy_text(told, sizeof told, hello.name);
    if (hello.name.size() < sizeof told)
        require(heddle::clean_text(told, sizeof told) == hello.name, "a name is told as it came");
}
void check(const heddle::LimitsRequest& limits) {
    require(in(limits.min, 0, HEDDLE_MAX_CPUS) && in(limits.max, 0, HEDDLE_MAX_CPUS) &&
                in(limits.weight, 1, 1000),
            "limits are within bounds");
}
void check(const heddle::BadRequest& bad) {
    require(in(static_cast<int>(bad.code), HEDDLE_REFUSED_VERSION, HEDDLE_REFUSED_PERMISSION),
            "the code is one");
    require(!bad.reason.empty() && bad.reason.size() < HEDDLE_TEXT_BYTES, "the reason fits its message");
}
template <class Other>
void check(const Other&) {}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const heddle::Request request = heddle::decode_request({reinterpret_cast<const std::byte*>(data), size});
    std::visit([](const auto& r) { check(r); }, request);
    return 0;
}
