#include "base/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "heddle/error.hpp"

namespace heddle {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& name) {
    throw Error(ErrorCode::kSystem, fmt::format("cannot {} {}: {}", what, name, std::strerror(errno)));
}

}  // namespace

NewFile::NewFile(std::string path) : path_(std::move(path)) {
    // Another process may have had this number, and been killed: as where each container has its own first
    // one.
    static std::atomic<unsigned> files{0};
    do {
        writing_ = fmt::format("{}.{}-{}.new", path_, ::getpid(), files.fetch_add(1));
        file_ = Descriptor(::open(writing_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (!file_.valid() && errno == EEXIST);
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
    // The name is its folder's. A folder that may not be read is written with all else on its disk.
    const std::string folder = std::filesystem::path(path_).parent_path();
    const Descriptor names(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if ((!names.valid() || ::fsync(names.get()) != 0) && ::syncfs(file_.get()) != 0) fail("write", path_);
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
