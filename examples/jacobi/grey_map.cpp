#include "grey_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace heddle::example {
namespace {

constexpr size_t kMostCells = size_t{1} << 31;

class Reader {
  public:
    explicit Reader(const std::string& path) : path_(path) {
        std::ifstream in(path, std::ios::binary);
        if (!in) refuse("it cannot be read");
        bytes_.assign(std::istreambuf_iterator<char>(in), {});
    }
    [[noreturn]] void refuse(const std::string& problem) const {
        throw std::runtime_error(
            fmt::format("{}: {}; gm convert PICTURE lamps.pgm makes one that can be read", path_, problem));
    }
    void expect_magic() {
        if (!bytes_.starts_with("P5")) refuse("it is no binary PGM, which begins with P5");
        at_ = 2;
    }
    /// A number of the header; space and comments come before it.
    size_t number(const char* what, size_t most) {
        while (at_ < bytes_.size() && (std::isspace(byte(at_)) != 0 || bytes_[at_] == '#')) {
            if (bytes_[at_] == '#') at_ = std::min(bytes_.find('\n', at_), bytes_.size() - 1);
            ++at_;
        }
        size_t value = 0;
        const size_t begin = at_;
        for (; at_ < bytes_.size() && std::isdigit(byte(at_)) != 0 && value <= most; ++at_)
            value = value * 10 + static_cast<size_t>(bytes_[at_] - '0');
        if (at_ == begin || value == 0 || value > most)
            refuse(fmt::format("its {} is none from 1 to {}", what, most));
        return value;
    }
    /// One byte of space, and then all that is left, which is to be so much.
    void expect_pixels(size_t size) {
        ++at_;
        if (at_ > bytes_.size() || bytes_.size() - at_ < size)
            refuse(fmt::format("it ends within its pixels: {} bytes of {}",
                               bytes_.size() - std::min(at_, bytes_.size()), size));
    }
    unsigned next() { return byte(at_++); }

  private:
    [[nodiscard]] unsigned byte(size_t at) const { return static_cast<unsigned char>(bytes_[at]); }

    std::string path_, bytes_;
    size_t at_ = 0;
};

}  // namespace

GreyMap read_grey_map(const std::string& path) {
    Reader reader(path);
    reader.expect_magic();
    GreyMap map;
    map.columns = reader.number("width", 1'000'000);
    map.rows = reader.number("height", 1'000'000);
    const size_t white = reader.number("brightest value", 65'535);
    const size_t cells = map.rows * map.columns;
    if (cells > kMostCells) reader.refuse("it has more than 2^31 pixels");
    reader.expect_pixels(cells * (white > 255 ? 2 : 1));
    map.values.reserve(cells);
    for (size_t i = 0; i < cells; ++i) {
        const unsigned value = white > 255 ? reader.next() << 8u : 0;
        map.values.push_back(std::min(1.0, (value + reader.next()) / static_cast<double>(white)));
    }
    return map;
}

void write_grey_map(const std::string& path, const GreyMap& map) {
    std::string bytes = fmt::format("P5\n{} {}\n255\n", map.columns, map.rows);
    for (const double value : map.values)
        bytes.push_back(static_cast<char>(std::lround(255 * std::clamp(value, 0.0, 1.0))));
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
        throw std::runtime_error(fmt::format("cannot write {}", path));
}

}  // namespace heddle::example
