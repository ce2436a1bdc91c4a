#include "cores/arbiter_start.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <string>

#include "base/plug_ins.hpp"
#include "base/subprocess.hpp"
#include "heddle/error.hpp"

namespace heddle {

void start_arbiter() {
    // Who gave a program more rights than its user has did not mean them for another one.
    if (::getauxval(AT_SECURE) != 0)
        throw Error(ErrorCode::kUnavailable, "a program with rights of its own starts no arbiter");
    const std::string library = library_folder();
    // Of a library in lib or lib/x86_64-linux-gnu, of a program in bin, bench or libexec/heddle/bench.
    for (const char* place : {"/../bin/heddle", "/../../bin/heddle", "/../../../bin/heddle"}) {
        const std::string launcher = library + place;
        if (::access(launcher.c_str(), X_OK) != 0) continue;
        const Output output = output_of({launcher, "start"});
        if (!output.text.empty()) return;  // where it listens
        throw Error(ErrorCode::kUnavailable, output.errors.substr(0, output.errors.find('\n')));
    }
    throw Error(ErrorCode::kUnavailable, fmt::format("heddle is not installed beside {}", library));
}

}  // namespace heddle
