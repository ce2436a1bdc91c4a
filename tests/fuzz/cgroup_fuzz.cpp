// Any content of the control groups' files, in the form of tests/unit/cgroup: never refused, and something to
// run on is always left.
#include "fuzz/fuzz.hpp"
#include "heddle/machine.hpp"
#include "support/recorded_files.hpp"
#include "topology/allowance_watch.hpp"

using heddle::test::require;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const heddle::Machine machine = heddle::Machine::synthetic("package:2 core:4 pu:2");
    const heddle::test::RecordedFiles files(heddle::test::as_text(data, size));
    const heddle::CgroupLimits limits = heddle::read_cgroup_limits(files);
    require(!limits.cpuset || !limits.cpuset->empty() || limits.sources.size() > 1,
            "a cpuset is empty only where two disagree");
    require(limits.quota_cpus() >= 0, "a quota is never negative");
    const heddle::CpuAllowance allowed = combine(machine, machine.cpus(), limits);
    require(!allowed.usable.empty() && machine.cpus().contains(allowed.usable),
            "some CPUs of the machine remain");
    return 0;
}
