// NewFile: a file that is there whole or not at all.
//
// It is written under another name in the same folder, and gets its own, in the place of what was there, when
// it is complete: who reads by that name never finds a part, whatever ends the writer. A writer that is
// killed leaves the file of the other name. A new file in the place of an older one has its owner and mode,
// links lead to the file that is replaced, and what is no file (a device, a pipe) gets the bytes as they
// come. One thread. Every function throws Error kSystem, with the file's name.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/os.hpp"

namespace heddle {

class NewFile {
  public:
    explicit NewFile(std::string path);
    /// Before long work: whether it can be made there. Nothing is left of the attempt, however the work ends;
    /// what is no file is not opened.
    static void check(const std::string& path);
    /// Nothing stays of what was not kept.
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    /// At the end of it.
    void write(std::span<const std::byte> bytes);
    /// It is on its disk, and has its name, when this returns. Once.
    void keep();

  private:
    std::string name_, path_;
    std::string writing_;  ///< empty: what has the name is no file
    Descriptor file_;
};

/// All of them, to a file, a pipe or a terminal; `name` is for the message.
void write_whole(int fd, std::span<const std::byte> bytes, const std::string& name);

}  // namespace heddle
