#include "trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "heddle/error.hpp"

namespace heddle::trace {
namespace {

using nlohmann::json;

// What is wrong with a line; the reader adds where.
struct Malformed {
    std::string what;
};

int64_t integer(const json& value, const char* what, int64_t least, int64_t most) {
    if (!value.is_number_integer()) throw Malformed{fmt::format("{} is not a whole number", what)};
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (huge || value.get<int64_t>() < least || value.get<int64_t>() > most)
        throw Malformed{fmt::format("{} is not in {}..{}", what, least, most)};
    return value.get<int64_t>();
}

const json& field(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) throw Malformed{fmt::format("\"{}\" is missing", key)};
    return *found;
}

int64_t integer_field(const json& object, const char* key, int64_t least, int64_t most) {
    return integer(field(object, key), fmt::format("\"{}\"", key).c_str(), least, most);
}

std::string text_field(const json& object, const char* key) {
    const json& value = field(object, key);
    if (!value.is_string()) throw Malformed{fmt::format("\"{}\" is not a string", key)};
    return value.get<std::string>();
}

json parse_object(std::string_view line) {
    json object = json::parse(line, nullptr, false);
    if (!object.is_object()) throw Malformed{"it is not a JSON object"};
    return object;
}

class Parser {
  public:
    Parser(std::istream& in, const std::string& name, const ReadLimits& limits)
        : in_(in), name_(name), limits_(limits) {}

    Trace run() {
        buffer_.resize(limits_.max_header_bytes);
        if (!next_line() || line_.find("\"heddle_trace\"") == std::string_view::npos)
            throw Error(
                ErrorCode::kBadInput,
                fmt::format("{}:1: this is not a heddle trace: the first line has no \"heddle_trace\"",
                            name_));
        parse_or_report([this] { parse_header(); });
        buffer_.resize(limits_.max_line_bytes);
        while (next_line()) {
            if (trace_.events.size() >= limits_.max_events)
                throw Error(ErrorCode::kLimit,
                            fmt::format("{}:{}: a trace may have {} events; record a shorter one", name_,
                                        number_, limits_.max_events));
            parse_or_report([this] { parse_event(); });
        }
        const auto by_time = [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; };
        std::stable_sort(trace_.events.begin(), trace_.events.end(), by_time);
        return std::move(trace_);
    }

  private:
    // Sets line_ and complete_; false at the end of the stream.
    bool next_line() {
        ++number_;
        in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        const auto count = static_cast<size_t>(in_.gcount());
        complete_ = !in_.eof();
        if (in_.bad()) throw Error(ErrorCode::kSystem, fmt::format("{}: cannot read the trace", name_));
        if (in_.fail() && complete_)
            throw Error(ErrorCode::kLimit, fmt::format("{}:{}: the line is longer than {} bytes", name_,
                                                       number_, buffer_.size() - 1));
        line_ = {buffer_.data(), complete_ ? count - 1 : count};
        return complete_ || count > 0;
    }

    template <class Parse>
    void parse_or_report(Parse parse) {
        try {
            parse();
        } catch (const Malformed& error) {
            // Only the last line can lack its end; it may still be whole, and then it has parsed.
            if (!complete_ && number_ > 1)
                trace_.warnings.push_back(fmt::format(
                    "{}:{}: the last line is torn and was left out: the recorder was killed while it wrote",
                    name_, number_));
            else
                throw Error(ErrorCode::kBadInput, fmt::format("{}:{}: {}", name_, number_, error.what));
        }
    }

    void parse_header() {
        const json object = parse_object(line_);
        if (const int64_t version = integer_field(object, "heddle_trace", 0, INT32_MAX); version != 1)
            throw Error(
                ErrorCode::kVersionMismatch,
                fmt::format("{}:1: the trace has version {}, this heddle reads version 1", name_, version));
        Header& header = trace_.header;
        header.machine = text_field(object, "machine");
        header.start_ns = integer_field(object, "start_ns", 0, INT64_MAX);
        if (object.contains("wall_ns")) header.wall_ns = integer_field(object, "wall_ns", 0, INT64_MAX);
        const json& cpus = field(object, "cpus");
        if (!cpus.is_array()) throw Malformed{"\"cpus\" is not a list"};
        for (const json& place : cpus) {
            if (!place.is_array() || place.size() != 4)
                throw Malformed{"a member of \"cpus\" is not [cpu,core,package,numa]"};
            const auto index = [&](size_t i, int least) {
                return static_cast<int>(
                    integer(place[i], "an index in \"cpus\"", least, CpuSet::kMaxCpus - 1));
            };
            header.cpus.push_back({index(0, 0), index(1, -1), index(2, -1), index(3, -1)});
            if (cpus_.contains(header.cpus.back().cpu))
                throw Malformed{fmt::format("CPU {} is twice in \"cpus\"", header.cpus.back().cpu)};
            cpus_.insert(header.cpus.back().cpu);
        }
    }

    void parse_event() {
        const json object = parse_object(line_);
        Event event;
        event.at_ns = integer_field(object, "t", 0, kMaxTime_ns);
        const std::string kind = text_field(object, "e");
        if (kind == "cpu") {
            event.what = parse_cpu(object);
        } else if (kind == "want") {
            event.what = DemandChanged{client(object, "c"), integer_field(object, "n", 0, INT32_MAX)};
        } else if (kind == "wait") {
            event.what = WaitingChanged{client(object, "c"), integer_field(object, "n", 0, INT32_MAX)};
        } else if (kind == "join") {
            event.what = Joined{joining(object), integer_field(object, "pid", 0, INT32_MAX),
                                text_field(object, "name")};
        } else if (kind == "left") {
            event.what = Left{client(object, "c"), parse_departure(object)};
        } else if (kind == "mark") {
            const std::string text = text_field(object, "text");
            if (text == kDroppedMark && object.contains("n"))
                event.what = Dropped{integer_field(object, "n", 0, kMaxTime_ns)};
            else
                event.what = Mark{text};
        } else if (kind == "span") {
            event.what = parse_span(object, event.at_ns);
        } else {
            throw Malformed{"\"e\" is none of join, left, cpu, want, wait, mark, span"};
        }
        trace_.events.push_back(std::move(event));
    }

    CpuChanged parse_cpu(const json& object) {
        CpuChanged change;
        change.cpu = known_cpu(object);
        if (object.contains("c")) change.user = client(object, "c");
        if (object.contains("o")) change.owner = client(object, "o");
        if (object.contains("part")) change.component = text_field(object, "part");
        return change;
    }

    Span parse_span(const json& object, int64_t end_ns) {
        Span span{client(object, "c"), text_field(object, "lane"), text_field(object, "name"),
                  integer_field(object, "b", 0, end_ns)};
        if (object.contains("k")) {
            const std::string kind = text_field(object, "k");
            if (kind != "paused" && kind != "wait") throw Malformed{"\"k\" is none of paused, wait"};
            span.kind = kind == "wait" ? SpanKind::kWait : SpanKind::kPaused;
        }
        if (object.contains("task")) span.task = integer_field(object, "task", 0, INT64_MAX);
        if (object.contains("cpu")) span.cpu = known_cpu(object);
        return span;
    }

    int known_cpu(const json& object) const {
        const auto cpu = static_cast<int>(integer_field(object, "cpu", 0, CpuSet::kMaxCpus - 1));
        if (!cpus_.contains(cpu)) throw Malformed{fmt::format("CPU {} is not in the header's \"cpus\"", cpu)};
        return cpu;
    }

    static Departure parse_departure(const json& object) {
        const std::string how = text_field(object, "how");
        if (how == "exit") return Departure::kExit;
        if (how == "killed") return Departure::kKilled;
        if (how == "detached") return Departure::kDetached;
        throw Malformed{"\"how\" is none of exit, killed, detached"};
    }

    Client client(const json& object, const char* key) {
        const auto id = static_cast<uint32_t>(integer_field(object, key, 0, UINT32_MAX));
        clients_.try_emplace(id, false);
        if (clients_.size() > limits_.max_clients)
            throw Error(ErrorCode::kLimit,
                        fmt::format("{}:{}: a trace may have {} clients; record a shorter one", name_,
                                    number_, limits_.max_clients));
        return {id};
    }

    Client joining(const json& object) {
        const Client joined = client(object, "c");
        bool& before = clients_[joined.value];
        if (before) throw Malformed{fmt::format("client {} joins for the second time", joined.value)};
        before = true;
        return joined;
    }

    std::istream& in_;
    const std::string& name_;
    const ReadLimits& limits_;
    std::vector<char> buffer_;
    std::string_view line_;
    bool complete_ = true;
    size_t number_ = 0;
    CpuSet cpus_;
    std::unordered_map<uint32_t, bool> clients_;  // whether it has joined
    Trace trace_;
};

}  // namespace

Trace read(std::istream& in, const std::string& name, const ReadLimits& limits) {
    return Parser(in, name, limits).run();
}

Trace read_file(const std::string& path, const ReadLimits& limits) {
    std::ifstream in(path);
    if (!in)
        throw Error(ErrorCode::kSystem, fmt::format("{}: cannot read the trace: {}", path, strerror(errno)));
    return read(in, path, limits);
}

}  // namespace heddle::trace
