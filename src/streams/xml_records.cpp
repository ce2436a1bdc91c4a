#include "streams/xml_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "heddle/error.hpp"
#include "streams/c4snet.hpp"
#include "streams/c4snet_binary.hpp"
#include "streams/c4snet_text.hpp"
#include "streams/xml_reader.hpp"
#include "streams/xml_record_end.hpp"

namespace heddle::streams {
namespace {

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

[[noreturn]] void refuse(const std::string& why) {
    throw Error(ErrorCode::kBadInput, why);
}

int tag_of(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const size_t end = text.find_last_not_of(" \t\r\n") + 1;
    int value = 0;
    const char* const last = text.data() + std::max(begin, end);
    const auto [stop, error] = std::from_chars(text.data() + begin, last, value);
    if (error != std::errc() || stop != last)
        refuse(fmt::format("\"{}\" is no value of a tag: it is an int", text));
    return value;
}

/// A field as it is written: "A<base64>" without the blanks around it, or all of the text.
Field field_of(std::string_view mode, std::string_view interface, std::string text) {
    if (!interface.empty() && !is_label_name(interface))
        refuse(fmt::format("interface=\"{}\" is no name: letters, digits and '_'", interface));
    if (mode == "textual") return std::make_shared<TextField>(std::string(interface), std::move(text));
    if (!mode.empty() && mode != "binary")
        refuse(fmt::format("mode=\"{}\" is none of a record: \"textual\" or \"binary\"", mode));
    if (interface != kC4SNet)
        refuse(
            fmt::format("data of \"{}\" have no binary form here: mode=\"textual\" and "
                        "interface=\"C4SNet\" are the ones that are wanted",
                        interface));
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const size_t end = text.find_last_not_of(" \t\r\n") + 1;
    return std::make_shared<C4Field>(
        read_c4snet_binary(std::string_view(text).substr(begin, std::max(begin, end) - begin)));
}

/// Nothing: it is the one that ends the stream.
std::optional<Record> read_record(XmlReader& reader) {
    using Event = XmlReader::Event;
    if (reader.next() != Event::kOpen || reader.name() != "record")
        refuse(fmt::format("<{}> is no record", reader.name()));
    const std::string type(reader.attribute("type")), mode(reader.attribute("mode"));
    const std::string language(reader.attribute("interface"));
    if (type == "terminate") return {};
    if (type != "data")
        refuse(fmt::format("records of type \"{}\" are none to send: \"data\" or \"terminate\"", type));
    Record record;
    for (Event event = reader.next(); event != Event::kClose; event = reader.next()) {
        if (event == Event::kText) {
            if (!is_blank(reader.content())) refuse("text outside of a field or tag");
            continue;
        }
        const std::string what(reader.name()), own(reader.attribute("interface"));
        const std::string_view label = reader.attribute("label");
        const LabelKind kind = what == "field" ? LabelKind::kField
                               : what == "tag" ? LabelKind::kTag
                                               : LabelKind::kBindingTag;
        if (kind == LabelKind::kBindingTag && what != "btag")
            refuse(fmt::format("<{}> is no part of a record", what));
        if (label.empty()) refuse(fmt::format("this {} has no label", what));
        if (!is_label_name(label))
            refuse(fmt::format("\"{}\" is no label: those are letters, digits and '_'", label));
        check_room_for_label(record);
        const Label named(kind, label);
        if (record.has(named)) refuse(fmt::format("the label {} comes twice", named.text()));
        std::string text;
        for (event = reader.next(); event == Event::kText; event = reader.next()) text += reader.content();
        if (event != Event::kClose || reader.name() != what) refuse(fmt::format("</{}> is missing", what));
        if (kind == LabelKind::kField)
            record.set(named, field_of(mode, own.empty() ? language : own, std::move(text)));
        else
            record.set(named, tag_of(text));
    }
    if (reader.name() != "record") refuse("</record> is missing");
    return record;
}

/// Of a field that has a binary form; else nothing.
std::optional<std::string> binary_of(const Field& field) {
    if (field->interface() != kC4SNet) return {};
    try {
        const C4Field data(data_of(field));
        if (C4SNetGetType(data.data()) == CTYPE_pointer) return {};
        return c4snet_binary(C4SNetGetType(data.data()), C4SNetArraySize(data.data()),
                             C4SNetGetData(data.data()));
    } catch (const Error&) {  // its text is none of C4SNet, or too long
        return {};
    }
}

struct Contents {
    std::vector<std::string> of_fields;
    bool are_binary = false;
};

/// Nothing where one of them has no binary form.
std::optional<Contents> binary_contents(const Record& record) {
    Contents contents{{}, true};
    for (const auto& [label, value] : record.fields()) {
        std::optional<std::string> one = binary_of(value);
        if (!one) return {};
        contents.of_fields.push_back(std::move(*one));
    }
    return contents;
}

/// All in binary form, where that is wanted, or XML has not all of their text; as far as they have one.
/// Throws kBadInput for what can be written in neither way.
Contents contents_of(const Record& record, bool prefers_binary) {
    if (prefers_binary)
        if (std::optional<Contents> binary = binary_contents(record)) return std::move(*binary);
    Contents text;
    const std::string* unwritable = nullptr;
    for (const auto& [label, value] : record.fields()) {
        text.of_fields.push_back(value->text());
        if (!is_xml_text(text.of_fields.back())) unwritable = &label.name();
    }
    if (unwritable == nullptr) return text;
    if (std::optional<Contents> binary = binary_contents(record)) return std::move(*binary);
    refuse(
        fmt::format("the field {} has a character that XML does not have, and not all fields of its record "
                    "have a binary form: write JSON lines",
                    *unwritable));
}

}  // namespace

size_t XmlRecordReader::find(std::string_view what, size_t from, const char* missing) {
    size_t found = 0;
    while ((found = input_->rest().find(what, from)) == std::string_view::npos) {
        const size_t size = input_->rest().size();
        from = std::max(from, size - std::min(size, what.size() - 1));
        if (!input_->fill()) input_->fail(0, missing);
    }
    return found;
}

bool XmlRecordReader::find_element() {
    while (true) {
        const std::string_view rest = input_->rest();
        const size_t mark = std::min(rest.find('<'), rest.size());
        if (!is_blank(rest.substr(0, mark)))
            input_->fail(rest.find_first_not_of(" \t\r\n"), "this is no record");
        input_->pass(mark);
        if (input_->rest().size() < 8 && input_->fill()) continue;
        const std::string_view element = input_->rest();
        if (element.empty()) return false;
        const bool comment = element.starts_with("<!--");
        if (!comment && !element.starts_with("<?")) return true;
        input_->pass(comment ? find("-->", 4, "\"-->\" is missing") + 3
                             : find("?>", 2, "\"?>\" is missing") + 2);
    }
}

std::optional<Record> XmlRecordReader::next() {
    if (!find_element()) return {};
    XmlRecordEnd end;
    for (bool ended = false;;) {
        XmlReader reader(input_->rest(), /*goes_on=*/true);
        try {
            std::optional<Record> record = read_record(reader);
            input_->pass(reader.offset());
            if (!record) input_->end();
            return record;
        } catch (const XmlCutOff&) {
            if (ended) input_->fail(0, "this record has no end: </record> is missing");
        } catch (const Error& error) {
            input_->fail(reader.offset(), error.what());
        }
        // Once more when it may have come whole.
        while (!end.is_in(input_->rest()) && !ended) ended = !input_->fill();
    }
}

void XmlRecordWriter::append(std::string& text, const Record& record) {
    if (!begun_) text += "<?xml version=\"1.0\" ?>\n";
    begun_ = true;
    const Contents contents = contents_of(record, binary_);
    text += "<record xmlns=\"snet-home.org\" type=\"data\" mode=\"";
    text += contents.are_binary ? "binary\" >\n" : "textual\" >\n";
    size_t field = 0;
    for (const auto& [label, value] : record.fields()) {
        text += "<field label=\"";
        text += label.name();
        text += "\" interface=\"";
        append_escaped(text, value->interface());
        text += "\">";
        const std::string& content = contents.of_fields[field++];
        contents.are_binary ? (void)(text += content) : append_escaped(text, content);
        text += "</field>\n";
    }
    for (const auto& [label, value] : record.tags()) {
        const char* const kind = label.kind() == LabelKind::kTag ? "tag" : "btag";
        fmt::format_to(std::back_inserter(text), "<{} label=\"{}\">{}</{}>\n", kind, label.name(), value,
                       kind);
    }
    text += "</record>\n";
}

void XmlRecordWriter::append_end(std::string& text) {
    if (!begun_) text += "<?xml version=\"1.0\" ?>\n";
    begun_ = true;
    text += "<record xmlns=\"snet-home.org\" type=\"terminate\" />\n";
}

}  // namespace heddle::streams
