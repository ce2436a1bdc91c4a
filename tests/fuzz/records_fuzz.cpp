// Records of XML and JSON lines, and the data of C boxes in their fields: what is read writes in each format,
// and reads back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"
#include "streams/c4snet.hpp"
#include "streams/c4snet_binary.hpp"
#include "streams/c4snet_text.hpp"
#include "streams/record_streams.hpp"

namespace {

using namespace heddle;           // NOLINT: each name here is of them
using namespace heddle::streams;  // NOLINT

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::vector<Record> records_of(std::FILE* file) {
    std::rewind(file);
    std::vector<Record> records;
    const auto reader = make_record_reader(std::make_unique<InputText>(file, "fuzz"));
    while (auto record = reader->next()) records.push_back(std::move(*record));
    return records;
}

void read_fields(const Record& record) {
    for (const auto& [label, value] : record.fields()) try {
            const C4Field field(read_c4snet_text(value->text()));
            const C4Field again(read_c4snet_text(field.text()));
            test::require(field.text() == again.text(), "data read back as the same");
        } catch (const Error&) {  // it is another language's
        }
}

void write_and_read(const std::vector<Record>& records, RecordFormat format) {
    const File out(std::tmpfile(), &std::fclose);
    if (!out) return;
    const auto writer = make_record_writer(out.get(), format);
    for (const Record& record : records) writer->write(record);
    writer->terminate();
    const std::vector<Record> again = records_of(out.get());
    test::require(again.size() == records.size(), "as many records come back");
    for (size_t i = 0; i < again.size(); ++i) {
        test::require(again[i].text() == records[i].text(), "records read back as the same");
        for (const auto& [label, value] : records[i].fields()) {
            const Field& other = again[i].field(label);
            test::require(other->interface() == value->interface(), "of the same interface");
            if (format == RecordFormat::kXml)
                test::require(other->text() == value->text(), "texts read back as the same");
        }
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const File in(std::tmpfile(), &std::fclose);
    if (!in || std::fwrite(data, 1, size, in.get()) != size) return 0;
    try {
        const std::vector<Record> records = records_of(in.get());
        for (const Record& record : records) read_fields(record);
        for (const RecordFormat format :
             {RecordFormat::kXml, RecordFormat::kBinaryXml, RecordFormat::kJsonLines})
            write_and_read(records, format);
    } catch (const Error& error) {
        heddle::test::require(error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kLimit,
                              error.what());
    }
    return 0;
}
