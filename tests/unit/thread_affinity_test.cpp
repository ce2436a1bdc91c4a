#include "topology/thread_affinity.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace heddle {
namespace {

TEST(ThreadAffinity, IsWhatItWasSetTo) {
    const CpuSet all = thread_affinity();
    std::thread([&] {
        EXPECT_TRUE(set_thread_affinity(CpuSet{all.last()}));
        EXPECT_EQ(thread_affinity(), CpuSet{all.last()});
        EXPECT_EQ(affinity_if_known(), CpuSet{all.last()});
    }).join();
    EXPECT_EQ(thread_affinity(), all);
}

TEST(ThreadAffinity, OfAnotherThreadIsSetByItsId) {
    const CpuSet all = thread_affinity();
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    bool set = false;
    std::thread([&] { set = set_thread_affinity(CpuSet{all.first()}, self); }).join();
    EXPECT_TRUE(set);
    EXPECT_EQ(thread_affinity(), CpuSet{all.first()});
    EXPECT_TRUE(set_thread_affinity(all));
}

TEST(ThreadAffinity, ToNoCpuOfTheMachineIsRefused) {
    const CpuSet all = thread_affinity();
    EXPECT_FALSE(set_thread_affinity({}));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(set_thread_affinity(CpuSet{CpuSet::kMaxCpus - 1}));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(thread_affinity(), all);
}

/// What a process may use is not what an arbiter has bound its threads to.
TEST(ThreadAffinity, OfAFencedProcessIsWhatItWasBefore) {
    static const CpuSet before{0, 1, 5};
    static bool fenced = true;
    tell_affinity_before_fence([]() noexcept -> const CpuSet* { return fenced ? &before : nullptr; });
    EXPECT_EQ(outer_affinity(), before);
    fenced = false;
    EXPECT_EQ(outer_affinity(), thread_affinity());
    tell_affinity_before_fence(nullptr);
    EXPECT_EQ(outer_affinity(), thread_affinity());
}

}  // namespace
}  // namespace heddle
