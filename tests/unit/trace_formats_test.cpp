#include "trace/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.hpp"
#include "trace/by_task.hpp"
#include "trace/drawing.hpp"
#include "trace/reader.hpp"

using namespace heddle::trace;
using heddle::test::expect_golden;
using nlohmann::json;
using testing::HasSubstr;

namespace {

constexpr const char* kFolder = HEDDLE_TEST_DATA "/golden/trace/";

Timeline recorded(const std::string& name) {
    return Timeline(read_file(kFolder + name + ".jsonl"));
}

std::string text(const Timeline& timeline, void (*write)(const Timeline&, std::ostream&)) {
    std::ostringstream out;
    write(timeline, out);
    return out.str();
}

std::string svg(const Timeline& timeline) {
    std::ostringstream out;
    draw_svg(timeline, out);
    return out.str();
}

std::string terminal(const Timeline& timeline, const TextOptions& options) {
    std::ostringstream out;
    draw_text(timeline, out, options);
    return out.str();
}

struct ParaverText {
    std::string prv, pcf, row;
};
ParaverText paraver(const Timeline& timeline) {
    std::ostringstream prv, pcf, row;
    write_paraver(timeline, {prv, pcf, row});
    return {prv.str(), pcf.str(), row.str()};
}

std::vector<int64_t> numbers(const std::string& line) {
    std::vector<int64_t> all;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, ':');) all.push_back(std::stoll(part));
    return all;
}

// The number of threads of each task, by application, as the header of a .prv tells it.
std::vector<std::vector<int64_t>> applications(const std::string& header) {
    std::vector<std::vector<int64_t>> all;
    for (size_t open = header.find('(', header.find("_ns:") + 4);
         (open = header.find('(', open + 1)) != std::string::npos;) {
        all.emplace_back();
        std::istringstream tasks(header.substr(open + 1, header.find(')', open) - open - 1));
        for (std::string task; std::getline(tasks, task, ',');) {
            EXPECT_EQ(numbers(task).size(), 2U) << task;
            all.back().push_back(numbers(task)[0]);
        }
    }
    return all;
}

// Reads a .prv as a viewer would and checks every reference in it; returns for each CPU the time that states
// of running cover.
std::map<int64_t, int64_t> check_paraver(const ParaverText& files) {
    std::istringstream in(files.prv);
    std::string header;
    std::getline(in, header);
    const int64_t end = std::stoll(header.substr(header.find("):") + 2));
    const auto apps = applications(header);
    std::map<int64_t, int64_t> running;
    int64_t last = 0;
    for (std::string line; std::getline(in, line);) {
        const auto n = numbers(line);
        EXPECT_EQ(n.size(), 8U) << line;
        EXPECT_TRUE(n[0] == 1 || n[0] == 2) << line;
        EXPECT_GE(n[5], last) << "not by time: " << line;
        last = n[5];
        EXPECT_LE(last, end);
        const auto& tasks = apps.at(static_cast<size_t>(n[2] - 1));
        EXPECT_LE(n[4], tasks.at(static_cast<size_t>(n[3] - 1))) << line;
        EXPECT_GE(n[4], 1);
        if (n[0] == 1) {
            EXPECT_GT(n[6], n[5]) << line;
            running[n[1]] += n[6] - n[5];
        } else {
            EXPECT_THAT(files.pcf, HasSubstr(" " + std::to_string(n[6]) + " ")) << "a type without a name";
        }
    }
    // Each level of the .row has as many names as it says.
    std::istringstream rows(files.row);
    for (std::string word; rows >> word;) {
        EXPECT_EQ(word, "LEVEL");
        int64_t size = 0;
        rows >> word >> word >> size;
        std::getline(rows, word);
        for (int64_t i = 0; i < size; ++i) {
            std::getline(rows, word);
            EXPECT_FALSE(word.empty());
        }
    }
    return running;
}

// Every tag is closed in order, every attribute quoted, nothing forbidden stands in the text.
void expect_well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
        const size_t end = xml.find('>', at);
        ASSERT_NE(end, std::string::npos);
        const std::string tag = xml.substr(at + 1, end - at - 1);
        ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
        ASSERT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
        const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" />", 1) - (tag[0] == '/'));
        if (tag[0] == '/') {
            ASSERT_FALSE(open.empty());
            ASSERT_EQ(open.back(), name);
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
    }
    EXPECT_TRUE(open.empty());
    for (size_t at = xml.find('&'); at != std::string::npos; at = xml.find('&', at + 1))
        EXPECT_LE(xml.find(';', at) - at, 6U) << xml.substr(at, 20);
}

Timeline busy(int cpus, int clients, int events) {
    Trace trace;
    for (int i = 0; i < cpus; ++i) trace.header.cpus.push_back({i, i, i * 2 / cpus, i * 4 / cpus});
    uint32_t random = 1;
    for (int64_t i = 0; i < events; ++i) {
        random = random * 1664525 + 1013904223;
        const Client client{random >> 8 & 0xFFFF};
        const auto cpu = static_cast<int>((random >> 16) % static_cast<uint32_t>(cpus));
        trace.events.push_back(
            {i * 1000, CpuChanged{cpu, Client{client.value % static_cast<uint32_t>(clients)}, {}, ""}});
    }
    return Timeline(trace);
}

class TraceGolden : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(TraceGolden, EachFormatIsAsItWas) {
    const std::string base = std::string(kFolder) + GetParam();
    const Timeline timeline = recorded(GetParam());
    expect_golden(base + ".chrome.json", text(timeline, write_chrome));
    expect_golden(base + ".paje", text(timeline, write_paje));
    expect_golden(base + ".svg", svg(timeline));
    expect_golden(base + ".txt", terminal(timeline, {}));
    expect_golden(base + ".ascii.txt", terminal(timeline, {.width = 72, .ascii = true}));
    const ParaverText files = paraver(timeline);
    expect_golden(base + ".prv", files.prv);
    expect_golden(base + ".pcf", files.pcf);
    expect_golden(base + ".row", files.row);
}
INSTANTIATE_TEST_SUITE_P(Recorded, TraceGolden, testing::Values("two_programs", "owners", "tasks"),
                         [](const auto& param) { return std::string(param.param); });

TEST(TraceTasks, AreDrawnOnTheirWorkers) {
    const Timeline tasks = by_task(recorded("tasks"));
    expect_golden(std::string(kFolder) + "tasks.workers.svg", svg(tasks));
    expect_golden(std::string(kFolder) + "tasks.workers.txt", terminal(tasks, {}));
    expect_golden(std::string(kFolder) + "tasks.workers.ascii.txt",
                  terminal(tasks, {.width = 72, .ascii = true}));
    std::ostringstream accounts;
    draw_work_accounts(recorded("tasks"), accounts);
    expect_golden(std::string(kFolder) + "tasks.accounts.txt", accounts.str());
    expect_well_formed(svg(tasks));
}

TEST(TraceTasks, AnArrowLeadsFromThePauseToWhereATaskGoesOn) {
    const json all = json::parse(text(recorded("tasks"), write_chrome));
    std::vector<json> arrows;
    for (const json& event : all.at("traceEvents"))
        if (event.value("cat", "") == "pause") arrows.push_back(event);
    ASSERT_EQ(arrows.size(), 2U) << "the second paused task never went on";
    EXPECT_EQ(arrows[0].at("ph"), "s");
    EXPECT_EQ(arrows[1].at("ph"), "f");
    EXPECT_EQ(arrows[0].at("id"), arrows[1].at("id"));
    EXPECT_NE(arrows[0].at("tid"), arrows[1].at("tid"));
    EXPECT_EQ(arrows[0].at("ts"), 520.0);
    EXPECT_EQ(arrows[1].at("ts"), 705.0);
    EXPECT_EQ(all.at("otherData").at("dropped"), 12);
}

TEST(TraceChrome, IsJsonWithATrackForEachCpu) {
    const json all = json::parse(text(recorded("owners"), write_chrome));
    std::map<int, double> busy_us;
    std::set<std::string> names;
    for (const json& event : all.at("traceEvents")) {
        if (event.at("ph") == "X" && event.at("cat") == "cpu")
            busy_us[event.at("tid")] += event.at("dur").get<double>();
        if (event.at("ph") == "M" && event.at("args").contains("name"))
            names.insert(event.at("args").at("name"));
        if (event.at("ph") != "M") {
            EXPECT_GE(event.at("ts").get<double>(), 0);
        }
    }
    EXPECT_EQ(busy_us.size(), 8U);
    EXPECT_EQ(names.count("render <a&\"b\">\n\x1b[31m (pid 200)"), 1U) << "a name survives as it is";
    EXPECT_EQ(names.count("CPU 4 (package 0, NUMA 0, core 0)"), 1U);
}

TEST(TraceParaver, EveryRecordRefersToWhatExists) {
    for (const char* name : {"two_programs", "owners", "tasks"}) {
        const Timeline timeline = recorded(name);
        const auto running = check_paraver(paraver(timeline));
        for (size_t row = 0; row < timeline.cpus.size(); ++row) {
            int64_t used = 0;
            for (const Slice& slice : timeline.cpus[row].slices)
                if (slice.user != kNobody) used += slice.end_ns - slice.begin_ns;
            const auto found = running.find(static_cast<int64_t>(row) + 1);
            EXPECT_EQ(found == running.end() ? 0 : found->second, used) << name << " CPU row " << row;
        }
    }
}

TEST(TraceSvg, IsWellFormedWhateverTheNames) {
    for (const char* name : {"two_programs", "owners"}) expect_well_formed(svg(recorded(name)));
}

TEST(TraceSvg, StaysSmallWithAMillionEvents) {
    const std::string picture = svg(busy(256, 12, 1'000'000));
    EXPECT_LT(picture.size(), 2'000'000U);
    EXPECT_GT(picture.size(), 50'000U) << "it shows something";
    expect_well_formed(picture);
    EXPECT_LT(svg(busy(1, 2, 1'000'000)).size(), 100'000U) << "one CPU that changes a million times";
    EXPECT_LT(svg(busy(4096, 300, 200'000)).size(), 2'000'000U);
}

TEST(TraceSvg, ManyClientsAreSummedUpInGrey) {
    const std::string picture = svg(busy(8, 40, 1000));
    EXPECT_THAT(picture, HasSubstr("24 more programs used "));
    EXPECT_THAT(picture, HasSubstr("#9aa3ad"));
}

TEST(TraceFormats, AnEmptyTraceIsAWholeDocumentInEach) {
    Trace trace;
    for (int cpus : {0, 2}) {
        if (cpus > 0) trace.header.cpus = {{0, 0, 0, 0}, {1, 1, 0, 0}};
        const Timeline timeline(trace);
        EXPECT_TRUE(json::parse(text(timeline, write_chrome)).contains("traceEvents"));
        EXPECT_THAT(text(timeline, write_paje), HasSubstr("%EndEventDef"));
        EXPECT_TRUE(check_paraver(paraver(timeline)).empty());
        expect_well_formed(svg(timeline));
        EXPECT_THAT(terminal(timeline, {}), HasSubstr("0 used (0.0 %)"));
    }
}

TEST(TraceFormats, HugeTimesAreKept) {
    Trace trace;
    trace.header.cpus = {{0, 0, 0, 0}};
    trace.events = {{0, CpuChanged{0, Client{1}, {}, ""}}, {kMaxTime_ns, Mark{kEndMark}}};
    const Timeline timeline(trace);
    EXPECT_THAT(text(timeline, write_chrome), HasSubstr(R"("dur":1000000000000000.000)"));
    EXPECT_THAT(text(timeline, write_paje), HasSubstr("1000000000.000000000"));
    EXPECT_THAT(svg(timeline), HasSubstr("11574 d"));
    EXPECT_THAT(terminal(timeline, {}), HasSubstr("1000000000 core-s"));
}

TEST(TraceText, ColourCodesAreAlwaysClosed) {
    const std::string drawn = terminal(recorded("two_programs"), {.width = 60, .color = true});
    size_t opened = 0;
    size_t closed = 0;
    for (size_t at = drawn.find('\x1b'); at != std::string::npos; at = drawn.find('\x1b', at + 1))
        (drawn.compare(at, 4, "\x1b[0m") == 0 ? closed : opened)++;
    EXPECT_GT(opened, 3U);
    EXPECT_EQ(opened, closed);
}

TEST(TraceText, FitsTheTerminal) {
    std::istringstream lines(terminal(recorded("owners"), {.width = 72, .ascii = true}));
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 90U) << line;
        if (line.starts_with("CPU")) {
            EXPECT_LE(line.size(), 72U);
        }
        for (const char c : line) EXPECT_GE(c, ' ');
    }
}

TEST(TraceText, APauseOfNoTaskLastsNoTime) {
    std::istringstream lines(R"({"heddle_trace":1,"machine":"m","start_ns":0,"cpus":[[0,0,0,0]]})"
                             "\n"
                             R"({"t":5,"e":"span","c":1,"lane":"w","name":"n","b":2,"k":"paused"})"
                             "\n"
                             R"({"t":9,"e":"span","c":1,"lane":"w","name":"n","b":7})"
                             "\n");
    const Timeline timeline(read(lines, "made", {}));
    EXPECT_EQ(timeline.work.front().resumed_ns, 5);
    EXPECT_FALSE(terminal(timeline, {}).empty());
    EXPECT_FALSE(terminal(by_task(timeline), {}).empty());
    EXPECT_FALSE(text(timeline, write_chrome).empty());
}

// A trace may come from anywhere, and a terminal obeys what it is shown.
TEST(TraceText, ShowsNoControlCharactersOfATrace) {
    std::istringstream lines(
        R"({"heddle_trace":1,"machine":"m\u001b[2J","start_ns":0,"cpus":[[0,0,0,0]]})"
        "\n"
        R"({"t":9,"e":"span","c":1,"lane":"w\u001b]0;x\u0007","name":"n\u001b[1m","b":2,"task":1})"
        "\n");
    const Timeline timeline(read(lines, "made", {}));
    const std::string drawn = terminal(timeline, {}) + terminal(by_task(timeline), {});
    for (const char control : {'\x1b', '\x07'}) EXPECT_EQ(drawn.find(control), std::string::npos) << drawn;
}
