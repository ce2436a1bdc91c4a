#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

size_t distance(std::string_view a, std::string_view b) {
    return heddle_edit_distance(a.data(), a.size(), b.data(), b.size());
}

TEST(EditDistance, CountsWhatIsChangedAddedAndDropped) {
    EXPECT_EQ(distance("", ""), 0U);
    EXPECT_EQ(distance("loom", "loom"), 0U);
    EXPECT_EQ(distance("loom", "boom"), 1U);
    EXPECT_EQ(distance("loom", "looms"), 1U);
    EXPECT_EQ(distance("loom", "lom"), 1U);
    EXPECT_EQ(distance("weight", "wieght"), 2U);
    EXPECT_EQ(distance("", "loom"), 4U);
    EXPECT_EQ(distance("kitten", "sitting"), 3U);
}

TEST(EditDistance, IsThatOfTheFirstCharactersOfLongWords) {
    const std::string a(200, 'a'), b = a + "b";
    EXPECT_EQ(distance(a, b), 0U);
    EXPECT_EQ(distance(a, "a"), static_cast<size_t>(HEDDLE_LONGEST_WORD - 1));
}

TEST(EditDistance, AboutAThirdOfAWordMayBeMisspelt) {
    EXPECT_TRUE(heddle_is_misspelling(3, 2));
    EXPECT_FALSE(heddle_is_misspelling(3, 3));
    EXPECT_TRUE(heddle_is_misspelling(8, 3));
    EXPECT_FALSE(heddle_is_misspelling(8, 4));
    EXPECT_FALSE(heddle_is_misspelling(0, 2));
}

}  // namespace
