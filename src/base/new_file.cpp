#include "base/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
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

/// Where links lead, also to what is not there yet.
std::string followed(const std::string& name) {
    constexpr int kMostLinks = 40;  // as the kernel
    std::filesystem::path path = name;
    for (int links = 0; links < kMostLinks; ++links) {
        std::error_code none;
        const std::filesystem::path to = std::filesystem::read_symlink(path, none);
        if (none) return path;
        path = path.parent_path() / to;
    }
    errno = ELOOP;
    fail("write", name);
}

}  // namespace

void NewFile::check(const std::string& path) {
    struct stat older {};
    if (::stat(path.c_str(), &older) == 0 && !S_ISREG(older.st_mode)) return;
    const NewFile attempt(path);
}

NewFile::NewFile(std::string path) : name_(std::move(path)) {
    struct stat older {};
    const bool has_older = ::stat(name_.c_str(), &older) == 0;
    if (has_older && !S_ISREG(older.st_mode)) {
        file_ = Descriptor(::open(name_.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file_.valid()) fail("write", name_);
        return;
    }
    path_ = followed(name_);
    const mode_t mode = has_older ? older.st_mode & 0777 : 0666;
    // Another process may have had this number, and been killed: as where each container has its own first
    // one.
    static std::atomic<unsigned> files{0};
    do {
        writing_ = fmt::format("{}.{}-{}.new", path_, ::getpid(), files.fetch_add(1));
        file_ = Descriptor(::open(writing_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    } while (!file_.valid() && errno == EEXIST);
    if (!file_.valid()) fail("write", name_);
    if (!has_older) return;
    const bool owned = ::fchown(file_.get(), older.st_uid, older.st_gid) == 0 || errno == EPERM;
    if (owned && ::fchmod(file_.get(), mode) == 0) return;
    const int reason = errno;
    ::unlink(writing_.c_str());
    errno = reason;
    fail("write", name_);
}

NewFile::~NewFile() {
    if (file_.valid() && !writing_.empty()) ::unlink(writing_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
    write_whole(file_.get(), bytes, name_);
}

void NewFile::keep() {
    const bool is_file = !writing_.empty();
    // Of what is no file a disk has it alone.
    if (::fsync(file_.get()) != 0 && (is_file || errno != EINVAL)) fail("write", name_);
    if (is_file) {
        if (::rename(writing_.c_str(), path_.c_str()) != 0) fail("write", name_);
        // The name is its folder's. A folder that may not be read is written with all else on its disk.
        const std::string folder = std::filesystem::path(path_).parent_path();
        const Descriptor names(
            ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if ((!names.valid() || ::fsync(names.get()) != 0) && ::syncfs(file_.get()) != 0) fail("write", name_);
    }
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
