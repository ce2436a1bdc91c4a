#include "trace/escape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

using namespace heddle::trace;

TEST(TraceEscape, InvalidBytesAreReplacedAndTheRestIsKept) {
    EXPECT_EQ(valid_utf8("plain é 語 𝄞"), "plain é 語 𝄞");
    EXPECT_EQ(valid_utf8("a\xff"
                         "b"),
              "a�b");
    EXPECT_EQ(valid_utf8("\xc3("), "�(") << "a broken sequence does not swallow what follows";
    EXPECT_EQ(valid_utf8("\xc0\x80"), "��") << "too long a form of NUL";
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "���") << "half of a surrogate pair";
    EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "����") << "above U+10FFFF";
    EXPECT_EQ(valid_utf8("xé", 2), "x") << "cut between characters";
}

TEST(TraceEscape, PrintableTextCannotCommandATerminal) {
    EXPECT_EQ(printable("a\x1b[31m\n"), "a␛[31m␊");
    EXPECT_EQ(printable("\x7f"), "␡");
    EXPECT_EQ(printable("\xc2\x9b"), "�") << "the one-byte form of ESC [";
    EXPECT_EQ(printable("a\u202Eb"), "a�b") << "right-to-left override";
    EXPECT_EQ(printable("\uFFFF"), "�");
}

TEST(TraceEscape, EachFormatsSpecialCharacters) {
    EXPECT_EQ(json_string("a\"b\\c\n"), R"("a\"b\\c\u000a")");
    EXPECT_EQ(xml_text("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
    EXPECT_EQ(paje_string("say \"hi\"\n"), "\"say 'hi'␊\"");
    EXPECT_EQ(ascii_only("5 µs é"), "5 us ?");
}

TEST(TraceEscape, WidthsAreTerminalColumns) {
    EXPECT_EQ(columns_of("abc"), 3U);
    EXPECT_EQ(columns_of("日本"), 4U);
    EXPECT_EQ(columns_of("e\u0301"), 1U);
    EXPECT_EQ(shortened("abcdef", 6), "abcdef");
    EXPECT_EQ(shortened("abcdefg", 6), "abcde…");
    EXPECT_EQ(shortened("abcdefg", 6, true), "abcde~");
    EXPECT_EQ(shortened("日本語", 4), "日…");
    EXPECT_EQ(shortened("abc", 0), "");
}

RC_GTEST_PROP(TraceEscape, AnyBytesMakeParsableJson, (const std::string& bytes)) {
    const auto parsed = nlohmann::json::parse(json_string(bytes), nullptr, false);
    RC_ASSERT(parsed.is_string());
    RC_ASSERT(parsed.get<std::string>() == valid_utf8(bytes));
}

RC_GTEST_PROP(TraceEscape, AnyBytesMakeHarmlessMarkup, (const std::string& bytes)) {
    for (const char c : xml_text(bytes))
        RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != '<' && c != '"');
    RC_ASSERT(valid_utf8(printable(bytes)) == printable(bytes));
    RC_ASSERT(paje_string(bytes).find_first_of("\"\n", 1) == paje_string(bytes).size() - 1);
}
