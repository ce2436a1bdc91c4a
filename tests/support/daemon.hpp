// Daemon: a real heddled of this build on a private socket in a folder of its own, never the user's.
//
// Owned by one thread of a test. It may be killed and started again on the same socket.
#pragma once

#include "support/child.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {

inline const std::string kHeddle = HEDDLE_BUILD_DIR "/bin/heddle";

class Daemon {
  public:
    struct Options {
        std::string topology;  ///< empty: the real machine
        std::vector<std::string> arguments;
        std::vector<std::string> variables;
        std::string program = HEDDLE_BUILD_DIR "/bin/heddled";
    };

    explicit Daemon(Options options) : options_(std::move(options)) { start(); }
    ~Daemon() { child_.end(); }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    /// Returns when it serves; false where it ended before that (a failpoint, say).
    bool start() {
        int ready[2];
        if (::pipe2(ready, O_CLOEXEC) != 0) return false;
        std::vector<std::string> words = {options_.program, "--socket", path(), "--ready-fd", "3",
                                          "--idle-exit",    "120"};
        words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
        std::vector<std::string> variables = options_.variables;
        if (!options_.topology.empty()) variables.push_back("HEDDLE_TOPOLOGY=" + options_.topology);
        child_ = Child(words, variables, ready[1], folder() + "/log");
        ::close(ready[1]);
        char byte = 0;
        const bool serves = ::read(ready[0], &byte, 1) == 1;
        (void)!::read(ready[0], &byte, 1);  // it closes its end
        ::close(ready[0]);
        return serves;
    }
    void set_variables(std::vector<std::string> variables) { options_.variables = std::move(variables); }

    [[nodiscard]] std::string path() const { return folder() + "/arbiter.sock"; }
    [[nodiscard]] const std::string& folder() const { return folder_.path(); }
    [[nodiscard]] Child& process() { return child_; }
    [[nodiscard]] const Child& process() const { return child_; }
    [[nodiscard]] std::string said() const {
        std::ifstream file(folder() + "/log");
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    Options options_;
    TemporaryFolder folder_;
    Child child_;
};

}  // namespace heddle::test
