#include "figure_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "heddle/error.hpp"
#include "process.hpp"

namespace heddle::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLongest{300};

std::set<std::string_view> programs_of(const std::function<bool(std::string_view)>& wanted) {
    std::set<std::string_view> programs;
    for (const Figure& figure : figures())
        if (wanted(figure.name)) programs.insert(figure.program);
    return programs;
}

/// Of "NAME: why".
std::string_view named_in(const std::string& complaint) {
    return std::string_view(complaint).substr(0, complaint.find(':'));
}

std::string_view first_line(std::string_view text) {
    return text.substr(0, text.find('\n'));
}

Result read_figure(const nlohmann::json& object, const Figure& figure) {
    Result result{std::string(figure.name),
                  object.at("n"),
                  object.at("median"),
                  object.at("mad"),
                  object.at("unit"),
                  std::string(figure.against),
                  0,
                  1};
    if (result.unit != figure.unit)
        throw Error(ErrorCode::kBadInput, fmt::format("{} is told in {} where its limit is in {}",
                                                      figure.name, result.unit, figure.unit));
    double other;
    if (figure.against == "limit") {
        other = figure.limit > 0 ? figure.limit : object.at("limit").get<double>();
    } else {
        other = object.at("peer_median").get<double>();
        result.limit = figure.limit;
    }
    if (figure.against == "best") result.peer = object.at("peer").get<std::string>();
    result.ratio = figure.more_is_better ? other / result.median : result.median / other;
    return result;
}

}  // namespace

FigureResults read_figures(const std::string& output) {
    FigureResults all;
    std::istringstream lines(output);
    for (std::string text; std::getline(lines, text);) {
        try {
            const auto object = nlohmann::json::parse(text);
            const auto name = object.at("name").get<std::string>();
            const auto figure = std::ranges::find(figures(), name, &Figure::name);
            if (figure == figures().end()) continue;
            if (object.contains("skipped"))
                all.skipped.push_back(fmt::format("{}: {}", name, object.at("skipped").get<std::string>()));
            else
                all.results.push_back(read_figure(object, *figure));
        } catch (const nlohmann::json::exception& error) {
            throw Error(ErrorCode::kBadInput, fmt::format("'{}' is no figure: {}", text, error.what()));
        }
    }
    return all;
}

FigureResults run_figure_programs(const Host& host, bool quick,
                                  const std::function<bool(std::string_view)>& wanted) {
    FigureResults all;
    for (const std::string_view program : programs_of(wanted)) {
        if (!fs::exists(host.programs / program)) continue;
        Command command{{(host.programs / program).string()}, {}, {}};
        if (quick) command.argv.emplace_back("--quick");
        try {
            const Outcome outcome = run_together({&command, 1}, kLongest).front();
            if (outcome.cut)
                throw Error(ErrorCode::kUnavailable, fmt::format("took longer than {} s", kLongest.count()));
            if (outcome.exit_code != 0)
                throw Error(ErrorCode::kUnavailable,
                            fmt::format("ended with {}: {}", outcome.exit_code, first_line(outcome.errors)));
            FigureResults told = read_figures(outcome.output);
            for (Result& result : told.results)
                if (wanted(result.name)) all.results.push_back(std::move(result));
            for (std::string& complaint : told.complaints)
                if (wanted(named_in(complaint))) all.complaints.push_back(std::move(complaint));
            for (std::string& one : told.skipped)
                if (wanted(named_in(one))) all.skipped.push_back(std::move(one));
        } catch (const Error& error) {
            for (const Figure& figure : figures())
                if (figure.program == program && wanted(figure.name))
                    all.complaints.push_back(fmt::format("{}: {} {}", figure.name, program, error.what()));
        }
    }
    const auto is_told = [&](const Figure& figure) {
        return std::ranges::find(all.results, figure.name, &Result::name) != all.results.end() ||
               std::ranges::find(all.complaints, figure.name, named_in) != all.complaints.end() ||
               std::ranges::find(all.skipped, figure.name, named_in) != all.skipped.end();
    };
    for (const Figure& figure : figures()) {
        if (!wanted(figure.name) || is_told(figure)) continue;
        if (fs::exists(host.programs / figure.program))
            all.complaints.push_back(fmt::format("{}: {} did not tell it", figure.name, figure.program));
        else
            all.skipped.push_back(fmt::format("{}: {} was not built, for want of what it measures",
                                              figure.name, figure.program));
    }
    return all;
}

}  // namespace heddle::bench
