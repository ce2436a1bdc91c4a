#include "heddle/cpu_set.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "heddle/error.hpp"

using heddle::CpuSet;

TEST(CpuSet, ListFormRoundTrips) {
    for (const char* list : {"", "0", "0-3,8", "63-64", "1,3,5", "0-1023", "65535"})
        EXPECT_EQ(CpuSet::parse(list).to_list(), list);
    EXPECT_EQ(CpuSet::parse("3,1-2,2").to_list(), "1-3");
    EXPECT_EQ(CpuSet::parse("0-1\n").to_list(), "0-1") << "as the kernel's files end";
}

TEST(CpuSet, MalformedListsNameTheirBadPart) {
    for (const char* bad :
         {"a", "1-", "-1", "3-1", "1,,2", "1,", ",", "0x1", "65536", "1 2", "99999999999"}) {
        try {
            (void)CpuSet::parse(bad);
            ADD_FAILURE() << "'" << bad << "' was accepted";
        } catch (const heddle::Error& error) {
            EXPECT_EQ(error.code(), heddle::ErrorCode::kBadInput);
            EXPECT_NE(std::string(error.what()).find(bad), std::string::npos) << error.what();
        }
    }
}

TEST(CpuSet, RefusesCpusOutsideItsBounds) {
    CpuSet set;
    EXPECT_THROW(set.insert(-1), heddle::Error);
    EXPECT_THROW(set.insert(CpuSet::kMaxCpus), heddle::Error);
    EXPECT_THROW((void)CpuSet::range(3, 2), heddle::Error);
    EXPECT_FALSE(set.contains(-1));
    EXPECT_FALSE(set.contains(1 << 30));
}

TEST(CpuSet, ConvertsToAndFromTheKernelsForm) {
    const CpuSet set{0, 5, 63, 64, 200};
    const auto native = set.to_native(256);
    EXPECT_EQ(native.size(), 4U);
    EXPECT_EQ(
        CpuSet::from_native(reinterpret_cast<const cpu_set_t*>(native.data()), native.size() * sizeof(long)),
        set);
    EXPECT_EQ(CpuSet{}.to_native().size(), 1U);
}

RC_GTEST_PROP(CpuSet, AgreesWithStdSet, ()) {
    const auto cpus = rc::gen::container<std::set<int>>(rc::gen::inRange(0, 300));
    const auto a = *cpus;
    const auto b = *cpus;
    const auto make = [](const std::set<int>& from) {
        CpuSet set;
        for (const int cpu : from) set.insert(cpu);
        return set;
    };
    const CpuSet x = make(a);
    const CpuSet y = make(b);
    std::set<int> both, either = a, only;
    for (const int cpu : a) (b.count(cpu) ? both : only).insert(cpu);
    either.insert(b.begin(), b.end());
    RC_ASSERT(std::set<int>(x.begin(), x.end()) == a);
    RC_ASSERT((x & y) == make(both));
    RC_ASSERT((x | y) == make(either));
    RC_ASSERT((x - y) == make(only));
    RC_ASSERT(x.count() == static_cast<int>(a.size()));
    RC_ASSERT(x.contains(y) == (both.size() == b.size()));
    RC_ASSERT(x.intersects(y) == !both.empty());
    RC_ASSERT(x.last() == (a.empty() ? -1 : *a.rbegin()));
    RC_ASSERT(CpuSet::parse(x.to_list()) == x);
}
