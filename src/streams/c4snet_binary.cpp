#include "streams/c4snet_binary.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstring>
#include <new>

#include "heddle/error.hpp"
#include "streams/base64.hpp"
#include "streams/c4snet_text.hpp"

namespace heddle::streams {
namespace {

constexpr size_t kCountCharacters = 8;  // of four bytes

std::string_view bytes_of(const void* data, size_t size) {
    return {static_cast<const char*>(data), size};
}

}  // namespace

std::string c4snet_binary(c4snet_type_t type, size_t size, const void* elements) {
    if (size > INT_MAX)
        throw Error(ErrorCode::kLimit,
                    fmt::format("the binary form counts elements with an int, and these are {}", size));
    const int count = static_cast<int>(size);
    std::string text(1, size == 1 ? 'A' : 'B');
    text += base64_encoded(bytes_of(&count, sizeof count));
    text += base64_character(static_cast<unsigned>(type));
    return text + base64_encoded(bytes_of(elements, size * c4snet_size(type)));
}

c4snet_data_t* read_c4snet_binary(std::string_view text) {
    const auto refuse = [](std::string_view why) {
        throw Error(ErrorCode::kBadInput, fmt::format("this is no binary data of C4SNet: {}", why));
    };
    if (text.size() < kCountCharacters + 2) refuse("it is too short");
    const int kind = base64_value(text[0]), type = base64_value(text[1 + kCountCharacters]);
    if (kind != 0 && kind != 1) refuse("it is neither a value nor an array");
    if (type < 0 || type >= CTYPE_pointer)
        refuse(type == CTYPE_pointer ? "a pointer means nothing in another process"
                                     : "there is no such type");
    const std::string counted = base64_decoded(text.substr(1, kCountCharacters));
    if (counted.size() != sizeof(int)) refuse("it does not tell how many elements it has");
    int count = 0;
    std::memcpy(&count, counted.data(), sizeof count);
    if (kind == 0) count = 1;  // S-Net's run-time system writes what it has there
    if (count < 0) refuse("it tells of less than no elements");
    const auto of = static_cast<c4snet_type_t>(type);
    const std::string elements = base64_decoded(text.substr(kCountCharacters + 2));
    if (elements.size() != static_cast<size_t>(count) * c4snet_size(of))
        refuse(fmt::format("{} elements of that type have {} bytes, and there are {}", count,
                           static_cast<size_t>(count) * c4snet_size(of), elements.size()));
    c4snet_data_t* const made = C4SNetCreate(of, static_cast<size_t>(count), elements.data());
    if (made == nullptr) throw std::bad_alloc();
    return made;
}

}  // namespace heddle::streams
