// The language: expressions, places, types, what is wrong with programs, data of C boxes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>

#include "streams/c4snet.hpp"
#include "streams/c4snet_text.hpp"
#include "streams/checker.hpp"
#include "streams/parser.hpp"
#include "streams/typing.hpp"

namespace heddle::streams {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::ThrowsMessage;

/// Of an expression over <a> = 7 and <b> = 2.
int value_of(const std::string& expression) {
    const auto program = parse(Source("test", "net n connect [{<a>, <b>} -> {<r = " + expression + ">}];"));
    Record record;
    record.set(Label(LabelKind::kTag, "a"), 7);
    record.set(Label(LabelKind::kTag, "b"), 2);
    const Topology& filter = *program->main().body;
    return evaluate(*filter.actions[0].outputs[0][0].value, tags_of(record));
}

TEST(StreamsExpressionTest, FollowsCsPrecedence) {
    EXPECT_EQ(value_of("2 + 3 * 4"), 14);
    EXPECT_EQ(value_of("a - b - 1"), 4);
    EXPECT_EQ(value_of("100 / b / 2"), 25);
    EXPECT_EQ(value_of("(0 - a) / b"), -3);
    EXPECT_EQ(value_of("(0 - a) % b"), -1);
    EXPECT_EQ(value_of("a > b ? 1 : 2"), 1);
    EXPECT_EQ(value_of("a >= 7 && b < 2 || a == 7 ? abs -3 : 0"), 3);
    EXPECT_EQ(value_of("!(a == b) ? a min b : a max b"), 2);
    EXPECT_EQ(value_of("0x10 + 010"), 24);
    EXPECT_EQ(value_of("a == 7 ? b == 2 ? 1 : 2 : 3"), 1);
    EXPECT_EQ(value_of("-2147483648"), INT32_MIN);
    EXPECT_EQ(value_of("- 0x80000000 + a - -010"), INT32_MIN + 15);
}

TEST(StreamsParserTest, CharactersThatMeanNothingAreNamed) {
    const auto told = [](const std::string& text, const std::string& what) {
        const std::string caret = "\n" + std::string(21, ' ') + "^";
        EXPECT_THAT([&] { (void)parse(Source("test", "net n connect [] " + text)); },
                    ThrowsMessage<Error>(
                        testing::AllOf(HasSubstr(what + " means nothing in S-Net"), HasSubstr(caret))));
    };
    told(std::string("\0;", 2), "the character with the number 0");
    told("\xc3\xa9;", "the character '\xc3\xa9'");
    told("\xe9;", "the character with the number 233");
    told("$;", "the character '$'");
}

TEST(StreamsParserTest, NamesThatCannotBeTwiceAreTold) {
    const auto parsed = [](const std::string& text) { return [text] { (void)parse(Source("test", text)); }; };
    EXPECT_THAT(parsed("box f ((a, <b>, a) -> (c)); net n connect f;"),
                ThrowsMessage<Error>(HasSubstr("named twice")));
    EXPECT_THAT(parsed("box f ((a) -> (c, c)); net n connect f;"),
                ThrowsMessage<Error>(HasSubstr("named twice")));
    EXPECT_NO_THROW(parsed("box f ((a, <a>, <#a>) -> (c)); net n connect f;")());
    EXPECT_THAT(parsed("net n connect [{<a>} -> {<a = 1>, <a = 2>}];"),
                ThrowsMessage<Error>(StartsWith("test:1:35: <a> is named twice")));
    EXPECT_NO_THROW(parsed("net n connect [{a, <a>} -> {a, <a>}];")());
    // One function for two boxes that call it differently.
    EXPECT_THAT(
        parsed("box f ((x) -> (y)); net in { box f ((<t>) -> (y)); } connect f; net n connect f | in;"),
        ThrowsMessage<Error>(HasSubstr("test:1:")));
    EXPECT_NO_THROW(
        parsed("box f ((x) -> (y)); net in { box f ((x) -> (y)); } connect f; net n connect f | in;")());
}

TEST(StreamsExpressionTest, WhatIsNoIntIsTold) {
    EXPECT_THAT([] { (void)value_of("2147483647 + 1"); }, ThrowsMessage<Error>(HasSubstr("2147483648")));
    EXPECT_THAT([] { (void)value_of("a / (b - 2)"); }, ThrowsMessage<Error>(HasSubstr("7 divided by zero")));
    EXPECT_THAT([] { (void)value_of("2147483648"); }, ThrowsMessage<Error>(HasSubstr("larger than a tag")));
    EXPECT_THAT([] { (void)value_of("-2147483649"); }, ThrowsMessage<Error>(HasSubstr("smaller than a tag")));
    EXPECT_THAT([] { (void)value_of("019"); }, ThrowsMessage<Error>(HasSubstr("octal")));
    EXPECT_THAT([] { (void)value_of(std::string(500, '(')); }, ThrowsMessage<Error>(HasSubstr("too deeply")));
}

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

/// Also where they nest to the left, without parentheses.
TEST(StreamsExpressionTest, LongOnesAreTold) {
    for (const char* more : {" + 1", " - (2 min 1)", " max 3"})
        EXPECT_THAT([&] { (void)value_of("a" + repeated(more, 200'000)); },
                    ThrowsMessage<Error>(HasSubstr("too deeply, or too long")))
            << more;
    EXPECT_EQ(value_of("a" + repeated(" + 1", 150)), 157);
}

TEST(StreamsParserTest, CombinatorsBehindEachOtherAreNestedAsInParentheses) {
    const auto parsed = [](const std::string& behind, int times) {
        return parse(Source("test", "net n connect []" + repeated(behind, times) + ";"));
    };
    for (const char* behind : {" ! <t>", " * {a}", " \\ {a}", " @ 1"}) {
        EXPECT_THAT([&] { (void)parsed(behind, 100'000); }, ThrowsMessage<Error>(HasSubstr("too deeply")))
            << behind;
        EXPECT_NO_THROW((void)parsed(behind, 150)) << behind;
    }
    EXPECT_NO_THROW((void)parsed(" .. [] ! <t>", 1000));  // beside each other
}

TEST(StreamsParserTest, PlacesPointIntoTheFileThatWasWritten) {
    const Source source("whole", "# 7 \"part.snet\" 1\nnet n connect\n  [{x} -> {<y = z>}];\n");
    EXPECT_THAT([&] { (void)parse(source); },
                ThrowsMessage<Error>(
                    testing::AllOf(StartsWith("part.snet:8:17: "), HasSubstr("\n                    ^"))));
}

TEST(StreamsParserTest, BindsAsTheLanguageSays) {
    const auto of = [](const std::string& text) {
        const auto program = parse(Source("test", "net n connect " + text + ";"));
        const Topology& body = *program->main().body;
        return std::pair(body.kind, body.parts.size());
    };
    EXPECT_EQ(of("[] .. [] | []"), std::pair(TopologyKind::kChoice, size_t{2}));
    EXPECT_EQ(of("[] .. [] .. [] * {p}"), std::pair(TopologyKind::kSerial, size_t{3}));
    EXPECT_EQ(of("[] | [] || []"), std::pair(TopologyKind::kChoice, size_t{2}));
    EXPECT_EQ(of("[] * {p} ! <t>"), std::pair(TopologyKind::kSplit, size_t{1}));
    // '>' ends the tag, though an expression could go on behind it.
    EXPECT_EQ(of("[] * {<n>} if <n == 0> ! <t>"), std::pair(TopologyKind::kSplit, size_t{1}));
    EXPECT_EQ(of("([] | [])@3"), std::pair(TopologyKind::kPlaced, size_t{1}));
}

std::string type_of(const std::string& text) {
    const auto program = parse(Source("test", text));
    const Typing typing(*program);
    std::string types;
    for (const TypeMap& map : typing.of(program->main())) {
        types += map.input.text() + "->";
        for (const LabelSet& output : map.outputs) types += output.text();
        types += ' ';
    }
    return types;
}

TEST(StreamsTypingTest, FindsOutWhatIsNeededFromTheStart) {
    EXPECT_EQ(type_of("net n connect [{a} -> {b = a}] .. [{b, c} -> {d = c}];"), "{a, c}->{d} ");
    EXPECT_EQ(type_of("net n connect [{a} -> {b = a}] .. ([{b} -> {c = b}] | [{b, x} -> {d = b}]);"),
              "{a}->{c} ");
    EXPECT_EQ(type_of("net n connect [] .. ([{a} -> {b = a}] | [{c} -> {d = c}]);"), "{a}->{b} {c}->{d} ");
    EXPECT_EQ(type_of("net n connect [{a} -> {a}] ! <t>;"), "{a, <t>}->{a, <t>} ");
    EXPECT_EQ(type_of("net n ({a} -> ...) connect [{a} -> {b = a}];"), "{a}->{b} ");
    // Of several outputs that none of the next parts takes: what each of those needs.
    EXPECT_EQ(type_of("net n connect [{a} -> {b = a}; {b = a, e = a}] .. ([{b, x, y} -> {d = x}] | "
                      "[{b, x, z} -> {d = x}]);"),
              "{a, x}->{d}{d, e} ");
}

TEST(StreamsTypingTest, FollowsWhatGoesRound) {
    EXPECT_EQ(type_of("net n connect [{a} -> {b = a}] * {b};"), "{b}->{b} {a}->{b} ");
    EXPECT_EQ(type_of("net n connect [{a} -> {b = a, s = a}] * {b};"), "{b}->{b} {a}->{b, s} ");
    EXPECT_EQ(type_of("net n connect ([{a} -> {c = a}] | [{c} -> {b = c, s = c}]) * {b};"),
              "{b}->{b} {a}->{b, s} {c}->{b, s} ");
    EXPECT_EQ(type_of("net n connect [{<a>} -> if <a > 0> then {<a = a - 1>} else {<r = 1>}] \\ {<a>};"),
              "{<a>}->{<r>} ");
    EXPECT_EQ(type_of("net n connect [{<a>} -> {<a>}] \\ {<a>} if <a > 0>;"), "{<a>}->{<a>} ");
    EXPECT_EQ(type_of("net n connect [| {a}, {b} |];"), "{a}->{a, b} {b}->{a, b} ");
}

/// Each choice doubles the types.
TEST(StreamsTypingTest, ATypeThatGrowsWithoutBoundIsTold) {
    std::string net = "net n connect []";
    for (int i = 0; i < 40; ++i)
        net += fmt::format(" .. ([{{a{0}}} -> {{c{0} = a{0}}}] | [{{b{0}}} -> {{c{0} = b{0}}}])", i);
    EXPECT_THAT([&] { (void)type_of(net + ";"); },
                ThrowsMessage<Error>(HasSubstr("takes more than 4096 types of records")));
}

/// "line:column message" of each, where the program is one net n on line 1.
std::vector<std::string> findings_of(const std::string& text) {
    const auto program = parse(Source("", text));
    std::vector<std::string> all;
    const Typing typing(*program);
    Checker checker(*program, typing);
    for (const Finding& finding : checker.check())
        all.push_back(program->source.where(finding.place).substr(1) + " " + finding.message);
    return all;
}

TEST(StreamsCheckerTest, WhatTheLastStageOfAStarMakesIsThereBehindIt) {
    EXPECT_THAT(
        findings_of("net n connect [{<n>} -> if <n == 0> then {<done>, <s = 7>} else {<n = n - 1>}] * "
                    "{<done>} .. [{<done>, <s>} -> {<out = s>}];"),
        IsEmpty());
}

TEST(StreamsTypingTest, NoRecordGoesWhereTheSignatureNamesNoInput) {
    const std::string net =
        "net n { box begin (-> (<c>)); net gen ( -> {<c>}) connect begin; } connect gen | [];";
    EXPECT_EQ(type_of(net), "{}->{} ");
    EXPECT_THAT(findings_of(net), IsEmpty());
}

/// Nets that use each other, one line each: they need stack, too.
TEST(StreamsParserTest, NetsThatUseEachOtherTooDeeplyAreTold) {
    const auto chain = [](int nets) {
        std::string text = "net n0 connect [{a} -> {a}];\n";
        for (int i = 1; i < nets; ++i)
            text += fmt::format("net n{} connect n{} .. [{{a}} -> {{a}}];\n", i, i - 1);
        return text;
    };
    EXPECT_EQ(type_of(chain(450)), "{a}->{a} ");
    EXPECT_THAT(findings_of(chain(450)), IsEmpty());
    for (const int nets : {2'000, 20'000})
        EXPECT_THAT([&] { (void)type_of(chain(nets)); },
                    ThrowsMessage<Error>(HasSubstr("this is nested too deeply")));
}

/// Each uses the one before it twice.
TEST(StreamsParserTest, NetsOfMoreThanAMillionPartsAreTold) {
    for (const char* joined : {"..", "|"}) {
        std::string text = "net n0 connect [{a} -> {a}];\n";
        for (int i = 1; i <= 40; ++i)
            text += fmt::format("net n{0} connect n{1} {2} n{1};\n", i, i - 1, joined);
        EXPECT_THAT([&] { (void)parse(Source("", text)); },
                    ThrowsMessage<Error>(HasSubstr("more than a million parts")));
    }
}

/// Each name stands for twice what the one before it does.
TEST(StreamsParserTest, NamesThatDoubleATypeAreTold) {
    for (const auto& [kind, first, twice] :
         {std::tuple("type", "{x}", "t{0} | t{0}"), std::tuple("typesig", "{x} -> {x}", "t{0}, t{0}")}) {
        std::string text;
        for (int i = 0; i < 40; ++i)
            text += fmt::format("{} t{} = {};\n", kind, i,
                                i == 0 ? first : fmt::format(fmt::runtime(twice), i - 1));
        EXPECT_THAT([&] { (void)parse(Source("", text + "net n connect [];")); },
                    ThrowsMessage<Error>(HasSubstr("more than 4096 types of records")));
    }
}

/// Each filter doubles the types that come to the next one.
TEST(StreamsCheckerTest, TooManyTypesAreTold) {
    std::string net = "[]", nets = "[{a} -> {a}]";
    for (int i = 0; i < 40; ++i) {
        net += fmt::format(" .. [{{a}} -> {{a}}; {{a, <t{}>}}]", i);
        nets +=
            fmt::format(" .. ([{{a}} -> {{b = a}}; {{b = a, <t{}>}}] ** {{b}}) .. [{{b}} -> {{a = b}}]", i);
    }
    EXPECT_THAT([&] { (void)type_of("net n connect " + net + ";"); },
                ThrowsMessage<Error>(HasSubstr("comes out of here may be of more than 4096 types")));
    EXPECT_THAT([&] { (void)findings_of("net n connect " + nets + ";"); },
                ThrowsMessage<Error>(HasSubstr("comes out of here may be of more than 4096 types")));
}

TEST(StreamsCheckerTest, FindsWhatCannotWork) {
    const auto finds = [](const std::string& text, const std::string& finding) {
        EXPECT_THAT(findings_of(text), testing::Contains(HasSubstr(finding))) << text;
    };
    finds("net n ({a} -> {d}) connect [{a} -> {b = a}] .. [{c} -> {d = c}];",
          "1:48 this filter needs {c}, and gets {b}");
    finds("net n ({a} -> {b, c}) connect [{a} -> {b = a}];",
          "1:19 the net \"n\" promises {b, c} for {a}, and makes {b}");
    finds("net n ({a} -> {a}) connect [{a} -> {a}] * {b};", "1:44 no record ever matches {b}");
    finds("net n ({a} -> {a}) connect [{a} -> {a}] | [{a} -> {a}];",
          "1:41 two branches fit {a} equally well");
    finds("net n ({a} -> {b}) connect [{a} -> {b}];",
          "1:37 the pattern of this filter has no field b to take it from");
    finds("net n connect [{a} -> {b = c}];", "1:28 the pattern of this filter has no field c");
    finds("net n ({a, b} -> {b}) connect [{a} -> {}] | [{a, b} -> {b}];",
          "1:31 no record ever takes this branch");
    finds("net n ({a} -> {a}) connect [] ! <t>;", "1:31 the choice of a replica needs {<t>}, and gets {a}");
    finds("net n ({a} -> {a}) connect [{b} -> {b}] | [{c} -> {c}];",
          "1:41 each branch needs {b} or {c}, and gets {a}");
    finds("box f ((x) -> (y)); net n ({a} -> {y}) connect f;", "the box \"f\" needs {x}, and gets {a}");
    finds("net n ({<a>} -> {<b>}) connect [{<a>} -> {<a>}] \\ {<a>};", "1:49 no record ever leaves this");
    finds("net n ({<a>} -> {<a>}) connect [{<a>} -> {<a>}] \\ {<b>};", "no record ever matches {<b>}");
}

TEST(StreamsCheckerTest, SaysNothingOfWhatWorks) {
    for (const char* text : {
             "net n ({a} -> {d}) connect [{a} -> {b = a}; {c = a}] .. ([{b} -> {d = b}] | [{c} -> {d = c}] "
             ".. []);",
             "net n connect [| {<a>}, {<b>} |] * {<a>, <b>};",
             "net n ({<k>} -> {<r>}) { net m ({<k>} -> {<r>}) connect [{<k>} -> if <k == 0> then {<r = 1>} "
             "else {<k = k "
             "- 1>}] .. ([{<r>} -> {<r>}] | m); } connect m;",
             "net n ({<a>, <t>} -> {<a>, <t>}) connect [{<a>} -> {<a>}] !! <t>;",
             "box b (-> (<a>)); net n connect b .. [{<a>} -> {<a>}];",
             "box b (-> (<a>)); net n connect (b | []) .. [{<a>} -> {<a>}];",
             "net n ({s} | {i} -> {o}) { box f ((s, i) -> (o) | (s)); } connect ([|{s}, {i}|] * {s, i} .. f) "
             "\\ {s}, {i};",
         }) {
        EXPECT_THAT(findings_of(text), testing::IsEmpty()) << text;
    }
}

TEST(StreamsCheckerTest, FollowsALabelToWhereItGotLost) {
    const auto notes = [](const std::string& text) {
        const auto program = parse(Source("", text));
        const Typing typing(*program);
        Checker checker(*program, typing);
        std::vector<std::string> all;
        for (const Finding& finding : checker.check())
            for (const Note& note : finding.notes)
                all.push_back(program->source.where(note.place).substr(1) + " " + note.message);
        return all;
    };
    const auto lost = [&](const std::string& text, const std::string& note) {
        EXPECT_THAT(notes(text), testing::Contains(HasSubstr(note))) << text;
    };
    lost("net n ({a, b} -> {c}) connect [{a, b} -> {a}] .. [] .. [{a, b} -> {c = a}];",
         "1:31 b is lost here: this filter takes it");
    lost("box f ((a, <t>) -> (a)); net n ({a, <t>} -> {a, <t>}) connect f ! <t> .. [{<t>} -> {<t>}];",
         "1:5 <t> is lost here: the box \"f\" takes it");
    lost("net n ({a, b} -> {b}) { net m ({a} -> {b}) connect [{a, b} -> {b}]; } connect m;",
         "1:29 b is lost here: the signature of the net \"m\" does not name it");
    lost("net n ({a, b} -> {b}) { net m ({a, b} -> {a}); } connect m .. [{b} -> {b}];",
         "1:29 b is lost here: by its signature, the net \"m\" takes it");
    lost("net n ({a, x} | {b, y} -> {y}) connect [|{a}, {b}|] * {a, b} .. [{a, y} -> {y}];",
         "1:40 y is lost here: of all records but the first");
    lost("net n ({<a>} -> {<b>}) connect [{<a>} -> {<c>}] * {<a>, <b>};", "1:32 <a> is lost here");
}

TEST(StreamsCheckerTest, TellsWhatCanNeverWorkFromWhatMayBeSaved) {
    const auto never = [](const std::string& text) {
        const auto program = parse(Source("", text));
        const Typing typing(*program);
        Checker checker(*program, typing);
        EXPECT_THAT(checker.check(), testing::Not(testing::IsEmpty())) << text;
        return checker.never_works() != nullptr;
    };
    const std::string loop = "net m ({<a>} -> {<a>}) connect [{<a>} -> {<a = a - 1>}] .. m;";
    EXPECT_TRUE(never("net n ({a} -> {d}) connect [{a} -> {b = a}] .. [{c} -> {d = c}];"));
    EXPECT_TRUE(never("net n connect [{a} -> {b = a}] .. [{a} -> {d = a}];"));
    EXPECT_TRUE(never("net n ({<a>} -> {<b>}) connect [{<a>} -> {<a>}] \\ {<a>};"));
    EXPECT_TRUE(never(loop));
    EXPECT_TRUE(never(loop + "net n ({<a>} -> {<b>}) connect m .. [{<a>} -> {<b = a>}];"));
    EXPECT_TRUE(never("net n ({a} -> {b}) connect [{a} -> {b}];"));
    EXPECT_FALSE(never("net n connect [{a} -> {b}];"));
    // A record may bring {c}, or be of the other type, or leave by the branch that works.
    EXPECT_FALSE(never("net n connect [{a} -> {b = a}] .. [{c} -> {d = c}];"));
    EXPECT_FALSE(never("net n ({a} | {c} -> {d}) connect [] .. [{c} -> {d = c}];"));
    EXPECT_FALSE(never("net n ({<a>} -> {<b>}) connect [{<a>} -> {<b = a>}; {<x>}] .. [{<b>} -> {<b>}];"));
    EXPECT_FALSE(never(loop + "net n ({<a>} | {<a>, <b>} -> {<a>}) connect m | [{<a>, <b>} -> {<a>}];"));
}

TEST(StreamsC4SNetTest, TextReadsBackAsTheSame) {
    for (const char* text : {"(int)-5", "(int[0])", "(char[5])h,<,&,,,o", "(unsigned char)x",
                             "(float[2])0.1,1e+30", "(double)-2.5e-300", "(long[3])-9223372036854775808,0,1",
                             "(unsigned long)18446744073709551615", "(short[2])-32768,32767"}) {
        const C4Field field(read_c4snet_text(text));
        EXPECT_EQ(field.text(), text);
    }
}

TEST(StreamsC4SNetTest, TextThatIsNoneIsTold) {
    const std::pair<const char*, const char*> bad[] = {
        {"5", "type in parentheses"},
        {"(integer)5", "no type \"integer\""},
        {"(int[2])5", "a number is missing"},
        {"(int[99999])5", "fewer elements than it says"},
        {"(short)70000", "does not fit"},
        {"(pointer)0x5", "nothing in another process"},
        {"(int[x])5", "is no number"},
        {"", "type in parentheses"},
        {"(int)5.7", "\".7\" follows its last"},
        {"(int)12abc", "\"abc\" follows its last"},
        {"(int)1,2", "\",2\" follows its last"},
        {"(char[2])h,i,j", "\",j\" follows its last"},
        {"(int[2])1,,2", "a number is missing"},
        {"(double) 1 2", "\" 2\" follows its last"},
    };
    for (const auto& [text, message] : bad)
        EXPECT_THAT([&] { (void)read_c4snet_text(text); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
}

TEST(StreamsC4SNetTest, BlanksMayStandAroundElements) {
    const C4Field field(read_c4snet_text(" \n(int[2]) 1, 2\r\n "));
    EXPECT_EQ(field.text(), "(int[2])1,2");
}

/// What is said of a box in an element that is not closed is not lost.
TEST(StreamsParserTest, MetadataInABodyAreSaidOfWhatIsInIt) {
    const auto program = parse(Source("",
                                      "net outer {\n"
                                      "  <metadata> <net name=\"inner\"> <observer/> </net>"
                                      " <netdefault> <level value=\"2\"/> </netdefault> </metadata>\n"
                                      "  net inner connect [{<a>} -> {<a = a + 1>}];\n"
                                      "} connect inner;\n"
                                      "net beside connect [];\n"));
    const NetDefinition& outer = *program->nets[0];
    EXPECT_THAT(outer.metadata, IsEmpty());
    EXPECT_THAT(program->nets[1]->metadata, IsEmpty());
    EXPECT_THAT(outer.nets[0]->metadata,
                testing::UnorderedElementsAre(testing::Key("observer"), testing::Key("level")));
}

TEST(StreamsParserTest, MetadataThatIsNotClosedIsTold) {
    std::string deep;
    for (int i = 0; i < 201; ++i) deep += "<net name='a'>";
    const std::pair<std::string, const char*> bad[] = {
        {deep, "nested more than 200 deep"},
        {"<box name='f'><observer/>", "<box> is not closed"},
        {"<box name='f'></net>", "</net> stands where </box> is wanted"},
        {"<box name='f'><observer_file>x</box>", "</box> stands where </observer_file> is wanted"},
        {"<box name='f'><outer><inner/></outer></box>", "<inner> stands in <outer>"},
        {"</box>", "</box> stands where </metadata> is wanted"},
    };
    for (const auto& [text, message] : bad) {
        const std::string program =
            fmt::format("<metadata>{}</metadata> net n {{ box f ((a) -> (a)); }} connect f;", text);
        EXPECT_THAT([&] { (void)parse(Source("", program)); }, ThrowsMessage<Error>(HasSubstr(message)))
            << text;
    }
}

TEST(StreamsC4SNetTest, CountsReferences) {
    const int value = 3;
    c4snet_data_t* const data = C4SNetCreate(CTYPE_int, 1, &value);
    c4snet_data_t* const copy = C4SNetDeepCopy(data);
    EXPECT_EQ(C4SNetShallowCopy(data), data);
    C4SNetFree(data);
    EXPECT_EQ(*static_cast<int*>(C4SNetGetData(data)), 3);
    EXPECT_NE(C4SNetGetData(copy), C4SNetGetData(data));
    C4SNetFree(data);
    EXPECT_EQ(C4SNetSizeof(copy), 4);
    EXPECT_EQ(C4SNetGetString(copy), nullptr);
    C4SNetFree(copy);
    c4snet_data_t* const letters = C4SNetCreate(CTYPE_char, 2, "ab");
    char* const text = C4SNetGetString(letters);
    EXPECT_STREQ(text, "ab");
    std::free(text);
    C4SNetFree(letters);
}

}  // namespace
}  // namespace heddle::streams
