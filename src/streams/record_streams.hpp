// RecordReader, RecordWriter: records as text, one after the other; the formats are beside this file.
//
// A reader is for one thread or task, a writer for one at a time. Files stay the caller's.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "heddle/error.hpp"
#include "streams/record.hpp"

namespace heddle::streams {

/// The rest of a record was not read any more, since the input was stopped.
struct InputStopped : Error {
    using Error::Error;
};

/// The text of a file, pipe or socket as far as it was read, with the number of the line.
class InputText {
  public:
    /// `name` is for messages. `before_waiting`, where it is set, is called when there is nothing to read
    /// yet. No more is read once the descriptor `stop` is readable; -1: there is none.
    InputText(std::FILE* file, std::string name, std::function<void()> before_waiting = {}, int stop = -1)
        : file_(file), name_(std::move(name)), before_waiting_(std::move(before_waiting)), stop_(stop) {}

    /// What was read and not passed. Good until fill().
    [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }
    /// Reads more; waits for it, a task paused. False: there is no more. Throws kSystem where it cannot be
    /// read, and kLimit where what was not passed is longer than 1 GiB.
    bool fill();
    void pass(size_t size);
    /// No more is read.
    void end() {
        ended_ = true;
        begin_ = buffer_.size();
    }
    /// Throws kBadInput with the line of that byte of rest(), or InputStopped.
    [[noreturn]] void fail(size_t offset, std::string_view why) const;

  private:
    struct Look {
        bool is_something, is_stop;
    };
    [[nodiscard]] Look look() const;
    void wait_for_something();

    std::FILE* const file_;
    const std::string name_;
    const std::function<void()> before_waiting_;
    const int stop_;
    Descriptor both_;  ///< readable when there is something; made when it is waited for first
    std::string buffer_;
    size_t begin_ = 0;  ///< of what was not passed
    size_t line_ = 1;   ///< there
    bool ended_ = false, stopped_ = false;
};

class RecordReader {
  public:
    virtual ~RecordReader() = default;
    /// Nothing: the stream has ended, or said so. Throws kBadInput, with the line, for what is no record, and
    /// what InputText throws.
    [[nodiscard]] virtual std::optional<Record> next() = 0;
};

/// Buffered: flush() when there is nothing to do.
class RecordWriter {
  public:
    virtual ~RecordWriter() = default;
    /// Throws kSystem where it cannot be written, and from then on: a part may have been.
    void write(const Record& record);
    void flush();
    /// The last record: no more follow.
    void terminate();

  protected:
    explicit RecordWriter(std::FILE* file) : file_(file) {}
    virtual void append(std::string& text, const Record& record) = 0;
    virtual void append_end(std::string& text) = 0;

  private:
    void refuse_after_failure() const;

    std::FILE* const file_;
    std::string buffer_;
    std::string failure_;
};

enum class RecordFormat { kXml, kBinaryXml, kJsonLines };

/// Nothing for a word that names none: "xml", "binary" or "json".
[[nodiscard]] std::optional<RecordFormat> record_format(std::string_view word);

/// Of the format that the first character tells: '{' begins JSON lines, all else is XML.
[[nodiscard]] std::unique_ptr<RecordReader> make_record_reader(std::unique_ptr<InputText> input);
[[nodiscard]] std::unique_ptr<RecordWriter> make_record_writer(std::FILE* file, RecordFormat format);

/// Whether it is bytes of UTF-8 as RFC 3629 has them.
[[nodiscard]] bool is_utf8(std::string_view text);
/// For readers: throws kBadInput where the record has as many labels as one may have that is read, since each
/// more is looked for among all before it.
void check_room_for_label(const Record& record);
void append_utf8(std::string& to, uint32_t code);

}  // namespace heddle::streams
