#include "streams/xml_reader.hpp"

#include <fmt/format.h>

#include <charconv>

#include "heddle/error.hpp"
#include "streams/record_streams.hpp"

namespace heddle::streams {
namespace {

/// Of XML 1.0.
constexpr bool is_xml_character(uint32_t code) {
    if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
    return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF && code != 0xFFFE && code != 0xFFFF);
}

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
/// The beginning of what is no element, or its end: more of it is needed to know.
bool may_become_other_text(std::string_view rest) {
    for (const std::string_view mark : {"<![CDATA[", "<!--", "<?"})
        if (rest.size() < mark.size() && mark.starts_with(rest)) return true;
    return false;
}
bool ends_name(char c) {
    return is_blank(c) || c == '>' || c == '/' || c == '=' || c == '<';
}

}  // namespace

void XmlReader::fail(std::string_view message) {
    throw Error(ErrorCode::kBadInput, std::string(message));
}

void XmlReader::fail_here(std::string_view message) const {
    if (at_ == text_.size()) throw XmlCutOff(ErrorCode::kBadInput, std::string(message));
    fail(message);
}

size_t XmlReader::find(std::string_view what) const {
    const size_t found = text_.find(what, at_);
    if (found == std::string_view::npos)
        throw XmlCutOff(ErrorCode::kBadInput, fmt::format("\"{}\" is missing", what));
    return found;
}

void XmlReader::skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

std::string_view XmlReader::read_name() {
    const size_t begin = at_;
    while (at_ < text_.size() && !ends_name(text_[at_])) ++at_;
    if (at_ == begin) fail_here("a name is missing");
    return text_.substr(begin, at_ - begin);
}

XmlReader::Event XmlReader::next() {
    if (close_follows_) {
        close_follows_ = false;
        return Event::kClose;
    }
    content_.clear();
    while (at_ < text_.size()) {
        if (text_[at_] != '<') {
            const size_t end = std::min(text_.find('<', at_), text_.size());
            if (end == text_.size() && goes_on_) break;
            append_resolved(content_, text_.substr(at_, end - at_));
            at_ = end;
            continue;
        }
        const std::string_view rest = text_.substr(at_);
        if (goes_on_ && may_become_other_text(rest)) break;
        if (rest.starts_with("<![CDATA[")) {
            const size_t begin = at_ + 9, end = find("]]>");
            content_.append(text_.substr(begin, end - begin));
            at_ = end + 3;
        } else if (rest.starts_with("<!--")) {
            at_ = find("-->") + 3;
        } else if (rest.starts_with("<?")) {
            at_ = find("?>") + 2;
        } else if (!content_.empty()) {
            return Event::kText;
        } else if (rest.starts_with("</")) {
            at_ += 2;
            name_ = read_name();
            skip_blanks();
            if (at_ == text_.size() || text_[at_] != '>') fail_here(fmt::format("</{} has no '>'", name_));
            ++at_;
            return Event::kClose;
        } else {
            read_element();
            return Event::kOpen;
        }
    }
    if (goes_on_) throw XmlCutOff(ErrorCode::kBadInput, "the text ends here");
    return content_.empty() ? Event::kEnd : Event::kText;
}

void XmlReader::read_element() {
    ++at_;
    name_ = read_name();
    attribute_count_ = 0;
    read_attributes();
    close_follows_ = text_[at_] == '/';
    if (close_follows_) ++at_;
    if (at_ == text_.size() || text_[at_] != '>') fail_here(fmt::format("<{} has no '>'", name_));
    ++at_;
}

void XmlReader::read_attributes() {
    while (true) {
        skip_blanks();
        if (at_ == text_.size()) fail_here(fmt::format("<{} has no '>'", name_));
        if (text_[at_] == '>' || text_[at_] == '/') return;
        const std::string_view key = read_name();
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != '=')
            fail_here(fmt::format("the attribute {} has no value", key));
        ++at_;
        skip_blanks();
        const char quote = at_ < text_.size() ? text_[at_] : ' ';
        if (quote != '"' && quote != '\'') fail_here(fmt::format("the value of {} is not in quotes", key));
        ++at_;
        const char ends[] = {quote, '<'};
        const size_t end = text_.find_first_of(std::string_view(ends, 2), at_);
        if (end == std::string_view::npos || text_[end] == '<') {
            at_ = std::min(end, text_.size());
            fail_here(fmt::format(
                "the value of {} does not end: {} is missing, or a '<' is not written as &lt;", key, quote));
        }
        if (attribute_count_ == attributes_.size()) attributes_.emplace_back();
        auto& [name, value] = attributes_[attribute_count_++];
        name = key;
        value.clear();
        append_resolved(value, text_.substr(at_, end - at_));
        at_ = end + 1;
    }
}

std::string_view XmlReader::attribute(std::string_view name) const {
    for (size_t i = 0; i < attribute_count_; ++i)
        if (attributes_[i].first == name) return attributes_[i].second;
    return {};
}

void XmlReader::append_resolved(std::string& to, std::string_view raw) const {
    size_t from = 0;
    for (size_t amp = raw.find('&'); amp != std::string_view::npos; amp = raw.find('&', from)) {
        to.append(raw.substr(from, amp - from));
        const size_t end = raw.find(';', amp);
        if (end == std::string_view::npos) fail("an '&' has no ';': a plain one is written &amp;");
        const std::string_view entity = raw.substr(amp + 1, end - amp - 1);
        from = end + 1;
        if (entity == "lt") {
            to += '<';
        } else if (entity == "gt") {
            to += '>';
        } else if (entity == "amp") {
            to += '&';
        } else if (entity == "quot") {
            to += '"';
        } else if (entity == "apos") {
            to += '\'';
        } else {
            const bool hex = entity.starts_with("#x");
            const std::string_view digits = entity.substr(std::min(entity.size(), size_t{hex ? 2u : 1u}));
            uint32_t code = 0;
            const auto [last, error] =
                std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
            if (!entity.starts_with('#') || digits.empty() || error != std::errc() ||
                last != digits.data() + digits.size() || !is_xml_character(code))
                fail(fmt::format("&{}; stands for nothing", entity));
            append_utf8(to, code);
        }
    }
    to.append(raw.substr(from));
}

bool is_xml_text(std::string_view text) noexcept {
    return is_utf8(text) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return is_xml_character(static_cast<unsigned char>(c)); }) &&
           text.find("\xEF\xBF\xBE") == std::string_view::npos &&
           text.find("\xEF\xBF\xBF") == std::string_view::npos;
}

void append_escaped(std::string& to, std::string_view text) {
    for (const char c : text) switch (c) {
            case '<':
                to += "&lt;";
                break;
            case '>':
                to += "&gt;";
                break;
            case '&':
                to += "&amp;";
                break;
            case '"':
                to += "&quot;";
                break;
            case '\r':  // which readers take for the end of a line
                to += "&#13;";
                break;
            default:
                to += c;
        }
}

}  // namespace heddle::streams
