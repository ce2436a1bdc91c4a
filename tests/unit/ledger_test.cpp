// Replays tests/golden/ledger (its README tells the format), and what does not fit into a table.
#include "cores/ledger.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "heddle/error.hpp"
#include "support/ledger_call.hpp"

namespace {

using namespace heddle;
using test::Call;

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        const size_t from = part.find_first_not_of(' ');
        const size_t to = part.find_last_not_of(' ');
        parts.push_back(from == std::string::npos ? "" : part.substr(from, to - from + 1));
    }
    return parts;
}

/// A ledger whose members have names, driven by lines of text.
class Stage {
  public:
    explicit Stage(bool lend_after_exit)
        : ledger_(Machine::synthetic("numa:2 core:2 pu:1"),
                  {.members = 16, .lend_after_exit = lend_after_exit}) {
        Actions ignored;
        ids_["a"] = ledger_.attach("a", {0, 1}, ignored);
        ids_["b"] = ledger_.attach("b", {2}, ignored);
        ids_["c"] = ledger_.attach("c", {}, ignored);
    }

    /// Makes "a lend_cpu 0"; gives "outcome : actions".
    std::string play(const std::string& line) {
        const std::vector<std::string> words = split(line, ' ');
        const std::string argument = words.size() > 2 ? words[2] : "";
        Actions actions;
        Outcome outcome = Outcome::kSuccess;
        if (words.at(1) == "attach") {
            try {
                ids_[words[0]] =
                    ledger_.attach(words[0], CpuSet::parse(argument == "-" ? "" : argument), actions);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::kPermission) << error.what();
                outcome = Outcome::kPermission;
            }
        } else {
            outcome = make(ledger_, ids_.at(words[0]), parse(words), actions);
        }
        EXPECT_EQ(ledger_.check(), "") << "after " << line;
        std::vector<std::string> told;
        for (const Action& action : actions.all())
            told.push_back(fmt::format("{} {} {}",
                                       action.kind == Action::Kind::kEnable ? "enable" : "disable",
                                       name(action.member), action.cpu));
        return fmt::format("{} : {}", to_string(outcome),
                           told.empty() ? "-" : fmt::format("{}", fmt::join(told, ", ")));
    }

    /// "owner guest state [who waits]"
    std::string cpu(int cpu) const {
        constexpr std::array kStates = {"disabled", "busy", "lent"};
        std::vector<std::string> waiting;
        for (const MemberId member : ledger_.requests(cpu)) waiting.push_back(name(member));
        return fmt::format("{} {} {}{}{}", name(ledger_.owner(cpu)), name(ledger_.guest(cpu)),
                           kStates.at(static_cast<size_t>(ledger_.state(cpu))), waiting.empty() ? "" : " ",
                           fmt::join(waiting, ","));
    }

  private:
    static Call parse(const std::vector<std::string>& words) {
        const auto verb = std::ranges::find(test::kVerbs, words.at(1), &test::Verb::name);
        if (verb == test::kVerbs.end()) throw std::runtime_error("no such call: " + words[1]);
        Call call{.verb = &*verb, .number = 0, .set = {}};
        const size_t kind = verb->function.index();
        if (kind == 1 || kind == 3 || kind == 4) call.number = std::stoi(words.at(2));
        if (kind == 2 || kind == 3) {
            const std::string& list = words.at(kind == 2 ? 2 : 3);
            call.set = CpuSet::parse(list == "-" ? "" : list);
        }
        return call;
    }
    std::string name(MemberId member) const {
        return member == kNobody ? "-" : std::string(ledger_.name(member));
    }

    Ledger ledger_;
    std::map<std::string, MemberId> ids_;
};

std::vector<std::string> lines_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') lines.push_back(line);
    EXPECT_FALSE(lines.empty()) << path;
    return lines;
}

std::vector<std::filesystem::path> files(const std::string& suffix) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TEST_DATA "/golden/ledger"))
        if (entry.path().string().ends_with(suffix)) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
}

struct State {
    std::vector<std::string> calls;
    std::string cpu;
};

std::map<std::string, State> named_states() {
    std::map<std::string, State> states;
    for (const std::string& line : lines_of(HEDDLE_TEST_DATA "/golden/ledger/states.txt")) {
        const std::vector<std::string> fields = split(line, '|');
        states[fields.at(0)] = {split(fields.at(1), ';'), fields.at(2)};
    }
    return states;
}

TEST(LedgerGolden, NamedStatesAreReached) {
    for (const auto& [name, state] : named_states()) {
        Stage stage(false);
        for (const std::string& call : state.calls) stage.play(call);
        EXPECT_EQ(stage.cpu(0), state.cpu) << name;
    }
}

TEST(LedgerGolden, TransitionsOfOneCpu) {
    const std::map<std::string, State> states = named_states();
    const auto tables = files(".table.txt");
    EXPECT_EQ(tables.size(), 6U);
    for (const auto& table : tables) {
        for (const std::string& line : lines_of(table)) {
            SCOPED_TRACE(table.filename().string() + ": " + line);
            const std::vector<std::string> fields = split(line, '|');
            ASSERT_EQ(fields.size(), 5U);
            Stage stage(false);
            for (const std::string& call : states.at(fields[0]).calls) stage.play(call);
            EXPECT_EQ(stage.play(fields[1]), fields[2] + " : " + fields[3]);
            EXPECT_EQ(stage.cpu(0), states.at(fields[4]).cpu);
        }
    }
}

TEST(LedgerGolden, Stories) {
    const auto stories = files(".story.txt");
    EXPECT_EQ(stories.size(), 3U);
    for (const auto& story : stories) {
        bool lend_after_exit = false;
        std::string title;
        std::optional<Stage> stage;
        for (const std::string& line : lines_of(story)) {
            SCOPED_TRACE(story.filename().string() + ": " + title + ": " + line);
            if (line == "option lend_after_exit") {
                lend_after_exit = true;
            } else if (line.starts_with("case ")) {
                title = line.substr(5);
                stage.emplace(lend_after_exit);
            } else if (line.starts_with("cpu ")) {
                const std::vector<std::string> words = split(line, ' ');
                EXPECT_EQ(stage->cpu(std::stoi(words.at(1))), line.substr(4 + words[1].size() + 1));
            } else {
                const size_t colon = line.find(" : ");
                ASSERT_NE(colon, std::string::npos);
                EXPECT_EQ(stage->play(line.substr(0, colon)), line.substr(colon + 3));
            }
        }
    }
}

TEST(Ledger, RefusesAnOwnerForWhatIsOwnedOrNotThere) {
    Ledger ledger(Machine::synthetic("core:4 pu:1"), {.members = 2});
    Actions actions;
    (void)ledger.attach("first", {0, 1}, actions);
    try {
        (void)ledger.attach("second", {1, 2}, actions);
        FAIL() << "two owners";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kPermission);
        EXPECT_STREQ(error.what(), "'second' cannot own CPU 1: 'first' owns it; let each CPU have one owner");
    }
    EXPECT_EQ(ledger.owner(2), kNobody) << "a refused attach changes nothing";
    EXPECT_THROW((void)ledger.attach("outside", {4}, actions), Error);
    (void)ledger.attach("second", {}, actions);
    try {
        (void)ledger.attach("third", {}, actions);
        FAIL() << "more members than allowed";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kLimit);
    }
}

TEST(Ledger, RefusesLimitsOutOfRange) {
    const Machine machine = Machine::synthetic("core:1 pu:1");
    EXPECT_THROW(Ledger(machine, {.members = 0}), Error);
    EXPECT_THROW(Ledger(machine, {.members = 5000}), Error);
    EXPECT_THROW(Ledger(machine, {.requests_per_cpu = 9}), Error);
    EXPECT_THROW(Ledger(machine, {.petitions = 0}), Error);
}

TEST(Ledger, AnOldIdIsNotTakenForItsSuccessor) {
    Ledger ledger(Machine::synthetic("core:2 pu:1"), {.members = 1});
    Actions actions;
    const MemberId first = ledger.attach("first", {0}, actions);
    EXPECT_EQ(ledger.detach(first, actions), Outcome::kSuccess);
    const MemberId second = ledger.attach("second", {0}, actions);
    EXPECT_EQ(Ledger::slot(first), Ledger::slot(second));
    EXPECT_EQ(ledger.lend_cpu(first, 0, actions), Outcome::kPermission);
    EXPECT_EQ(ledger.detach(first, actions), Outcome::kPermission);
    EXPECT_FALSE(ledger.attached(first));
    EXPECT_EQ(ledger.owner(0), second);
    EXPECT_EQ(ledger.detach(MemberId{12345}, actions), Outcome::kPermission);
    EXPECT_EQ(ledger.detach(kNobody, actions), Outcome::kPermission);
}

TEST(Ledger, PetitionsAreBounded) {
    Ledger ledger(Machine::synthetic("core:2 pu:1"), {.members = 4, .petitions = 2});
    Actions actions;
    (void)ledger.attach("owner", {0, 1}, actions);
    const MemberId x = ledger.attach("x", {}, actions);
    const MemberId y = ledger.attach("y", {}, actions);
    EXPECT_EQ(ledger.acquire_cpus_in(x, 1, {0}, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.acquire_cpus_in(x, 1, {1}, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.acquire_cpus(y, 1, actions), Outcome::kTooManyRequests);
    EXPECT_EQ(ledger.acquire_cpus_in(x, 5, {1}, actions), Outcome::kNoted) << "added to what waits";
    EXPECT_EQ(ledger.petitioned(x), 2) << "and no more than there are CPUs";
    EXPECT_EQ(ledger.check(), "");
}

TEST(Ledger, TellsWhichCpusOthersWaitFor) {
    Ledger ledger(Machine::synthetic("core:4 pu:1"));
    Actions actions;
    const MemberId x = ledger.attach("x", {0, 1, 2}, actions);
    const MemberId y = ledger.attach("y", {3}, actions);
    EXPECT_EQ(ledger.awaited(x), CpuSet{});
    EXPECT_EQ(ledger.acquire_cpu(y, 1, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.awaited(x), CpuSet{1});
    EXPECT_EQ(ledger.acquire_cpus_in(y, 1, {0, 3}, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.awaited(x), (CpuSet{0, 1}));
    EXPECT_EQ(ledger.acquire_cpus_in(x, 1, {3}, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.awaited(x), (CpuSet{0, 1})) << "what it waits for itself is another's";
    EXPECT_EQ(ledger.awaited(y), CpuSet{3});
    EXPECT_EQ(ledger.lend_cpu(x, 1, actions), Outcome::kSuccess);
    EXPECT_EQ(ledger.awaited(x), CpuSet{0});
    EXPECT_EQ(ledger.acquire_cpus(y, 0, actions), Outcome::kSuccess);
    EXPECT_EQ(ledger.awaited(x), CpuSet{});
}

TEST(Ledger, APoolPlacesCpusAtMembersOfItsChoice) {
    // What the arbiter does: it owns all CPUs, and moves one by a directed request, a reclaim and a lend.
    Ledger ledger(Machine::synthetic("core:4 pu:1"));
    Actions actions;
    const MemberId pool = ledger.attach("pool", CpuSet::range(0, 4), actions);
    const MemberId x = ledger.attach("x", {}, actions);
    const MemberId y = ledger.attach("y", {}, actions);
    EXPECT_EQ(ledger.acquire_cpu(x, 2, actions), Outcome::kNoted);
    actions.clear();
    EXPECT_EQ(ledger.lend_cpu(pool, 2, actions), Outcome::kSuccess);
    EXPECT_EQ(ledger.user(2), x);
    EXPECT_EQ(ledger.check_cpu(x, 2), Outcome::kSuccess);

    EXPECT_EQ(ledger.acquire_cpu(y, 2, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.reclaim_cpu(pool, 2, actions), Outcome::kNoted);
    EXPECT_EQ(ledger.to_return(x), CpuSet{2});
    EXPECT_EQ(ledger.check_cpu(pool, 2), Outcome::kNoted);
    EXPECT_EQ(ledger.return_cpu(x, 2, actions), Outcome::kSuccess);
    EXPECT_EQ(ledger.check_cpu(pool, 2), Outcome::kSuccess);
    actions.clear();
    EXPECT_EQ(ledger.lend_cpu(pool, 2, actions), Outcome::kSuccess);
    EXPECT_EQ(ledger.user(2), y);
    ASSERT_EQ(actions.size(), 2U);
    EXPECT_EQ(actions.all()[1], (Action{Action::Kind::kEnable, y, 2}));
    EXPECT_EQ(ledger.usable(y), CpuSet{2});
    EXPECT_EQ(ledger.owned(pool).count(), 4);
    EXPECT_EQ(ledger.lent(pool), CpuSet{2});
    EXPECT_EQ(ledger.check(), "");
}

}  // namespace
