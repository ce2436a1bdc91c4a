// Radiance .hdr files: a text header, then rows of RGBE pixels, plain or run-length encoded by component
// (Ward, "Real pixels", Graphics Gems II, 1991; Radiance's own description of picture files).
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tonemap/picture.hpp"

namespace tonemap {
namespace {

class RadianceFile {
  public:
    explicit RadianceFile(const std::string& path) : path_(path) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error(fmt::format("{} cannot be read", path));
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }

    HdrPicture read() {
        HdrPicture picture;
        read_header(picture);
        constexpr size_t kMostPixels = size_t{1} << 28;
        if (picture.width == 0 || picture.height == 0 || picture.width > kMostPixels / picture.height)
            fail(fmt::format("a picture of {} x {} pixels, where 1 to {} are read", picture.width,
                             picture.height, kMostPixels));
        std::vector<std::array<uint8_t, 4>> row(picture.width);
        for (size_t y = 0; y < picture.height; ++y) {
            read_row(row, y);
            for (const auto& [red, green, blue, exponent] : row) {
                const float scale = exponent == 0 ? 0.0f : std::ldexp(1.0f, exponent - (128 + 8));
                const auto value = [&](uint8_t mantissa) {
                    return exponent == 0 ? 0.0f : (static_cast<float>(mantissa) + 0.5f) * scale;
                };
                picture.pixels.push_back({value(red), value(green), value(blue), 0});
            }
        }
        return picture;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(fmt::format("{}: {} at byte {}", path_, what, at_));
    }

    std::string line() {
        std::string text;
        while (true) {
            const uint8_t one = byte("its header ends");
            if (one == '\n') return text;
            text += static_cast<char>(one);
        }
    }

    uint8_t byte(const char* what) {
        if (at_ == bytes_.size()) fail(fmt::format("the file is cut off: {}", what));
        return static_cast<uint8_t>(bytes_[at_++]);
    }

    void read_header(HdrPicture& picture) {
        const std::string magic = line();
        if (magic != "#?RADIANCE" && magic != "#?RGBE") fail("it is no Radiance picture");
        for (std::string text = line(); !text.empty(); text = line())
            if (text.starts_with("FORMAT=") && text != "FORMAT=32-bit_rle_rgbe")
                fail(fmt::format("its {} is not known, only FORMAT=32-bit_rle_rgbe", text));
        const std::string size = line();
        char end = 0;
        const bool has_negative = size.find('-', 1) != std::string::npos;
        if (has_negative ||
            std::sscanf(size.c_str(), "-Y %zu +X %zu%c", &picture.height, &picture.width, &end) != 2)
            fail(fmt::format("its size is \"{}\", not as \"-Y 512 +X 1024\",", size));
    }

    void read_row(std::vector<std::array<uint8_t, 4>>& row, size_t y) {
        const std::string where = fmt::format("row {} of its pixels", y);
        const auto next = [&] { return byte(where.c_str()); };
        const std::array<uint8_t, 4> first{next(), next(), next(), next()};
        const bool encoded =
            first[0] == 2 && first[1] == 2 && first[2] < 128 && row.size() >= 8 && row.size() < 32768;
        if (!encoded) {
            row[0] = first;
            for (size_t x = 1; x < row.size(); ++x) row[x] = {next(), next(), next(), next()};
            return;
        }
        if (static_cast<size_t>(first[2]) * 256 + first[3] != row.size())
            fail(fmt::format("{} has another width", where));
        for (size_t component = 0; component < 4; ++component)
            for (size_t x = 0; x < row.size();) {
                const uint8_t code = next();
                const bool run = code > 128;
                const size_t count = run ? code - 128u : code;
                if (count == 0 || count > row.size() - x)
                    fail(fmt::format("{} is longer than the picture", where));
                const uint8_t value = run ? next() : uint8_t{0};
                for (size_t i = 0; i < count; ++i) row[x++][component] = run ? value : next();
            }
    }

    const std::string path_;
    std::string bytes_;
    size_t at_ = 0;
};

const bool radiance_is_known =
    add_reader(".hdr", [](const std::string& path) { return RadianceFile(path).read(); });

}  // namespace
}  // namespace tonemap
