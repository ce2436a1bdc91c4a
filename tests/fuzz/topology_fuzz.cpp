// Any topology string: refused with an Error, or a machine of the size it says.
#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "topology/synthetic.hpp"

using heddle::test::require;

/// hwloc 2.9 forgets some memory when it refuses a description with NUMA nodes at the side.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() {
    return "leak:libhwloc";
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    constexpr long kQuick = 256;  // hwloc takes its time over more
    try {
        const auto [text, cpus] = heddle::checked_synthetic(heddle::test::as_text(data, size));
        require(cpus >= 1 && cpus <= heddle::kMaxSyntheticCpus, "as many CPUs as are allowed");
        const auto again = heddle::checked_synthetic(text);
        require(again.text == text && again.cpus == cpus, "a checked text checks as itself");
        if (cpus > kQuick) return 0;
        const heddle::Machine machine = heddle::Machine::synthetic(text);
        require(machine.cpus().count() == cpus, "the machine has the CPUs that were described");
        const int half = static_cast<int>(cpus + 1) / 2;
        const heddle::CpuSet chosen = machine.nearest({}, machine.cpus(), half);
        require(chosen.count() == half && machine.cpus().contains(chosen), "half of them can be chosen");
        require(machine.distance(machine.cpus().first(), machine.cpus().last()) <= 4, "distances end at 4");
    } catch (const heddle::Error& error) {
        require(error.code() == heddle::ErrorCode::kBadInput, "what is refused is bad input");
    }
    return 0;
}
