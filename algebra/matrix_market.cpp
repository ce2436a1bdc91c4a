#include "algebra/matrix_market.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// The next word of a line, which is cut off it; "" at the end.
std::string_view next_word(std::string_view& line) {
    const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

/// Words go into messages: of those of a binary file, what can be read.
std::string quoted(std::string_view word) {
    std::string text;
    for (const char c : word.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
    return fmt::format("'{}'{}", text, word.size() > 40 ? "..." : "");
}

/// Lines with their numbers.
class Lines {
  public:
    Lines(std::istream& in, const std::string& name) : in_(in), name_(name) {}

    /// False at the end of the file.
    bool next() {
        errno = 0;
        in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        if (in_.bad())
            throw Error(ErrorCode::kSystem,
                        fmt::format("{}: it cannot be read{}{}", name_, errno == 0 ? "" : ": ",
                                    errno == 0 ? "" : strerror(errno)));
        const auto count = static_cast<size_t>(in_.gcount());
        if (in_.fail() && count == 0) return false;
        ++number_;
        if (in_.fail()) bad(fmt::format("the line is longer than {} letters", buffer_.size() - 1));
        line_ = {buffer_.data(), in_.eof() ? count : count - 1};
        return true;
    }
    /// The same, but for comments and empty lines.
    bool next_content() {
        while (next())
            if (const size_t at = line_.find_first_not_of(kBlanks);
                at != std::string_view::npos && line_[at] != '%')
                return true;
        return false;
    }
    [[nodiscard]] std::string_view line() const { return line_; }
    [[nodiscard]] size_t number() const { return number_; }
    [[noreturn]] void bad(const std::string& what, ErrorCode code = ErrorCode::kBadInput) const {
        throw Error(code, fmt::format("{}:{}: {}", name_, std::max<size_t>(number_, 1), what));
    }

  private:
    std::istream& in_;
    const std::string& name_;
    std::array<char, 1025> buffer_;  // the format allows lines of 1,024 letters
    std::string_view line_;
    size_t number_ = 0;
};

class Reader {
  public:
    Reader(std::istream& in, const std::string& name, const MarketLimits& limits)
        : lines_(in, name), limits_(limits) {}

    DenseMatrix run() {
        read_header();
        read_size();
        if (coordinate_)
            read_coordinates();
        else
            read_array();
        if (lines_.next_content())
            lines_.bad(fmt::format("there is more than the {} entries that line {} announces", announced_,
                                   size_line_));
        return std::move(matrix_);
    }

  private:
    void read_header() {
        constexpr std::string_view kExample = "'%%MatrixMarket matrix coordinate real symmetric'";
        if (!lines_.next()) lines_.bad(fmt::format("the file is empty; it begins with {}", kExample));
        std::string_view line = lines_.line();
        if (lower_case(next_word(line)) != "%%matrixmarket")
            lines_.bad(fmt::format("this is no Matrix Market file: it begins with {}", kExample));
        const std::string object = lower_case(next_word(line)), format = lower_case(next_word(line)),
                          field = lower_case(next_word(line)), symmetry = lower_case(next_word(line));
        if (object != "matrix") lines_.bad(fmt::format("it holds a {}, not a matrix", quoted(object)));
        if (format != "coordinate" && format != "array")
            lines_.bad(fmt::format("the format {} is neither coordinate nor array", quoted(format)));
        if (field == "complex" || field == "pattern")
            lines_.bad(
                fmt::format("matrices of kind {} are not read: the numbers must be real or integer", field));
        if (field != "real" && field != "double" && field != "integer")
            lines_.bad(fmt::format("the kind of numbers {} is neither real nor integer", quoted(field)));
        if (symmetry == "skew-symmetric" || symmetry == "hermitian")
            lines_.bad(fmt::format("{} matrices are not read: only general and symmetric ones", symmetry));
        if (symmetry != "general" && symmetry != "symmetric")
            lines_.bad(fmt::format("the symmetry {} is neither general nor symmetric", quoted(symmetry)));
        end_of_line(line);
        coordinate_ = format == "coordinate";
        integer_ = field == "integer";
        symmetric_ = symmetry == "symmetric";
    }

    void read_size() {
        if (!lines_.next_content()) lines_.bad("the file ends before the line with the matrix's size");
        size_line_ = lines_.number();
        std::string_view line = lines_.line();
        const size_t rows = count(line, "the number of rows");
        const size_t columns = count(line, "the number of columns");
        if (rows == 0 || columns == 0)
            lines_.bad(fmt::format("a matrix of {} x {} has no elements", rows, columns));
        if (rows > limits_.max_elements / columns)
            lines_.bad(
                fmt::format("{} x {} elements are too many: a matrix is read as a dense one, of at most "
                            "{} elements, zeros included",
                            rows, columns, limits_.max_elements),
                ErrorCode::kLimit);
        if (symmetric_ && rows != columns)
            lines_.bad(fmt::format("a symmetric matrix is square, not {} x {}", rows, columns));
        const size_t most = symmetric_ ? rows * (rows + 1) / 2 : rows * columns;
        announced_ = coordinate_ ? count(line, "the number of entries") : most;
        if (announced_ > most)
            lines_.bad(fmt::format("{} entries are more than the matrix has places: {}", announced_, most));
        end_of_line(line);
        try {
            matrix_ = DenseMatrix(rows, columns);
            if (coordinate_) given_.resize(rows * columns);
        } catch (const std::bad_alloc&) {
            lines_.bad(fmt::format("there is no memory for {} x {} elements", rows, columns),
                       ErrorCode::kLimit);
        }
    }

    void read_coordinates() {
        for (size_t entry = 0; entry < announced_; ++entry) {
            next_entry(entry);
            std::string_view line = lines_.line();
            const size_t i = place(line, "row", matrix_.rows());
            const size_t j = place(line, "column", matrix_.columns());
            if (symmetric_ && i < j)
                lines_.bad(
                    fmt::format("entry ({}, {}) is above the diagonal: of a symmetric matrix only the "
                                "lower triangle is given",
                                i + 1, j + 1));
            if (given_[i + j * matrix_.rows()])
                lines_.bad(fmt::format("entry ({}, {}) is given twice", i + 1, j + 1));
            given_[i + j * matrix_.rows()] = true;
            set(i, j, number(line));
            end_of_line(line);
        }
    }

    void read_array() {
        size_t entry = 0;
        for (size_t j = 0; j < matrix_.columns(); ++j)
            for (size_t i = symmetric_ ? j : 0; i < matrix_.rows(); ++i) {
                next_entry(entry++);
                std::string_view line = lines_.line();
                set(i, j, number(line));
                end_of_line(line);
            }
    }

    void next_entry(size_t entry) {
        if (!lines_.next_content())
            lines_.bad(fmt::format("the file ends after {} of the {} entries that line {} announces", entry,
                                   announced_, size_line_));
    }

    void set(size_t i, size_t j, double value) {
        matrix_(i, j) = value;
        if (symmetric_) matrix_(j, i) = value;
    }

    size_t count(std::string_view& line, const char* what) const {
        const std::string_view word = next_word(line);
        if (word.empty()) lines_.bad(fmt::format("{} is missing", what));
        size_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error == std::errc::result_out_of_range)
            lines_.bad(fmt::format("{} is too large: {}", what, quoted(word)), ErrorCode::kLimit);
        if (error != std::errc() || end != word.data() + word.size())
            lines_.bad(fmt::format("{} is not a whole number: {}", what, quoted(word)));
        return value;
    }

    /// From 0.
    size_t place(std::string_view& line, const char* what, size_t size) const {
        const std::string_view word = next_word(line);
        size_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (word.empty()) lines_.bad(fmt::format("the {} of the entry is missing", what));
        if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > size)
            lines_.bad(fmt::format("the {} of the entry is not in 1..{}: {}", what, size, quoted(word)));
        return value - 1;
    }

    double number(std::string_view& line) const {
        const std::string_view word = next_word(line);
        if (word.empty()) lines_.bad("the number of the entry is missing");
        std::string_view digits = word;
        if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
        const std::optional<double> value = integer_ ? whole(digits) : real(digits);
        if (!value)
            lines_.bad(integer_
                           ? fmt::format("{} is not a whole number that a double holds exactly", quoted(word))
                           : fmt::format("{} is not a finite number in the range of a double", quoted(word)));
        return *value;
    }

    static std::optional<double> whole(std::string_view digits) {
        constexpr long long kExact = 1LL << 53;
        long long value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size()) return {};
        if (value < -kExact || value > kExact) return {};
        return static_cast<double>(value);
    }

    static std::optional<double> real(std::string_view digits) {
        double value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return {};
        return value;
    }

    void end_of_line(std::string_view line) const {
        if (const std::string_view word = next_word(line); !word.empty())
            lines_.bad(fmt::format("{} is too much on this line", quoted(word)));
    }

    Lines lines_;
    const MarketLimits& limits_;
    bool coordinate_ = false, integer_ = false, symmetric_ = false;
    size_t size_line_ = 0, announced_ = 0;
    DenseMatrix matrix_;
    std::vector<bool> given_;  // which places a coordinate file has filled
};

}  // namespace

DenseMatrix read_matrix_market(std::istream& in, const std::string& name, const MarketLimits& limits) {
    return Reader(in, name, limits).run();
}

DenseMatrix read_matrix_market_file(const std::string& path, const MarketLimits& limits) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Error(ErrorCode::kSystem, fmt::format("{}: it cannot be read: {}", path, strerror(errno)));
    return read_matrix_market(in, path, limits);
}

void write_matrix_market(std::ostream& out, MatrixView<const double> a) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "%%MatrixMarket matrix array real general\n{} {}\n", a.rows,
                   a.columns);
    for (size_t j = 0; j < a.columns; ++j) {
        for (size_t i = 0; i < a.rows; ++i) fmt::format_to(std::back_inserter(text), "{}\n", a(i, j));
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        text.clear();
    }
}

}  // namespace heddle::algebra
