#include "engine_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "heddle/error.hpp"
#include "heddle/task.hpp"

namespace heddle::tool {

std::vector<std::string> split_engines(const std::vector<std::string>& lists) {
    std::vector<std::string> names;
    for (const std::string& list : lists)
        for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
            end = list.find(',', begin);
            names.push_back(list.substr(begin, end == std::string::npos ? end : end - begin));
            if (names.back().empty())
                throw UsageError(fmt::format(
                    "--engine: a name is missing in '{}'; it is a list of names with one comma between two",
                    list));
        }
    return names;
}

void check_engines(const std::vector<std::string>& names) {
    const std::vector<EngineInfo> known = Runtime::engines();
    for (const std::string& name : names) {
        const auto found = std::ranges::find(known, name, &EngineInfo::name);
        if (found != known.end() && found->available) continue;
        try {
            Runtime probe(RuntimeOptions{name, {}, 1});  // finds a name in other letters, too
        } catch (const Error& error) {
            if (error.code() == ErrorCode::kInvalidArgument) throw UsageError(error.what());
            throw;
        }
    }
}

}  // namespace heddle::tool
