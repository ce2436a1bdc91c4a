// Source: the text of a program with its places, and what is wrong at one of them.
//
// Immutable after it was made; any thread may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/error.hpp"

namespace heddle::streams {

class Source;

/// A byte of a source.
struct Place {
    const Source* source = nullptr;
    uint32_t offset = 0;
};

class Source {
  public:
    /// `name` is for messages.
    Source(std::string name, std::string text);
    /// Reads a file; where it has lines for the C preprocessor, through `cpp`, with its own folder in the
    /// search path. Throws kBadInput for a file that cannot be read, or that the preprocessor refuses.
    [[nodiscard]] static Source of_file(const std::string& path);

    [[nodiscard]] std::string_view text() const { return text_; }
    [[nodiscard]] const std::string& name() const { return name_; }

    // Of places of this source.

    /// "file:line:column", in the file that was written.
    [[nodiscard]] std::string where(Place place) const;
    /// For a C compiler: what follows is this line.
    [[nodiscard]] std::string line_directive(Place place) const;
    /// The place, what is said of it, the line, a caret below the place, and what to do about it.
    [[nodiscard]] std::string report(Place place, std::string_view message, std::string_view fix = {}) const;
    /// Throws report() as kBadInput.
    [[noreturn]] void fail(Place place, std::string_view message, std::string_view fix = {}) const;

  private:
    /// Of one line of the text.
    struct Line {
        uint32_t begin;
        uint32_t number;  ///< in `file`
        uint32_t file;
    };
    /// Where a place was written, and its line as it was.
    struct Written {
        std::string file;
        uint32_t line;
        size_t column;  ///< from 0 on
        std::string text;
    };
    [[nodiscard]] Written written(Place place) const;
    [[nodiscard]] const Line& line_of(Place place) const;
    [[nodiscard]] std::string_view text_of(const Line& line) const;
    void read_originals();

    std::string name_;
    std::string text_;
    std::vector<std::string> files_;
    std::vector<Line> lines_;
    /// Of each of `files_`, where the preprocessor has been at work; empty: it cannot be read.
    std::vector<std::vector<std::string>> originals_;
};

}  // namespace heddle::streams
