#include "streams/json_records.hpp"

#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdlib>

#include "heddle/error.hpp"
#include "streams/base64.hpp"
#include "streams/c4snet.hpp"
#include "streams/c4snet_text.hpp"

namespace heddle::streams {
namespace {

constexpr std::string_view kBase64 = "/base64";

[[noreturn]] void refuse(std::string why) {
    throw Error(ErrorCode::kBadInput, std::move(why));
}

/// One line. Knows at() where it refuses.
class LineParser {
  public:
    explicit LineParser(std::string_view text) : text_(text) {}
    [[nodiscard]] size_t at() const { return at_; }

    /// Nothing: it ends the stream.
    std::optional<Record> record() {
        Record record;
        bool ends = false;
        expect('{', "an object of labels is wanted: {\"a\": 1, \"<t>\": 2}");
        if (!skip('}')) {
            do ends |= member(record);
            while (skip(','));
            expect('}', "a ',' or a '}' is wanted here");
        }
        blanks();
        if (at_ != text_.size()) refuse("a record ends with its line, and something follows it");
        if (ends && !(record.fields().empty() && record.tags().empty()))
            refuse("{\"terminate\": true} is a line of its own");
        if (ends) return {};
        return record;
    }

  private:
    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    }
    bool at(char c) {
        blanks();
        return at_ < text_.size() && text_[at_] == c;
    }
    bool skip(char c) {
        if (!at(c)) return false;
        ++at_;
        return true;
    }
    void expect(char c, const char* why) {
        if (!skip(c)) refuse(why);
    }

    /// True: it says that the stream ends.
    bool member(Record& record) {
        const std::string name = string();
        expect(':', "a ':' is wanted here");
        blanks();
        if (name == "terminate" && text_.substr(at_).starts_with("true")) {
            at_ += 4;
            return true;
        }
        check_room_for_label(record);
        const Label label = label_of(name);
        if (record.has(label)) refuse(fmt::format("the label {} comes twice", label.text()));
        if (label.kind() == LabelKind::kField) {
            record.set(label, value());
            return false;
        }
        const std::string_view digits = number();
        int64_t tag = 0;
        if (!whole(digits, tag) || tag < INT_MIN || tag > INT_MAX)
            refuse(fmt::format("\"{}\" is no value of a tag: it is an int", digits));
        record.set(label, static_cast<int>(tag));
        return false;
    }

    static Label label_of(std::string_view name) {
        LabelKind kind = LabelKind::kField;
        std::string_view inner = name;
        if (name.size() > 2 && name.front() == '<' && name.back() == '>') {
            kind = name[1] == '#' ? LabelKind::kBindingTag : LabelKind::kTag;
            inner = name.substr(kind == LabelKind::kTag ? 1 : 2);
            inner.remove_suffix(1);
        }
        if (!is_label_name(inner))
            refuse(fmt::format("\"{}\" is no label: \"field\", \"<tag>\" or \"<#binding>\"", name));
        return {kind, inner};
    }

    std::string string() {
        expect('"', "a text in quotes is wanted here");
        std::string made;
        while (true) {
            const size_t end = text_.find_first_of("\"\\", at_);
            if (end == std::string_view::npos) refuse("a text has no end: '\"' is missing");
            const std::string_view plain = text_.substr(at_, end - at_);
            if (std::any_of(plain.begin(), plain.end(), [](char c) { return c >= 0 && c < ' '; }))
                refuse("control characters are written as in \\u000a");
            made += plain;
            at_ = end + 1;
            if (text_[end] == '"') break;
            escape(made);
        }
        if (!is_utf8(made)) refuse("JSON is UTF-8, and this text is not");
        return made;
    }

    void escape(std::string& to) {
        const char c = at_ < text_.size() ? text_[at_++] : ' ';
        constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
        if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
            to += kMeant[known];
            return;
        }
        if (c != 'u') refuse(fmt::format("'\\{}' stands for nothing", c));
        uint32_t code = hexadecimal();
        if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
            at_ += 2;
            const uint32_t low = hexadecimal();
            if (low < 0xDC00 || low > 0xDFFF) refuse("half of a pair of \\u is missing");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        if (code >= 0xD800 && code < 0xE000) refuse("half of a pair of \\u is missing");
        append_utf8(to, code);
    }
    uint32_t hexadecimal() {
        uint32_t code = 0;
        const std::string_view digits = text_.substr(at_, 4);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (error != std::errc() || end != digits.data() + 4) refuse("four hexadecimal digits follow \\u");
        at_ += 4;
        return code;
    }

    /// As JSON writes numbers.
    std::string_view number() {
        blanks();
        const size_t begin = at_;
        const auto digits = [&] {
            const size_t first = at_;
            while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
            return at_ > first;
        };
        const auto one_of = [&](std::string_view set) {
            const bool is = at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos;
            if (is) ++at_;
            return is;
        };
        (void)one_of("-");
        const bool zero = at_ < text_.size() && text_[at_] == '0';
        const size_t first = at_;
        bool good = digits() && !(zero && at_ > first + 1);
        if (one_of(".")) good &= digits();
        if (one_of("eE")) {
            (void)one_of("+-");
            good &= digits();
        }
        if (!good) refuse("a number is wanted here");
        return text_.substr(begin, at_ - begin);
    }
    static bool whole(std::string_view digits, int64_t& value) {
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc() && end == digits.data() + digits.size();
    }

    Field value() {
        blanks();
        const char first = at_ < text_.size() ? text_[at_] : ' ';
        if (first == '{') return of_interface();
        if (first == '"') {
            const std::string text = string();
            return data(CTYPE_char, text.size(), text.data());
        }
        std::vector<std::string_view> numbers;
        if (skip('[')) {
            if (!skip(']')) {
                do numbers.push_back(number());
                while (skip(','));
                expect(']', "a ',' or a ']' is wanted here");
            }
        } else if (first == '-' || (first >= '0' && first <= '9')) {
            numbers.push_back(number());
        } else {
            refuse("a field is a number, a text, an array of numbers, or {\"C4SNet\": \"(float)1.5\"}");
        }
        return of_numbers(numbers);
    }

    /// What is too small for a double is 0 or the least that there is.
    double nearest(std::string_view number) {
        double value = 0;
        if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc())
            return value;
        static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
        value = ::strtod_l(std::string(number).c_str(), nullptr, plain);
        if (std::isinf(value)) refuse(fmt::format("{} is more than a double can hold", number));
        return value;
    }

    Field of_numbers(const std::vector<std::string_view>& numbers) {
        const bool decimal = std::any_of(numbers.begin(), numbers.end(), [](std::string_view n) {
            return n.find_first_of(".eE") != std::string_view::npos;
        });
        if (decimal) {
            std::vector<double> values(numbers.size());
            for (size_t i = 0; i < values.size(); ++i) values[i] = nearest(numbers[i]);
            return data(CTYPE_double, values.size(), values.data());
        }
        std::vector<long> values(numbers.size());
        std::vector<int> ints;
        for (size_t i = 0; i < values.size(); ++i) {
            int64_t value = 0;
            if (!whole(numbers[i], value))
                refuse(
                    fmt::format("{} is more than a long can hold: {{\"C4SNet\": \"(unsigned long)...\"}}, "
                                "or a point behind it",
                                numbers[i]));
            values[i] = value;
            if (value >= INT_MIN && value <= INT_MAX) ints.push_back(static_cast<int>(value));
        }
        if (ints.size() == values.size()) return data(CTYPE_int, ints.size(), ints.data());
        return data(CTYPE_long, values.size(), values.data());
    }
    static Field data(c4snet_type_t type, size_t size, const void* elements) {
        c4snet_data_t* const made = C4SNetCreate(type, size, elements);
        if (made == nullptr) throw std::bad_alloc();
        return std::make_shared<C4Field>(made);
    }

    Field of_interface() {
        expect('{', "");
        std::string interface = string();
        expect(':', "a ':' is wanted here");
        std::string text = string();
        expect('}', "a '}' is wanted here: an interface and its text are all of a field");
        if (interface.ends_with(kBase64)) {
            interface.resize(interface.size() - kBase64.size());
            text = base64_decoded(text);
        }
        if (!interface.empty() && !is_label_name(interface))
            refuse(fmt::format("\"{}\" is no interface: letters, digits and '_'", interface));
        return std::make_shared<TextField>(std::move(interface), std::move(text));
    }

    std::string_view text_;
    size_t at_ = 0;
};

void append_string(std::string& to, std::string_view text) {
    to += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') to += '\\';
        if (c >= 0 && c < ' ')
            fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<int>(c));
        else
            to += c;
    }
    to += '"';
}

/// Whether JSON has something that reads back as the same; then it is appended.
bool append_plain(std::string& to, const c4snet_data_t* data) {
    auto* const d = const_cast<c4snet_data_t*>(data);  // C4SNet.h knows no const
    const size_t size = C4SNetArraySize(d);
    const void* const elements = C4SNetGetData(d);
    const auto append_all = [&](const auto* values, auto&& append) {
        if (size != 1) to += '[';
        for (size_t i = 0; i < size; ++i) {
            if (i > 0) to += ", ";
            append(values[i]);
        }
        if (size != 1) to += ']';
        return true;
    };
    switch (C4SNetGetType(d)) {
        case CTYPE_char: {
            const std::string_view text(static_cast<const char*>(elements), size);
            if (is_utf8(text)) append_string(to, text);
            return is_utf8(text);
        }
        case CTYPE_int:
            return append_all(static_cast<const int*>(elements),
                              [&](int v) { fmt::format_to(std::back_inserter(to), "{}", v); });
        case CTYPE_long: {
            const auto* const values = static_cast<const long*>(elements);
            const auto is_long = [](long v) { return v < INT_MIN || v > INT_MAX; };
            return std::any_of(values, values + size, is_long) &&
                   append_all(values, [&](long v) { fmt::format_to(std::back_inserter(to), "{}", v); });
        }
        case CTYPE_double: {
            const auto* const values = static_cast<const double*>(elements);
            if (size == 0 || !std::all_of(values, values + size, [](double v) { return std::isfinite(v); }))
                return false;
            return append_all(values, [&](double v) {
                const std::string text = fmt::format("{}", v);
                to += text;
                if (text.find_first_of(".e") == std::string::npos) to += ".0";
            });
        }
        default:
            return false;
    }
}

void append_field(std::string& to, const Field& field) {
    std::optional<std::string> text;
    if (field->interface() == kC4SNet) {
        Field read = field;
        if (dynamic_cast<const C4Field*>(field.get()) == nullptr) try {
                read = std::make_shared<C4Field>(read_c4snet_text(field->text()));
            } catch (const Error&) {  // told as the text that it is
                read = nullptr;
            }
        if (read != nullptr && append_plain(to, static_cast<const C4Field&>(*read).data())) return;
    }
    const std::string whole = field->text();
    const bool plain = is_utf8(whole);
    to += '{';
    append_string(to, fmt::format("{}{}", field->interface(), plain ? "" : kBase64));
    to += ": ";
    append_string(to, plain ? whole : base64_encoded(whole));
    to += '}';
}

}  // namespace

std::optional<Record> JsonRecordReader::next() {
    while (true) {
        size_t searched = 0, end = 0;
        while ((end = input_->rest().find('\n', searched)) == std::string_view::npos) {
            searched = input_->rest().size();
            if (!input_->fill()) break;
        }
        if (end == std::string_view::npos && input_->rest().empty()) return {};
        const std::string_view line = input_->rest().substr(0, end);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
            input_->pass(line.size() + 1);
            continue;
        }
        LineParser parser(line);
        std::optional<Record> record;
        try {
            record = parser.record();
        } catch (const Error& error) {
            input_->fail(0, fmt::format("{} (column {})", error.what(), parser.at() + 1));
        }
        input_->pass(line.size() + 1);
        if (!record) input_->end();
        return record;
    }
}

void JsonRecordWriter::append(std::string& text, const Record& record) {
    text += '{';
    bool first = true;
    const auto name = [&](Label label) {
        if (!first) text += ", ";
        first = false;
        append_string(text, label.text());
        text += ": ";
    };
    for (const auto& [label, value] : record.fields()) {
        name(label);
        append_field(text, value);
    }
    for (const auto& [label, value] : record.tags()) {
        name(label);
        fmt::format_to(std::back_inserter(text), "{}", value);
    }
    text += "}\n";
}

}  // namespace heddle::streams
