// Records as S-Net's XML: a sequence of <record> elements without a root, ended by one of type "terminate".
//
// The data of a record are text (mode="textual") or, of C boxes, base64 (mode="binary", which is meant where
// no mode is told); reading takes either.
#pragma once

#include "streams/record_streams.hpp"

namespace heddle::streams {

class XmlRecordReader final : public RecordReader {
  public:
    explicit XmlRecordReader(std::unique_ptr<InputText> input) : input_(std::move(input)) {}
    [[nodiscard]] std::optional<Record> next() override;

  private:
    /// Past blanks, comments and processing instructions. False: nothing follows them.
    bool find_element();
    /// Where `what` is in rest(), at `from` or behind it. Reads on; throws `missing` at the end.
    [[nodiscard]] size_t find(std::string_view what, size_t from, const char* missing);
    std::unique_ptr<InputText> input_;
};

class XmlRecordWriter final : public RecordWriter {
  public:
    /// `binary`: where all data of a record are C boxes' own.
    explicit XmlRecordWriter(std::FILE* file, bool binary = false) : RecordWriter(file), binary_(binary) {}

  private:
    void append(std::string& text, const Record& record) override;
    void append_end(std::string& text) override;

    const bool binary_;
    bool begun_ = false;
};

}  // namespace heddle::streams
