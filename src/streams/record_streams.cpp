#include "streams/record_streams.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "streams/json_records.hpp"
#include "streams/xml_records.hpp"

namespace heddle::streams {
namespace {

constexpr size_t kChunk = size_t{1} << 16;
constexpr size_t kLongest = size_t{1} << 30;  // of one record, in bytes

size_t lines_in(std::string_view text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

/// Whether reading would not wait, or it was stopped.
InputText::Look InputText::look() const {
    pollfd ready[2] = {{::fileno(file_), POLLIN, 0}, {stop_, POLLIN, 0}};
    while (::poll(ready, 2, 0) < 0 && errno == EINTR) {
    }
    const bool is_stop = ready[1].revents != 0;
    return {is_stop || ready[0].revents != 0, is_stop};
}

void InputText::wait_for_something() {
    if (!both_.valid()) {
        both_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
        bool added = both_.valid();
        for (const int one : {::fileno(file_), stop_}) {
            epoll_event event{.events = EPOLLIN, .data = {}};
            if (one >= 0) added = added && ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, one, &event) == 0;
        }
        if (!added)
            throw Error(ErrorCode::kSystem,
                        fmt::format("{} cannot be waited for: {}", name_, std::strerror(errno)));
    }
    wait_readable(both_.get());
}

bool InputText::fill() {
    if (ended_) return false;
    if (buffer_.size() - begin_ > kLongest)
        throw Error(ErrorCode::kLimit, fmt::format("{}:{}: a record is longer than 1 GiB", name_, line_));
    buffer_.erase(0, begin_);
    begin_ = 0;
    Look found = look();
    if (!found.is_something) {
        if (before_waiting_) before_waiting_();
        while (!(found = look()).is_something) wait_for_something();
    }
    if (found.is_stop) {
        ended_ = stopped_ = true;
        return false;
    }
    const size_t had = buffer_.size();
    buffer_.resize(had + kChunk);
    ssize_t got = 0;
    do got = ::read(::fileno(file_), buffer_.data() + had, kChunk);
    while (got < 0 && errno == EINTR);
    buffer_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0)
        throw Error(ErrorCode::kSystem, fmt::format("{} cannot be read: {}", name_, std::strerror(errno)));
    ended_ = got == 0;
    return !ended_;
}

void InputText::pass(size_t size) {
    line_ += lines_in(rest().substr(0, size));
    begin_ += std::min(size, buffer_.size() - begin_);
}

void InputText::fail(size_t offset, std::string_view why) const {
    const std::string text = fmt::format("{}:{}: {}", name_, line_ + lines_in(rest().substr(0, offset)), why);
    if (stopped_) throw InputStopped(ErrorCode::kBadInput, text);
    throw Error(ErrorCode::kBadInput, text);
}

void RecordWriter::refuse_after_failure() const {
    if (!failure_.empty()) throw Error(ErrorCode::kSystem, failure_);
}

void RecordWriter::write(const Record& record) {
    refuse_after_failure();
    append(buffer_, record);
    if (buffer_.size() >= kChunk) flush();
}

void RecordWriter::flush() {
    refuse_after_failure();
    const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
    if (!written || std::fflush(file_) != 0) {
        failure_ = fmt::format("cannot write records: {}", std::strerror(errno));
        refuse_after_failure();
    }
    buffer_.clear();
}

void RecordWriter::terminate() {
    refuse_after_failure();
    append_end(buffer_);
    flush();
}

std::optional<RecordFormat> record_format(std::string_view word) {
    if (word == "xml") return RecordFormat::kXml;
    if (word == "binary") return RecordFormat::kBinaryXml;
    if (word == "json") return RecordFormat::kJsonLines;
    return {};
}

std::unique_ptr<RecordReader> make_record_reader(std::unique_ptr<InputText> input) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    while (input->rest().size() < kByteOrderMark.size() && input->fill()) {
    }
    if (input->rest().starts_with(kByteOrderMark)) input->pass(kByteOrderMark.size());
    size_t first = 0;
    while ((first = input->rest().find_first_not_of(" \t\r\n")) == std::string_view::npos && input->fill()) {
    }
    if (first != std::string_view::npos && input->rest()[first] == '{')
        return std::make_unique<JsonRecordReader>(std::move(input));
    return std::make_unique<XmlRecordReader>(std::move(input));
}

std::unique_ptr<RecordWriter> make_record_writer(std::FILE* file, RecordFormat format) {
    if (format == RecordFormat::kJsonLines) return std::make_unique<JsonRecordWriter>(file);
    return std::make_unique<XmlRecordWriter>(file, format == RecordFormat::kBinaryXml);
}

bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
        const unsigned first = byte(i);
        const size_t more = first < 0x80 ? 0 : first < 0xC2 ? 9 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        if (more == 9 || first > 0xF4 || text.size() - i <= more) return false;
        for (size_t k = 1; k <= more; ++k)
            if ((byte(i + k) & 0xC0) != 0x80) return false;
        if (more >= 2) {  // neither longer than need be, nor half of a pair, nor past the last one
            const unsigned second = byte(i + 1);
            if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
                return false;
        }
        i += more + 1;
    }
    return true;
}

void append_utf8(std::string& to, uint32_t code) {
    if (code < 0x80) {
        to += static_cast<char>(code);
    } else if (code < 0x800) {
        to += static_cast<char>(0xC0 | code >> 6);
        to += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        to += static_cast<char>(0xE0 | code >> 12);
        to += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        to += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        to += static_cast<char>(0xF0 | code >> 18);
        to += static_cast<char>(0x80 | (code >> 12 & 0x3F));
        to += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        to += static_cast<char>(0x80 | (code & 0x3F));
    }
}

void check_room_for_label(const Record& record) {
    constexpr size_t kMost = 4'096;
    if (record.fields().size() + record.tags().size() >= kMost)
        throw Error(ErrorCode::kBadInput, fmt::format("a record has more than {} labels", kMost));
}

}  // namespace heddle::streams
