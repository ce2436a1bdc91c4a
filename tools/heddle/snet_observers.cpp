#include "snet_observers.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/standard_streams.hpp"
#include "heddle/error.hpp"
#include "streams/xml_reader.hpp"
#include "trace/escape.hpp"

namespace heddle::tool {
namespace {

using streams::Label;
using streams::LabelKind;
using streams::Record;

enum class Level { kLabels, kTagValues, kAllValues };

std::string value_of(const streams::Metadata& metadata, const std::string& key,
                     const std::string& otherwise) {
    const auto found = metadata.find(key);
    return found == metadata.end() || found->second.empty() ? otherwise : found->second;
}

[[noreturn]] void refuse(const std::string& position, const std::string& why) {
    throw Error(ErrorCode::kBadInput, fmt::format("the observer of {}: {}", position, why));
}

Level level_of(const std::string& position, const streams::Metadata& metadata) {
    const std::string level = value_of(metadata, "observer_data", "allvalues");
    if (level == "labels") return Level::kLabels;
    if (level == "tagvalues") return Level::kTagValues;
    if (level == "allvalues") return Level::kAllValues;
    refuse(position, fmt::format("observer_data is labels, tagvalues or allvalues, and not \"{}\"", level));
}

void append_record(std::string& text, const Record& record, Level level) {
    text += "<record type=\"data\" mode=\"textual\" >\n";
    for (const auto& [label, value] : record.fields()) {
        fmt::format_to(std::back_inserter(text), "<field label=\"{}\"", label.name());
        if (level != Level::kAllValues) {
            text += " />\n";
            continue;
        }
        text += " interface=\"";
        streams::append_escaped(text, value->interface());
        text += "\" >";
        const std::string content = value->text();
        if (streams::is_xml_text(content))
            streams::append_escaped(text, content);
        else
            text += trace::xml_text(content);
        text += "</field>\n";
    }
    for (const auto& [label, value] : record.tags()) {
        const char* const kind = label.kind() == LabelKind::kTag ? "tag" : "btag";
        fmt::format_to(std::back_inserter(text), "<{} label=\"{}\"", kind, label.name());
        if (level == Level::kLabels)
            text += " />\n";
        else
            fmt::format_to(std::back_inserter(text), " >{}</{}>\n", value, kind);
    }
    text += "</record>\n";
}

}  // namespace

streams::Observe SnetObservers::observe(const std::string& position, const streams::Metadata& metadata) {
    const std::string type = value_of(metadata, "observer_type", "both");
    if (type != "before" && type != "after" && type != "both")
        refuse(position, fmt::format("observer_type is before, after or both, and not \"{}\"", type));
    const Level level = level_of(position, metadata);
    const std::string port = value_of(metadata, "observer_port", "");
    const std::string name =
        port.empty() ? value_of(metadata, "observer_file", "")
                     : fmt::format("tcp:{}:{}", value_of(metadata, "observer_address", "127.0.0.1"), port);
    if (name.empty()) refuse(position, "it has neither an observer_file nor an observer_port");
    const bool interactive = metadata.contains("observer_interactive") && !port.empty();
    Place& place = place_of(name);
    const std::lock_guard guard(mutex_);
    const int number = ++numbers_;
    std::string before = fmt::format(
        "<?xml version=\"1.0\"?>\n<observer xmlns=\"snet-home.org\" oid=\"{}\" "
        "position=\"",
        number);
    streams::append_escaped(before, position);
    std::string code;
    if (const std::string given = value_of(metadata, "observer_code", ""); !given.empty()) {
        code = "code=\"";
        streams::append_escaped(code, given);
        code += "\" ";
    }
    return [=, this, &place, at_once = !port.empty()](const Record& record, bool is_before) {
        if (type != "both" && (type == "before") != is_before) return;
        std::string text =
            fmt::format("{}\" type=\"{}\" {}>\n", before, is_before ? "before" : "after", code);
        append_record(text, record, level);
        text += "</observer>\n";
        const std::lock_guard one(place.mutex);
        write(place, text, at_once);
        if (interactive) wait_for_answer(place, name, number);
    };
}

SnetObservers::Place& SnetObservers::place_of(const std::string& name) {
    const std::lock_guard one_at_a_time(opening_);
    {
        const std::lock_guard guard(mutex_);
        if (const auto known = places_.find(name); known != places_.end()) return *known->second;
    }
    auto place = std::make_unique<Place>(OpenFile::for_appending(name));  // which may take its time
    const std::lock_guard guard(mutex_);
    return *places_.emplace(name, std::move(place)).first->second;
}

void SnetObservers::write(Place& place, const std::string& text, bool at_once) {
    if (std::fwrite(text.data(), 1, text.size(), place.file.get()) != text.size() ||
        (at_once && std::fflush(place.file.get()) != 0))
        throw Error(ErrorCode::kSystem,
                    fmt::format("an observation cannot be written: {}", std::strerror(errno)));
}

void SnetObservers::stop_waiting() noexcept {
    stopped_ = true;
    const std::lock_guard guard(mutex_);
    for (const auto& [name, place] : places_) (void)::shutdown(::fileno(place->file.get()), SHUT_RD);
}

void SnetObservers::wait_for_answer(Place& place, const std::string& name, int number) const {
    const std::string wanted = fmt::format("oid=\"{}\"", number);
    while (true) {
        // <observer oid="3" />
        for (size_t end = 0; (end = place.heard.find('>')) != std::string::npos;) {
            const std::string answer = place.heard.substr(0, end + 1);
            place.heard.erase(0, end + 1);
            if (answer.find("<observer") == std::string::npos) continue;
            if (answer.find(wanted) != std::string::npos) return;
            to_stderr("heddle snet: warning: {} answers {}, and is asked for <observer {} />\n", name,
                      answer.substr(answer.find("<observer")), wanted);
        }
        char bytes[1024];
        const ssize_t got = stopped_ ? 0 : ::recv(::fileno(place.file.get()), bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            throw Error(
                ErrorCode::kSystem,
                fmt::format("the observer at {} that is to be waited for {}", name,
                            stopped_ ? "had not answered when the run was stopped" : "has gone away"));
        place.heard.append(bytes, static_cast<size_t>(got));
        if (place.heard.size() > (size_t{1} << 20))
            throw Error(ErrorCode::kBadInput,
                        fmt::format("what the observer at {} answers is no <observer oid=... />", name));
    }
}

void SnetObservers::flush() {
    const std::lock_guard guard(mutex_);
    for (const auto& [name, place] : places_) {
        const std::lock_guard one(place->mutex);
        if (std::fflush(place->file.get()) != 0)
            throw Error(ErrorCode::kSystem,
                        fmt::format("{} cannot be written: {}", name, std::strerror(errno)));
    }
}

}  // namespace heddle::tool
