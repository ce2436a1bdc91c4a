// RangeTable beside a list that is looked through.
#include "memory/range_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace heddle::memory {
namespace {

struct Row {
    uint64_t kind;
    Range range;
    uint64_t number;
};

class RangeTableTest : public testing::Test {
  protected:
    uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }
    /// Of all lengths, many of them several times.
    Range some_range() {
        const uint64_t size = 1 + below(uint64_t{1} << (1 + below(6)));
        return {below(60), size};
    }
    void add() {
        const Row row{below(2), some_range(), ++last_};
        rows_.emplace(row.number, row);
        table_.add(RangeTable<uint64_t>::place(row.kind, row.range, 0, row.number), row.number);
    }
    void erase() {
        const auto row = std::next(rows_.begin(), static_cast<std::ptrdiff_t>(below(rows_.size())));
        EXPECT_TRUE(table_.erase(
            RangeTable<uint64_t>::place(row->second.kind, row->second.range, 0, row->second.number)));
        rows_.erase(row);
    }
    std::set<uint64_t> overlapping(uint64_t kind, const Range& range) {
        std::set<uint64_t> all;
        for (const auto& [number, row] : rows_)
            if (row.kind == kind && row.range.overlaps(range)) all.insert(number);
        return all;
    }

    std::mt19937 random_{7};
    RangeTable<uint64_t> table_;
    std::map<uint64_t, Row> rows_;
    uint64_t last_ = 0;
};

TEST_F(RangeTableTest, FindsWhatOverlapsInGroups) {
    for (int i = 0; i < 3000; ++i) {
        add();
        if (rows_.size() > 100) erase();
        const Range range = some_range();
        const uint64_t kind = below(2);
        std::set<uint64_t> found;
        table_.for_each_group(kind, range, [&](auto begin, auto end) {
            EXPECT_NE(begin, end);
            const auto& first = begin->first;
            uint64_t before = 0;
            for (; begin != end; ++begin) {
                EXPECT_EQ(begin->first.offset, first.offset);
                EXPECT_EQ(begin->first.end, first.end);
                EXPECT_LT(before, begin->second) << "in the order of their numbers";
                before = begin->second;
                EXPECT_TRUE(found.insert(before).second);
            }
            return false;
        });
        EXPECT_EQ(found, overlapping(kind, range));
    }
}

TEST_F(RangeTableTest, FindsOneThatCameBefore) {
    for (int i = 0; i < 3000; ++i) {
        add();
        if (rows_.size() > 60) erase();
        const Range range = some_range();
        const uint64_t kind = below(2), number = below(last_ + 2);
        std::set<uint64_t> all = overlapping(kind, range);
        all.erase(all.lower_bound(number), all.end());
        const auto found = table_.find_before(kind, range, number);
        ASSERT_EQ(found == table_.end(), all.empty());
        if (found == table_.end()) continue;
        EXPECT_TRUE(all.contains(found->second));
        const Range& group = rows_.at(found->second).range;
        const auto is_later = [&](uint64_t other) {
            return rows_.at(other).range == group && other > found->second;
        };
        EXPECT_TRUE(std::ranges::none_of(all, is_later));
    }
}

TEST_F(RangeTableTest, WhoLooksMayEraseGroups) {
    for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < 30; ++i) add();
        const Range range = some_range();
        const std::set<uint64_t> gone = overlapping(1, range);
        table_.for_each_group(1, range, [&](auto begin, auto end) {
            while (begin != end) begin = table_.erase(begin);
            return false;
        });
        for (const uint64_t number : gone) rows_.erase(number);
        std::set<uint64_t> left, expected;
        for (const auto& [place, number] : table_) left.insert(number);
        for (const auto& [number, row] : rows_) expected.insert(number);
        ASSERT_EQ(left, expected);
        while (rows_.size() > 40) erase();
    }
}

TEST(RangeTableEdges, TheLongestRangeIsFoundFromItsEnd) {
    RangeTable<int> table;
    table.add(RangeTable<int>::place(0, {0, UINT64_MAX}, 0, 1), 1);
    table.add(RangeTable<int>::place(0, {UINT64_MAX - 1, 1}, 0, 2), 2);
    int found = 0;
    table.for_each_group(0, {UINT64_MAX - 1, 1}, [&](auto begin, auto) {
        found += begin->second;
        return false;
    });
    EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace heddle::memory
