// Any names as variables of the environment: each unknown one is reported in one line, and known ones are
// not.
#include "base/settings.hpp"

#include <unistd.h>

#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"

using heddle::test::require;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // One variable a line; zeros would end it for the system as well.
    std::vector<std::string> variables;
    std::string line = "HEDDLE_";
    for (size_t i = 0; i < size && variables.size() < 64; ++i) {
        if (data[i] == '\n' || data[i] == '\0') {
            variables.push_back(line);
            line = i + 1 < size && data[i + 1] == '!' ? "" : "HEDDLE_";
        } else {
            line += static_cast<char>(data[i]);
        }
    }
    variables.push_back(line);
    std::vector<char*> entries;
    for (std::string& variable : variables) entries.push_back(variable.data());
    entries.push_back(nullptr);
    char** before = environ;
    environ = entries.data();
    const std::vector<std::string> unknown = heddle::unknown_settings();
    for (const heddle::Setting& known : heddle::settings()) (void)heddle::setting(known.name);
    environ = before;
    require(unknown.size() <= variables.size(), "a variable is reported once");
    for (const std::string& report : unknown)
        require(report.find('\n') == std::string::npos, "a report is one line");
    return 0;
}
