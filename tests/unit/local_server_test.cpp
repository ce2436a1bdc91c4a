#include "cores/local_server.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "golden.hpp"
#include "heddle/error.hpp"

using namespace heddle;
using std::chrono::milliseconds;

namespace {

std::string text_of(const WorkerAction& action) {
    using Kind = WorkerAction::Kind;
    static const std::map<Kind, std::string> on_worker = {
        {Kind::kStart, "start"}, {Kind::kWake, "wake"}, {Kind::kMove, "move"}};
    if (action.kind == Kind::kEnd) return fmt::format("end {}", action.worker.value);
    if (action.kind == Kind::kReturn) return fmt::format("return {}", action.cpu);
    if (action.kind == Kind::kGiveBack) return fmt::format("give {}", action.cpu);
    if (action.kind == Kind::kDemand) return fmt::format("demand {}", action.count);
    return fmt::format("{} {}@{}", on_worker.at(action.kind), action.worker.value, action.cpu);
}

/// Plays a story (tests/unit/workers/README.md) and answers each line with what the server did.
class Story {
  public:
    std::string play(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        words >> verb;
        std::string rest;
        std::getline(words >> std::ws, rest);
        if (verb == "machine") {
            machine_ = Machine::synthetic(rest);
            return "";
        }
        if (verb == "limits") {
            read_limits(rest);
            return "";
        }
        if (!server_) server_.emplace(machine_, limits_);
        if (verb == "show")
            return fmt::format("workers {}, busy {}, demand {}, on {}", server_->workers(), server_->busy(),
                               server_->demand(), server_->occupied().to_list());
        event(verb, rest);
        std::string actions;
        for (const WorkerAction& action : server_->take_actions())
            actions += (actions.empty() ? "" : ", ") + text_of(action);
        return actions.empty() ? "-" : actions;
    }

  private:
    void read_limits(const std::string& text) {
        std::istringstream words(text);
        for (std::string word; words >> word;) {
            const size_t equals = word.find('=');
            const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
            const std::string name = word.substr(0, equals);
            if (name == "min") limits_.min = std::stoi(value);
            if (name == "max") limits_.max = std::stoi(value);
            if (name == "reserved") limits_.reserved = CpuSet::parse(value);
            if (name == "give_back") limits_.give_back_unused = true;
            if (name == "look") limits_.first_look = milliseconds(std::stoi(value));
        }
    }

    void event(const std::string& verb, const std::string& rest) {
        now_ += milliseconds(verb == "after" ? std::stoi(rest) : 0);
        const auto worker = [&] { return WorkerId{static_cast<uint32_t>(std::stoi(rest))}; };
        if (verb == "usable") return server_->cpus_changed(CpuSet::parse(rest), now_);
        if (verb == "arrived") return server_->work_arrived(now_);
        if (verb == "found") return server_->found_work(worker(), now_);
        if (verb == "out") return server_->out_of_work(worker(), now_);
        if (verb == "moved") return server_->moved(worker(), now_);
        if (verb == "ended") return server_->ended(worker(), rest.ends_with("work"), now_);
        if (verb == "failed") return server_->start_failed(worker(), now_);
        if (verb == "awaited") return void(awaited_ = rest == "-" ? CpuSet{} : CpuSet::parse(rest));
        if (verb == "after") return server_->tick(awaited_, now_);
        if (verb == "stop") return server_->stop(now_);
        FAIL() << "no such event: " << verb;
    }

    Machine machine_ = Machine::synthetic("pu:1");
    WorkerLimits limits_;
    std::optional<LocalServer> server_;
    CpuSet awaited_;
    Time now_{};
};

}  // namespace

TEST(LocalServer, FollowsTheStories) {
    int stories = 0;
    for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TEST_DATA "/unit/workers")) {
        if (!entry.path().string().ends_with(".story.txt")) continue;
        std::ifstream file(entry.path());
        Story story;
        std::string played;
        for (std::string line; std::getline(file, line);) {
            const std::string event = line.substr(0, line.find(" => "));
            const std::string answer = line.empty() || line[0] == '#' ? "" : story.play(event);
            played += answer.empty() ? line + "\n" : event + " => " + answer + "\n";
        }
        file.close();
        test::expect_golden(entry.path(), played);
        ++stories;
    }
    EXPECT_GE(stories, 8);
}

TEST(LocalServer, RefusesLimitsThatCannotBe) {
    const Machine machine = Machine::synthetic("core:2 pu:1");
    const auto refused = [&](auto change) {
        WorkerLimits limits;
        change(limits);
        EXPECT_THROW(LocalServer(machine, limits), Error);
    };
    refused([](WorkerLimits& limits) { limits.min = -1; });
    refused([](WorkerLimits& limits) { limits.max = -1; });
    refused([](WorkerLimits& limits) { limits.min = 3, limits.max = 2; });
    refused([](WorkerLimits& limits) { limits.reserved = {0, 1}; });
    refused([](WorkerLimits& limits) { limits.idle_delay = Nanoseconds(-1); });
    refused([](WorkerLimits& limits) { limits.first_look = Nanoseconds(-1); });
}
