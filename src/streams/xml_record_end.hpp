// XmlRecordEnd: finds where a <record> ends that comes in pieces, without reading it: each byte is looked at
// once, also in a comment that is full of </record>. One that is wrong may seem to end earlier: a reader
// tells.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace heddle::streams {

class XmlRecordEnd {
  public:
    /// `text` begins with the record, and is the one before with more behind it. Once it was true it says
    /// whether what looks like another end follows.
    bool is_in(std::string_view text) {
        while (at_ < text.size()) switch (inside_) {
                case Inside::kText:
                    if (!enter(text)) return false;
                    break;
                case Inside::kTag:
                    if (pass_tag(text)) return true;
                    break;
                case Inside::kValue:
                    if (pass_value(text)) return true;
                    break;
                case Inside::kOther:
                    if (const size_t end = text.find(other_end_, at_); end != std::string_view::npos)
                        go_on(end + other_end_.size(), Inside::kText);
                    else
                        return stop(text, other_end_.size() - 1);
                    break;
            }
        return false;
    }

  private:
    enum class Inside { kText, kTag, kValue, kOther };
    struct Other {
        std::string_view begin, end;
    };
    static constexpr std::array<Other, 3> kOthers{{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}}};
    static constexpr std::string_view kClose = "</record", kEndsName = "> \t\r\n";

    void go_on(size_t at, Inside inside) {
        at_ = at;
        inside_ = inside;
    }
    /// So many of the last bytes are looked at once more, with what follows.
    bool stop(std::string_view text, size_t again) {
        if (text.size() - at_ > again) at_ = text.size() - again;
        return false;
    }
    /// What begins with the next '<'. False: more of it is needed to know.
    bool enter(std::string_view text) {
        at_ = std::min(text.find('<', at_), text.size());
        const std::string_view rest = text.substr(at_);
        for (const Other& other : kOthers) {
            if (other.begin.starts_with(rest) && rest.size() < other.begin.size()) return false;
            if (!rest.starts_with(other.begin)) continue;
            other_end_ = other.end;
            go_on(at_ + other.begin.size(), Inside::kOther);
            return true;
        }
        if (kClose.starts_with(rest)) return false;
        closes_ = rest.starts_with(kClose) && kEndsName.find(rest[kClose.size()]) != std::string_view::npos;
        go_on(at_ + 1, Inside::kTag);
        return true;
    }
    bool pass_tag(std::string_view text) {
        const size_t at = text.find_first_of("\"'>", at_);
        if (at == std::string_view::npos) return stop(text, 0);
        if (text[at] != '>') {
            quote_ = text[at];
            go_on(at + 1, Inside::kValue);
            return false;
        }
        const bool has_no_content = is_first_ && text[at - 1] == '/';
        is_first_ = false;
        go_on(at + 1, Inside::kText);
        return closes_ || has_no_content;
    }
    /// True where it is none that XML knows: no '<' is in a value.
    bool pass_value(std::string_view text) {
        const char ends[] = {quote_, '<'};
        const size_t at = text.find_first_of(std::string_view(ends, 2), at_);
        if (at == std::string_view::npos) return stop(text, 0);
        const bool is_wrong = text[at] == '<';
        go_on(is_wrong ? at : at + 1, is_wrong ? Inside::kText : Inside::kTag);
        return is_wrong;
    }

    size_t at_ = 0;
    Inside inside_ = Inside::kText;
    std::string_view other_end_;
    char quote_ = 0;
    bool closes_ = false;
    bool is_first_ = true;
};

}  // namespace heddle::streams
