#include "cores/codec.hpp"

#include <gtest/gtest.h>

#include <cstring>

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

}  // namespace
}  // namespace heddle
