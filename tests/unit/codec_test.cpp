#include "cores/codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

namespace heddle {
namespace {

std::string name_as_decoded(std::string_view name) {
    auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
    hello.weight = 1;
    std::memcpy(hello.name, name.data(), std::min(name.size(), sizeof hello.name));
    const Request request = decode_request(std::as_bytes(std::span(&hello, 1)));
    const auto* decoded = std::get_if<HelloRequest>(&request);
    return decoded == nullptr ? "refused" : decoded->name;
}

TEST(Codec, NamesCannotDisturbATerminal) {
    EXPECT_EQ(name_as_decoded("plain name_1"), "plain name_1");
    EXPECT_EQ(name_as_decoded("J\xc3\xa4ger \xe2\x82\xac \xf0\x9f\xa7\xb5"),
              "J\xc3\xa4ger \xe2\x82\xac \xf0\x9f\xa7\xb5");
    EXPECT_EQ(name_as_decoded("\x1b[2J\x07\x7f"), "?[2J??");
    EXPECT_EQ(name_as_decoded("\x9b"
                              "2J"),
              "?2J")
        << "a control in 8 bits";
    EXPECT_EQ(name_as_decoded("\xc2\x9b"
                              "2J"),
              "??2J")
        << "the same as UTF-8";
    EXPECT_EQ(name_as_decoded("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xff"), "??????????") << "not UTF-8";
    EXPECT_EQ(name_as_decoded("cut \xe2\x82"), "cut ??");
}

TEST(Codec, ANameThatFillsItsFieldEndsThere) {
    EXPECT_EQ(name_as_decoded(std::string(HEDDLE_NAME_BYTES, 'x')).size(), size_t{HEDDLE_NAME_BYTES});
}

TEST(Codec, OtherVersionsAreToldWhatToDo) {
    for (const auto version : std::array<uint16_t, 4>{7, 8, 10, 0xffff}) {
        auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
        hello.header.version = version;
        const Request request = decode_request(std::as_bytes(std::span(&hello, 1)));
        const auto* bad = std::get_if<BadRequest>(&request);
        ASSERT_NE(bad, nullptr);
        EXPECT_EQ(bad->code, uint32_t{HEDDLE_REFUSED_VERSION});
        EXPECT_EQ(bad->reason, "the arbiter speaks protocol 9, this program " + std::to_string(version) +
                                   ": install the same version of heddle for both");
    }
}

TEST(Codec, AHelloOfVersion3IsRefusedForItsVersionAndNotForItsLength) {
    std::array<std::byte, 368> bytes{};  // as version 3 laid it out: a mask less
    heddle_header header{HEDDLE_PROTOCOL_MAGIC, 3, HEDDLE_HELLO, bytes.size(), 0};
    std::memcpy(bytes.data(), &header, sizeof header);
    const Request request = decode_request(bytes);
    const auto* bad = std::get_if<BadRequest>(&request);
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(bad->code, uint32_t{HEDDLE_REFUSED_VERSION});
}

TEST(Codec, TheSeedsOfTheFuzzerAreMessagesOfThisVersion) {
    const auto decoded = [](const std::string& seed) {
        std::ifstream file(HEDDLE_TEST_DATA "/fuzz/corpus/codec/" + seed, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        return decode_request(std::as_bytes(std::span(bytes)));
    };
    EXPECT_TRUE(std::holds_alternative<HelloRequest>(decoded("hello")));
    EXPECT_TRUE(std::holds_alternative<LimitsRequest>(decoded("limits")));
    EXPECT_TRUE(std::holds_alternative<ReleasedRequest>(decoded("released")));
    const Request old = decoded("version_1");
    const auto* bad = std::get_if<BadRequest>(&old);
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(bad->code, uint32_t{HEDDLE_REFUSED_VERSION});
}

TEST(Codec, OwnedCpusArrive) {
    auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
    hello.weight = 1;
    hello.owned = mask_of(CpuSet::parse("0-3,1023"));
    const Request request = decode_request(std::as_bytes(std::span(&hello, 1)));
    const auto* decoded = std::get_if<HelloRequest>(&request);
    ASSERT_NE(decoded, nullptr);
    EXPECT_EQ(decoded->owned, CpuSet::parse("0-3,1023"));
}

}  // namespace
}  // namespace heddle
