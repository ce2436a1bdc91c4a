// Records as JSON lines: one object a line, {"name": "Ada", "sizes": [3, 4], "<n>": 2, "<#b>": 1}.
//
// Names are labels as S-Net writes them. Data of C boxes are what JSON has for them: (int), or (long) where
// it needs to be, are numbers, (double) those with a point, arrays of them arrays, (char) texts. All else is
// an object of its interface and its text, {"C4SNet": "(float)1.5"}; {"C4SNet/base64": ...} where the text is
// no UTF-8. {"terminate": true} ends the stream: no field is a truth value.
#pragma once

#include "streams/record_streams.hpp"

namespace heddle::streams {

class JsonRecordReader final : public RecordReader {
  public:
    explicit JsonRecordReader(std::unique_ptr<InputText> input) : input_(std::move(input)) {}
    [[nodiscard]] std::optional<Record> next() override;

  private:
    std::unique_ptr<InputText> input_;
};

class JsonRecordWriter final : public RecordWriter {
  public:
    explicit JsonRecordWriter(std::FILE* file) : RecordWriter(file) {}

  private:
    void append(std::string& text, const Record& record) override;
    void append_end(std::string& text) override { text += "{\"terminate\": true}\n"; }
};

}  // namespace heddle::streams
