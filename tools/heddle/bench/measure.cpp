#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "heddle/error.hpp"
#include "peers.hpp"
#include "process.hpp"

namespace heddle::bench {

namespace fs = std::filesystem;

namespace {

// Time for both programs, under any peer, to be loaded and stand at the gate.
constexpr Nanoseconds kLead = std::chrono::milliseconds(200);
constexpr double kCutFactor = 5;
// A peer that is itself the measure must be seen to be as bad as it is claimed to be.
constexpr double kNamedPeerCutFactor = 20;

bool all_gated(const Benchmark& benchmark) {
    return std::ranges::none_of(benchmark.jobs, &Job::outside);
}

fs::path picture(const Host& host) {
    return host.scratch / "picture.miff";
}

Command bare_command(const Job& job, const Host& host, Time gate) {
    Command command;
    command.argv.push_back(job.outside ? std::string(job.program) : (host.programs / job.program).string());
    for (const std::string_view argument : job.arguments)
        command.argv.push_back(argument == kPicture ? picture(host).string() : std::string(argument));
    if (job.outside) return command;
    const Time start = gate + std::chrono::milliseconds(job.start_ms);
    for (const auto& word : {std::string("--iterations-per-us"), std::to_string(host.iterations_per_us),
                             std::string("--start-at"), std::to_string(start.time_since_epoch().count())})
        command.argv.push_back(word);
    return command;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

Time reported_end(const Command& command, const Outcome& outcome) {
    const auto line = nlohmann::json::parse(outcome.output, nullptr, false);
    if (!line.is_object() || !line.contains("end_ns"))
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} did not report when it ended", command.argv.front()));
    return Time(Nanoseconds(line["end_ns"].get<int64_t>()));
}

void check_end(const Command& command, const Outcome& outcome) {
    if (outcome.exit_code == 0) return;
    const std::string why = first_line(outcome.errors);
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} ended with {}{}{}", fs::path(command.argv.front()).filename().string(),
                            outcome.exit_code, why.empty() ? "" : ": ", why));
}

bool is_named(const Benchmark& benchmark, std::string_view peer) {
    return std::ranges::any_of(benchmark.claims, [&](const Claim& claim) { return claim.against == peer; });
}

}  // namespace

void prepare(const Benchmark& benchmark, const Host& host) {
    const bool needs_picture = std::ranges::any_of(benchmark.jobs, [](const Job& job) {
        return std::ranges::find(job.arguments, kPicture) != job.arguments.end();
    });
    if (!needs_picture || fs::exists(picture(host))) return;
    if (find_in_path("gm").empty())
        throw Error(ErrorCode::kUnavailable,
                    "there is no gm in PATH; install GraphicsMagick (apt-get install graphicsmagick)");
    const Command command{
        {"gm", "convert", "-size", "3600x2700", "plasma:fractal", picture(host).string()}, {}, {}};
    const Outcome outcome = run_together({&command, 1}, std::chrono::seconds(60)).front();
    check_end(command, outcome);
}

Sample run_once(const Benchmark& benchmark, std::string_view peer, const Host& host, double cut_s,
                MachineLoad& load) {
    load.wait_for_quiet();
    clean_up(peer);
    const bool gated = all_gated(benchmark);
    const Time gate = std::chrono::steady_clock::now() + kLead;
    std::vector<Command> commands;
    for (const Job& job : benchmark.jobs) {
        Command bare = bare_command(job, host, gate);
        const std::string reason = why_not(peer, bare, host);
        if (!reason.empty()) throw Error(ErrorCode::kUnavailable, reason);
        commands.push_back(dress(peer, std::move(bare), {commands.size(), benchmark.jobs.size()}, host));
    }
    const auto limit = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(cut_s));
    load.run_begins();
    const std::vector<Outcome> outcomes = run_together(commands, gated ? limit + kLead : limit);
    double cpu_s = 0;
    for (const Outcome& outcome : outcomes) cpu_s += outcome.cpu_s;
    load.run_ended(cpu_s);
    clean_up(peer);

    if (std::ranges::any_of(outcomes, &Outcome::cut)) return {cut_s, true};
    Time start = gated ? gate : outcomes.front().started;
    Time end{};
    for (size_t i = 0; i < commands.size(); ++i) {
        check_end(commands[i], outcomes[i]);
        end = std::max(end, gated ? reported_end(commands[i], outcomes[i]) : outcomes[i].ended);
    }
    return {std::chrono::duration<double>(end - start).count(), false};
}

std::vector<Contestant> contestants(const Benchmark& benchmark, const std::vector<std::string>& wanted,
                                    const Host& host, MachineLoad& load) {
    std::vector<std::string_view> names = benchmark.peers;
    // In the first round the rest is cut by what comes first, so the peers that may spin for ever come last.
    std::ranges::stable_partition(names,
                                  [](std::string_view name) { return name != "os" && name != "active"; });
    names.insert(names.begin(), "heddle");
    std::vector<Contestant> result;
    for (const std::string_view name : names) {
        if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
        result.push_back({std::string(name), is_named(benchmark, name) ? kNamedPeerCutFactor : kCutFactor,
                          [&benchmark, &host, &load, name](double cut_s) {
                              return run_once(benchmark, name, host, cut_s, load);
                          }});
    }
    return result;
}

}  // namespace heddle::bench
