// ComponentTable, which a process shows its components with, and shown_components(), which the arbiter reads
// them with, on one page.
#include "cores/component_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arbiter/shown_components.hpp"

namespace heddle {
namespace {

const CpuSet kAll = CpuSet::range(0, HEDDLE_MAX_CPUS);

std::unique_ptr<heddle_client_page> new_page() {
    return std::make_unique<heddle_client_page>();
}

std::string work_text(const WorkCounts& work) {
    if (work == WorkCounts{}) return "";
    return "=" + std::to_string(work.ended) + "/" + std::to_string(work.inserted);
}

/// "NAME:CPUS" of each, and "=ENDED/INSERTED" of one with work.
std::string shown(const heddle_client_page& page, const CpuSet& held = kAll) {
    std::string text;
    for (const auto& [name, cpus, work] : shown_components(page, held))
        text += (text.empty() ? "" : " ") + name + ":" + cpus.to_list() + work_text(work);
    return text;
}

void write_name(heddle_client_page& page, size_t place, std::string_view name) {
    std::array<uint64_t, HEDDLE_COMPONENT_WORDS> words{};
    std::memcpy(words.data(), name.data(), std::min(name.size(), sizeof words));
    for (size_t i = 0; i < words.size(); ++i) page.component[place][i] = words[i];
}

class ComponentTableTest : public testing::Test {
  protected:
    ComponentTableTest() { table_.show_on(page_.get()); }
    std::unique_ptr<heddle_client_page> page_ = new_page();
    ComponentTable table_;
};

TEST_F(ComponentTableTest, ShowsWhoUsesWhichCpu) {
    EXPECT_EQ(shown(*page_), "");
    table_.set(0, 1, "native");
    table_.set(1023, 1, "native");
    table_.set(2, 7, "quark");
    EXPECT_EQ(shown(*page_), "native:0,1023 quark:2");
    table_.set(0, 7, "quark");
    table_.set(1023, 0, "");
    EXPECT_EQ(shown(*page_), "quark:0,2");
    EXPECT_EQ(shown(*page_, {2, 3}), "quark:2") << "of CPUs that the client holds";
}

TEST_F(ComponentTableTest, CpusThatCannotBeAreNobodys) {
    for (const int cpu : {-1, -1000, int{HEDDLE_MAX_CPUS}, 1 << 30}) table_.set(cpu, 1, "native");
    EXPECT_EQ(shown(*page_), "");
}

TEST_F(ComponentTableTest, ComponentsOfOneNameAreOne) {
    table_.set(0, 1, "native");
    table_.set(1, 2, "native");
    EXPECT_EQ(shown(*page_), "native:0-1");
}

TEST_F(ComponentTableTest, ANameIsCutBetweenCharacters) {
    const std::string ascii(HEDDLE_COMPONENT_BYTES + 9, 'x');
    table_.set(0, 1, ascii);
    table_.set(1, 2, std::string(HEDDLE_COMPONENT_BYTES - 2, 'y') + "\xc3\xa4");
    table_.set(2, 3, std::string(HEDDLE_COMPONENT_BYTES - 3, 'z') + "\xc3\xa4");
    EXPECT_EQ(shown(*page_), ascii.substr(0, HEDDLE_COMPONENT_BYTES - 1) + ":0 " +
                                 std::string(HEDDLE_COMPONENT_BYTES - 2, 'y') + ":1 " +
                                 std::string(HEDDLE_COMPONENT_BYTES - 3, 'z') + "\xc3\xa4:2");
    table_.set(3, 4, std::string(100, '\x80'));
    EXPECT_EQ(page_->user[3].load(), 0xff) << "nothing of it can be shown";
}

TEST_F(ComponentTableTest, AComponentWithoutANameIsSomebody) {
    table_.set(0, 1, "");
    EXPECT_EQ(shown(*page_), "");
    EXPECT_EQ(page_->user[0].load(), 0xff);
}

TEST_F(ComponentTableTest, FollowsTheArbiters) {
    table_.set(0, 1, "native");
    table_.show_on(nullptr);
    table_.set(1, 2, "quark");
    EXPECT_EQ(shown(*page_), "native:0") << "not touched any more";
    const auto next = new_page();
    table_.show_on(next.get());
    EXPECT_EQ(shown(*next), "native:0 quark:1");
}

TEST_F(ComponentTableTest, PlacesOfComponentsWithoutCpusAreUsedAgain) {
    const auto name = [](int i) { return "component " + std::to_string(i); };
    for (int i = 0; i < HEDDLE_COMPONENTS + 1; ++i) table_.set(i, static_cast<uint32_t>(i) + 1, name(i));
    EXPECT_EQ(shown_components(*page_, kAll).size(), size_t{HEDDLE_COMPONENTS});
    EXPECT_EQ(page_->user[HEDDLE_COMPONENTS].load(), 0xff) << "there was no place";
    table_.set(5, 0, "");
    table_.set(HEDDLE_COMPONENTS, HEDDLE_COMPONENTS + 1, name(HEDDLE_COMPONENTS));
    EXPECT_EQ(shown(*page_, {5, HEDDLE_COMPONENTS}), name(HEDDLE_COMPONENTS) + ":32");
    table_.set(5, 6, name(5));
    EXPECT_EQ(shown(*page_, {5}), "") << "another has its place now";
    table_.set(4, 6, name(5));
    EXPECT_EQ(shown(*page_, {4}), name(5) + ":4") << "and it has that of the one that it took the CPU from";
}

TEST_F(ComponentTableTest, ShowsWhatComponentsHaveDone) {
    table_.set(0, 1, "native");
    const std::array work = {ComponentTable::Work{1, "native", {5, 3}},
                             ComponentTable::Work{2, "tbb", {7, 7}},
                             ComponentTable::Work{3, "native", {10, 1}}, ComponentTable::Work{4, "", {9, 9}}};
    table_.show_work(work);
    EXPECT_EQ(shown(*page_), "native:0=4/15 tbb:=7/7") << "two of one name are one";
    table_.show_work({});
    EXPECT_EQ(shown(*page_), "native:0") << "who has gone is not shown";
    const auto next = new_page();
    table_.show_on(next.get());
    table_.show_work(work);
    EXPECT_EQ(shown(*next), "native:0=4/15 tbb:=7/7");
    table_.show_on(nullptr);
    table_.show_work(work);
}

TEST_F(ComponentTableTest, WorkOfWhoHadThePlaceBeforeIsNotShown) {
    std::vector<ComponentTable::Work> idle;
    std::vector<std::string> names;
    for (int i = 0; i < HEDDLE_COMPONENTS; ++i) names.push_back("component " + std::to_string(i));
    for (uint32_t i = 0; i < names.size(); ++i) idle.push_back({i + 1, names[i], {1, 1}});
    table_.show_work(idle);
    EXPECT_EQ(shown_components(*page_, kAll).size(), names.size());
    table_.set(3, 99, "late");
    EXPECT_EQ(shown(*page_, {3}).substr(0, 6), "late:3");
    EXPECT_EQ(page_->inserted[0].load(), 0U);
}

TEST_F(ComponentTableTest, InAChildItDoesNothing) {
    table_.set(0, 1, "native");
    table_.abandon();
    table_.set(1, 1, "native");
    EXPECT_EQ(shown(*page_), "native:0");
}

TEST(ShownComponents, BelieveNothing) {
    const auto page = new_page();
    write_name(*page, 0, "evil\x1b[2J\n");
    write_name(*page, 1, std::string(HEDDLE_COMPONENT_BYTES, '\xff'));
    write_name(*page, 31, "last");
    const uint8_t users[] = {1, 2, 3, 32, 33, 254, 255, 0};
    for (size_t cpu = 0; cpu < std::size(users); ++cpu) page->user[cpu] = users[cpu];
    EXPECT_EQ(shown(*page), "evil?[2J?:0 " + std::string(HEDDLE_COMPONENT_BYTES - 1, '?') + ":1 last:3");
}

}  // namespace
}  // namespace heddle
