#include "base/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "heddle/error.hpp"

namespace heddle {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& name) {
    throw Error(ErrorCode::kSystem, fmt::format("cannot {} {}: {}", what, name, std::strerror(errno)));
}

/// No other file of this machine that is being written has it.
std::string name_while_writing(const std::string& path) {
    static std::atomic<unsigned> files{0};
    return fmt::format("{}.{}-{}.new", path, ::getpid(), files.fetch_add(1));
}

}  // namespace

NewFile::NewFile(std::string path)
    : path_(std::move(path)),
      writing_(name_while_writing(path_)),
      file_(::open(writing_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (!file_.valid()) fail("write", path_);
}

NewFile::~NewFile() {
    if (file_.valid()) ::unlink(writing_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
    write_whole(file_.get(), bytes, path_);
}

void NewFile::keep() {
    if (::fsync(file_.get()) != 0) fail("write", path_);
    if (::rename(writing_.c_str(), path_.c_str()) != 0) fail("write", path_);
    file_ = Descriptor();
}

void write_whole(int fd, std::span<const std::byte> bytes, const std::string& name) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("write", name);
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

}  // namespace heddle
