// Records as text: XML, its binary form, JSON lines.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "heddle/error.hpp"
#include "streams/base64.hpp"
#include "streams/c4snet.hpp"
#include "streams/c4snet_binary.hpp"
#include "streams/c4snet_text.hpp"
#include "streams/record_streams.hpp"
#include "streams/xml_record_end.hpp"

namespace heddle::streams {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A file in memory.
File file_of(const std::string& text) {
    std::FILE* const file = std::tmpfile();
    std::fwrite(text.data(), 1, text.size(), file);
    std::rewind(file);
    return {file, &std::fclose};
}

std::vector<Record> records_of(std::FILE* file) {
    std::vector<Record> records;
    const auto reader = make_record_reader(std::make_unique<InputText>(file, "in"));
    while (auto record = reader->next()) records.push_back(std::move(*record));
    return records;
}
std::vector<Record> records_of(const std::string& text) {
    return records_of(file_of(text).get());
}

std::string written(const std::vector<Record>& records, RecordFormat format) {
    const File out = file_of("");
    const auto writer = make_record_writer(out.get(), format);
    for (const Record& record : records) writer->write(record);
    writer->terminate();
    std::rewind(out.get());
    std::string text(1 << 16, ' ');
    text.resize(std::fread(text.data(), 1, text.size(), out.get()));
    return text;
}

Label field(const char* name) {
    return {LabelKind::kField, name};
}

TEST(StreamsXmlTest, ReadsRecordsAndWritesThemAgain) {
    const std::vector<Record> records = records_of(
        "<?xml version='1.0'?>\n<!-- <record> -->\n<record type=\"data\" mode=\"textual\" interface='X'>"
        "<field label=\"a\">1 &lt; 2 &#65;<![CDATA[<&>]]></field><tag label='t'> -3 </tag>"
        "<btag label=\"b\">4</btag></record>\n<record type=\"terminate\" />\nnever read");
    ASSERT_EQ(records.size(), 1);
    EXPECT_EQ(records[0].field(field("a"))->text(), "1 < 2 A<&>");
    EXPECT_EQ(records[0].tag(Label(LabelKind::kTag, "t")), -3);
    EXPECT_EQ(records[0].tag(Label(LabelKind::kBindingTag, "b")), 4);
    for (const RecordFormat format :
         {RecordFormat::kXml, RecordFormat::kBinaryXml, RecordFormat::kJsonLines}) {
        const std::vector<Record> again = records_of(written(records, format));
        ASSERT_EQ(again.size(), 1);
        EXPECT_EQ(again[0].text(), records[0].text());
        EXPECT_EQ(again[0].fields()[0].second->text(), "1 < 2 A<&>");
        EXPECT_EQ(again[0].fields()[0].second->interface(), "X");
    }
}

/// Its text has what may end a record in each piece that comes. Slow where all that has come is looked at
/// again each time.
TEST(StreamsXmlTest, TheEndOfARecordIsFoundWhereItIs) {
    for (const std::string text :
         {"<record type='data'><tag label='t'>1</tag></record>", "<record type=\"terminate\" />",
          "<record a='/>' b=\"'>\"><field label='f'/>text</record \n>",
          "<record><!-- </record> <field --><field><![CDATA[</record>]]>]]</field><?p </record> ?></record>",
          "<record><records></records ></recor></record>"}) {
        XmlRecordEnd in_pieces, at_once;
        for (size_t size = 1; size < text.size(); ++size)
            EXPECT_FALSE(in_pieces.is_in(std::string_view(text).substr(0, size)))
                << text.substr(0, size) << " of " << text;
        EXPECT_TRUE(in_pieces.is_in(text)) << text;
        EXPECT_TRUE(at_once.is_in(text + "<!--")) << text;
    }
    XmlRecordEnd wrong;
    EXPECT_TRUE(wrong.is_in("<record><tag label='t>1</tag>")) << "a value has no '<', which the reader tells";
}

TEST(StreamsXmlTest, ALongFieldIsReadInPieces) {
    constexpr size_t kBytes = size_t{48} << 20;
    std::string value(kBytes, 'x');
    for (size_t at = 1000; at < kBytes; at += 1000) value[at - 1] = '/', value[at] = '>';
    const std::string text = "<record type=\"data\" mode=\"textual\"><field label=\"A\" interface=\"any\">" +
                             value +
                             "</field><tag label=\"n\">7</tag></record ><record type=\"terminate\" />";
    const std::vector<Record> records = records_of(text);
    ASSERT_EQ(records.size(), 1);
    EXPECT_EQ(records[0].field(field("A"))->text().size(), kBytes);
    EXPECT_EQ(records[0].tag(Label(LabelKind::kTag, "n")), 7);
}

/// What had been written of it before it failed is not written again.
TEST(StreamsRecordWriterTest, OneThatHasFailedWritesNoMore) {
    struct Half {
        std::string written;
        bool failed = false;
    } half;
    const cookie_io_functions_t functions{nullptr,
                                          [](void* cookie, const char* bytes, size_t size) -> ssize_t {
                                              auto& it = *static_cast<Half*>(cookie);
                                              if (it.failed || it.written.empty()) {
                                                  it.written.append(bytes, it.failed ? size : size / 2);
                                                  return static_cast<ssize_t>(it.failed ? size : size / 2);
                                              }
                                              it.failed = true;
                                              errno = EAGAIN;
                                              return 0;
                                          },
                                          nullptr, nullptr};
    const File file(::fopencookie(&half, "w", functions), &std::fclose);
    std::setvbuf(file.get(), nullptr, _IONBF, 0);
    const auto writer = make_record_writer(file.get(), RecordFormat::kJsonLines);
    writer->write(Record());
    EXPECT_THAT([&] { writer->flush(); }, ThrowsMessage<Error>(HasSubstr("cannot write records")));
    const std::string before = half.written;
    EXPECT_ANY_THROW(writer->flush());
    EXPECT_ANY_THROW(writer->write(Record()));
    EXPECT_ANY_THROW(writer->terminate());
    EXPECT_EQ(half.written, before);
}

TEST(StreamsXmlTest, ARecordEndsWhereItsTagSaysSo) {
    const std::vector<Record> records = records_of(
        "<record type=\"data\" mode='textual' note='a > b, \"/>' ><field label='a' interface='X'>it's "
        "<![CDATA[</record>]]><!-- </record> --><?x </record>?></field ></record >"
        "<record type='data'><tag label='t'>1</tag></record\n><record type='terminate' note='>'/>");
    ASSERT_EQ(records.size(), 2);
    EXPECT_EQ(records[0].field(field("a"))->text(), "it's </record>");
    EXPECT_EQ(records[1].tag(Label(LabelKind::kTag, "t")), 1);
}

TEST(StreamsXmlTest, TellsTheLineOfWhatIsNoRecord) {
    const std::pair<const char*, const char*> bad[] = {
        {"\n\nx", "in:3: this is no record"},
        {"<record type=\"data\">\n<tag label=\"t\">x</tag></record>", "in:2: \"x\" is no value"},
        {"<record type=\"data\">\n", "in:1: this record has no end"},
        {"<record type=\"data\">\n<tag>1</tag></record>", "in:2: this tag has no label"},
        {"<record type=\"data\">\n<tag label=\"a b\">1</tag></record>", "in:2: \"a b\" is no label"},
        {"<record type=\"data\"><field label=\"f\">1</field></record>", "data of \"\" have no binary form"},
        {"<record type=\"data\" interface=\"C4SNet\">\n\n<field label=\"f\">1</field></record>",
         "in:3: this is no binary data of C4SNet: it is too short"},
        {"<record type=\"data\" mode=\"x\"><field label=\"f\">1</field></record>", "mode=\"x\" is none"},
        {"<record type=\"data\"><tag label=\"t\">1</tag><tag label=\"t\">1</tag></record>", "comes twice"},
        {"<record type=\"sort\"></record>", "records of type \"sort\""},
        {"<record type=\"data\" mode=\"textual\"><field label=\"f\">&nothing;</field></record>",
         "&nothing; stands for nothing"},
        {"<record type=\"data\" mode=\"textual\" interface=\"X/base64\"><field "
         "label=\"f\">1</field></record>",
         "is no name"},
        {"<recor", "this record has no end"},
        {"<record type=\"data\"><tag label=\"t\">1</tag></records>", "</record> is missing"},
        {"<record type=\"data\">\n<field label=\"f\">it's < 2</field></record>", "in:2: a name is missing"},
        {"<record type=\"data></record>", "the value of type does not end"},
        {"<record type=\"data", "this record has no end"},
        {"<other>1</other>", "<other> is no record"},
        {"<!-- ", "\"-->\" is missing"},
        {"<record type=data></record>", "not in quotes"},
    };
    for (const auto& [text, message] : bad)
        EXPECT_THAT([&] { (void)records_of(text); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
}

TEST(StreamsXmlTest, BinaryDataAreThoseOfSNetsRunTimeSystem) {
    // (int)5, and (char[2])hi: kind, number of elements, type, elements.
    const std::vector<Record> records = records_of(
        "<record type=\"data\" interface=\"C4SNet\"><field label=\"a\"> AAQAAAA==FBQAAAA==\n"
        "</field><field label=\"b\">BAgAAAA==BaGk=</field></record>");
    ASSERT_EQ(records.size(), 1);
    EXPECT_EQ(records[0].field(field("a"))->text(), "(int)5");
    EXPECT_EQ(records[0].field(field("b"))->text(), "(char[2])h,i");
    EXPECT_THAT(written(records, RecordFormat::kBinaryXml),
                HasSubstr("mode=\"binary\" >\n<field label=\"a\" "
                          "interface=\"C4SNet\">AAQAAAA==FBQAAAA==<"));
}

TEST(StreamsJsonTest, ARecordHasNoMoreLabelsThanAreRead) {
    const auto line = [](int labels) {
        std::string text = "{\"a\": 1";
        for (int i = 1; i < labels; ++i) text += fmt::format(", \"<t{}>\": 1", i);
        return text + "}\n";
    };
    const std::vector<Record> records = records_of(line(4096));
    EXPECT_EQ(records.at(0).tags().size(), 4095);
    EXPECT_THAT(records[0].text(), testing::AllOf(testing::SizeIs(testing::Lt(1'100U)), HasSubstr(" more}")));
    EXPECT_THAT([&] { (void)records_of(line(4097)); },
                ThrowsMessage<Error>(HasSubstr("a record has more than 4096 labels")));
}

/// Its text would be no XML: it goes in binary form, and comes back as it was.
TEST(StreamsXmlTest, WhatXmlDoesNotHaveIsWrittenInBinaryForm) {
    const std::string json = "{\"a\": \"x\\u0001y\\u0000z\", \"b\": \"plain\"}\n";
    const std::vector<Record> records = records_of(json);
    const std::string xml = written(records, RecordFormat::kXml);
    EXPECT_THAT(xml, HasSubstr("mode=\"binary\""));
    EXPECT_EQ(xml.find('\x01'), std::string::npos);
    EXPECT_EQ(written(records_of(xml), RecordFormat::kJsonLines), json + "{\"terminate\": true}\n");
    EXPECT_THAT(written(records_of("{\"a\": \"x\\ry\"}\n"), RecordFormat::kXml), HasSubstr("x,&#13;,y"));
    for (const char* none : {"&#0;", "&#1;", "&#xD800;", "&#xFFFE;"})
        EXPECT_THAT(
            [&] {
                (void)records_of(
                    fmt::format("<record type=\"data\" mode=\"textual\"><field label=\"a\" "
                                "interface=\"C4SNet\">{}</field></record>",
                                none));
            },
            ThrowsMessage<Error>(HasSubstr("stands for nothing")));
}

TEST(StreamsJsonTest, WhatIsTooSmallForADoubleIsTheNearestOne) {
    EXPECT_EQ(records_of("{\"a\": [1e-400, -1e-400, 1e-320]}\n").at(0).field(field("a"))->text(),
              fmt::format("(double[3])0,-0,{}", 1e-320));
}

TEST(StreamsJsonTest, HasDataOfBoxesAsJsonHasThem) {
    const std::pair<const char*, const char*> all[] = {
        {"5", "(int)5"},
        {"-3000000000", "(long)-3000000000"},
        {"0.1", "(double)0.1"},
        {"2.0", "(double)2"},
        {"[1, 2]", "(int[2])1,2"},
        {"[1, 3000000000]", "(long[2])1,3000000000"},
        {"[1.5, 2.0]", "(double[2])1.5,2"},
        {"[]", "(int[0])"},
        {"\"hi\"", "(char[2])h,i"},
        {"\"\\u000a\\\"\\\\\"", "(char[3])\n,\",\\"},
        {"{\"C4SNet\": \"(float)1.5\"}", "(float)1.5"},
        {"{\"C4SNet\": \"(long)7\"}", "(long)7"},
        {"{\"C4SNet\": \"none of it\"}", "none of it"},
        {"{\"SAC4SNet\": \"[1]\"}", "[1]"},
    };
    for (const auto& [json, text] : all) {
        const std::string line = std::string("{\"a\": ") + json + "}\n";
        const std::vector<Record> records = records_of(line);
        ASSERT_EQ(records.size(), 1) << json;
        EXPECT_EQ(records[0].field(field("a"))->text(), text) << json;
        EXPECT_EQ(written(records, RecordFormat::kJsonLines), line + "{\"terminate\": true}\n");
    }
    EXPECT_EQ(records_of("{\"a\": \"\\u00e9\\ud83d\\ude00\"}")[0].field(field("a"))->text(),
              c4snet_text(CTYPE_char, 6, "\xc3\xa9\xf0\x9f\x98\x80"));
}

TEST(StreamsJsonTest, KeepsWhatIsNoUtf8) {
    Record record;
    record.set(field("a"), std::make_shared<C4Field>(C4SNetCreate(CTYPE_char, 2, "\xff\xfe")));
    const std::string text = written({record}, RecordFormat::kJsonLines);
    EXPECT_THAT(text, HasSubstr("{\"C4SNet/base64\": "));
    EXPECT_EQ(records_of(text)[0].field(field("a"))->text(), record.field(field("a"))->text());
}

TEST(StreamsJsonTest, HasTagsAndEnds) {
    const std::vector<Record> records =
        records_of("\n {\"<t>\":-3,\"<#b>\" : 4, \"a\":1 }\r\n\n{}\n{\"terminate\": true}\nnever read");
    ASSERT_EQ(records.size(), 2);
    EXPECT_EQ(records[0].text(), "{a, <t=-3>, <#b=4>}");
    EXPECT_EQ(records[1].text(), "{}");
    EXPECT_EQ(records_of("").size(), 0);
    EXPECT_EQ(records_of("{\"<t>\": 1}").size(), 1);  // no line's end
}

TEST(StreamsJsonTest, TellsTheLineOfWhatIsNoRecord) {
    const std::pair<const char*, const char*> bad[] = {
        {"{}\n[1]", "in:2: an object of labels is wanted"},
        {"{\"<t>\": 1.5}", "\"1.5\" is no value of a tag"},
        {"{\"<t>\": 2147483648}", "is no value of a tag"},
        {"{\"<t\": 1}", "\"<t\" is no label"},
        {"{\"a b\": 1}", "\"a b\" is no label"},
        {"{\"a\": 1, \"a\": 2}", "comes twice"},
        {"{\"a\": true}", "a field is a number"},
        {"{\"a\": null}", "a field is a number"},
        {"{\"a\": [1, \"x\"]}", "a number is wanted here"},
        {"{\"a\": 01}", "a number is wanted here"},
        {"{\"a\": 1e999}", "more than a double"},
        {"{\"a\": [1, -1e999]}", "more than a double"},
        {"{\"a\": 99999999999999999999}", "more than a long"},
        {"{\"a\": {\"C4 SNet\": \"1\"}}", "is no interface"},
        {"{\"a\": {\"C4SNet\": 1}}", "a text in quotes is wanted"},
        {"{\"a\": {\"C4SNet/base64\": \"A\"}}", "groups of four"},
        {"{\"a\": \"\\x\"}", "stands for nothing"},
        {"{\"a\": \"\\ud800\"}", "half of a pair"},
        {"{\"a\": \"\xff\"}", "JSON is UTF-8"},
        {"{\"a\": \"x}", "a text has no end"},
        {"{\"a\": 1", "a ',' or a '}' is wanted"},
        {"{\"a\": 1} x", "something follows it"},
        {"{\"a\": 1, \"terminate\": true}", "a line of its own"},
    };
    for (const auto& [text, message] : bad)
        EXPECT_THAT([&] { (void)records_of(text); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
}

TEST(StreamsBase64Test, FollowsRfc4648) {
    const std::pair<const char*, const char*> all[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"\xff\xfe", "//4="}};
    for (const auto& [bytes, text] : all) {
        EXPECT_EQ(base64_encoded(bytes), text);
        EXPECT_EQ(base64_decoded(text), bytes);
    }
    for (const char* bad : {"Zg=", "Zg==Zg==", "Z===", "Zg=a", "Z g=", "Zh==", "Zm9=", "===="})
        EXPECT_THROW((void)base64_decoded(bad), Error) << bad;
}

TEST(StreamsC4SNetTest, BinaryReadsBackAsTheSame) {
    for (const char* text :
         {"(int)-5", "(int[0])", "(char[5])h,<,&,,,o", "(unsigned char)x", "(float[2])0.1,1e+30",
          "(double)-2.5e-300", "(long double)1.5", "(unsigned long)18446744073709551615"}) {
        const C4Field data(read_c4snet_text(text));
        const C4Field again(read_c4snet_binary(c4snet_binary(
            C4SNetGetType(data.data()), C4SNetArraySize(data.data()), C4SNetGetData(data.data()))));
        EXPECT_EQ(again.text(), text);
    }
    for (const char* bad : {"", "A", "CAQAAAA==FBQAAAA==", "AAQAAAA==LBQAAAA==", "AAQAAAA==zBQAAAA==",
                            "B/////w==F", "BAgAAAA==FBQAAAA==", "AAQAAAA==F", "AAQAAAAAAFBQAAAA=="})
        EXPECT_THROW((void)read_c4snet_binary(bad), Error) << bad;
}

}  // namespace
}  // namespace heddle::streams
