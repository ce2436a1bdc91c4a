#include "engine_names.hpp"

#include <algorithm>

#include "command.hpp"
#include "heddle/error.hpp"
#include "heddle/task.hpp"

namespace heddle::tool {

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
