// PNG files without compression (ISO/IEC 15948): what any program reads, and no library is needed for.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "tonemap/picture.hpp"

namespace tonemap {
namespace {

void add_word(std::string& to, uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>((word >> shift) & 0xff);
}

uint32_t crc(const std::string& bytes) {
    constexpr uint32_t kPolynomial = 0xedb88320;
    uint32_t value = ~uint32_t{0};
    for (const char byte : bytes) {
        value ^= static_cast<uint8_t>(byte);
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    return ~value;
}

void add_chunk(std::string& to, const std::string& type, const std::string& data) {
    add_word(to, static_cast<uint32_t>(data.size()));
    to += type + data;
    add_word(to, crc(type + data));
}

/// As zlib's stream of stored blocks.
std::string stored(const std::string& data) {
    constexpr size_t kMost = 65535;
    constexpr uint32_t kModulus = 65521;
    std::string stream = "\x78\x01";
    uint32_t a = 1, b = 0;
    for (const char byte : data) {
        a = (a + static_cast<uint8_t>(byte)) % kModulus;
        b = (b + a) % kModulus;
    }
    for (size_t at = 0; at < data.size(); at += kMost) {
        const size_t size = std::min(kMost, data.size() - at);
        stream += at + size == data.size() ? '\1' : '\0';
        for (const size_t word : {size, ~size}) {
            stream += static_cast<char>(word & 0xff);
            stream += static_cast<char>((word >> 8) & 0xff);
        }
        stream.append(data, at, size);
    }
    add_word(stream, (b << 16) | a);
    return stream;
}

}  // namespace

std::string png(const Picture& picture) {
    std::string header, rows;
    add_word(header, static_cast<uint32_t>(picture.width));
    add_word(header, static_cast<uint32_t>(picture.height));
    header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB
    for (size_t y = 0; y < picture.height; ++y) {
        rows += '\0';  // no filter
        for (size_t x = 0; x < picture.width; ++x)
            for (size_t i = 0; i < 3; ++i)
                rows += static_cast<char>(picture.pixels[y * picture.width + x][i]);
    }
    std::string file("\x89PNG\r\n\x1a\n", 8);
    add_chunk(file, "IHDR", header);
    add_chunk(file, "IDAT", stored(rows));
    add_chunk(file, "IEND", "");
    return file;
}

void write_png(const std::string& path, const Picture& picture) {
    std::ofstream out(path, std::ios::binary);
    out << png(picture);
    out.flush();
    if (!out) throw std::runtime_error(fmt::format("{} cannot be written", path));
}

}  // namespace tonemap
