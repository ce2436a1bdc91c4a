// Any CPU list: refused with an Error, or a set that survives being written and read.
#include <algorithm>
#include <iterator>

#include "fuzz/fuzz.hpp"
#include "heddle/cpu_set.hpp"
#include "heddle/error.hpp"

using heddle::CpuSet;
using heddle::test::require;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const CpuSet set = CpuSet::parse(heddle::test::as_text(data, size));
        require(CpuSet::parse(set.to_list()) == set, "a set is what its list says");
        int members = 0;
        for (const int cpu : set) members += set.contains(cpu) ? 1 : 0;
        require(members == set.count(), "a set counts its members");
        require(set.last() < CpuSet::kMaxCpus, "no CPU is beyond the last possible one");
        require((set - set).empty() && (set | set) == set && (set & set) == set, "sets obey their algebra");
    } catch (const heddle::Error& error) {
        require(error.code() == heddle::ErrorCode::kBadInput, "what is refused is bad input");
    }
    return 0;
}
