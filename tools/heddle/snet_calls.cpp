#include "snet_calls.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <sstream>

#include "command.hpp"
#include "heddle/error.hpp"

namespace heddle::tool {
namespace {

constexpr int kMost = 1024;

void add_names(const std::vector<std::unique_ptr<streams::NetDefinition>>& nets,
               const std::vector<std::unique_ptr<streams::BoxDefinition>>& boxes,
               std::set<std::string>& names) {
    for (const auto& box : boxes) names.insert(box->name);
    for (const auto& net : nets) add_names(net->nets, net->boxes, names);
}

/// Also those of the programs whose nets it uses.
void add_names(const streams::Program& program, std::set<std::string>& names) {
    add_names(program.nets, program.boxes, names);
    for (const auto& other : program.externals) add_names(*other, names);
}

}  // namespace

SnetCalls::SnetCalls(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        streams::BoxCalls calls{0, false};
        const char* const end = word.data() + word.size();
        const char* at = std::from_chars(word.data(), end, calls.most).ptr;
        if (at != end && *at == 'D') {
            calls.ordered = true;
            ++at;
        }
        if (calls.most < 1 || calls.most > kMost || (at != end && *at != ':'))
            throw UsageError(
                fmt::format("\"{}\" is no number of calls: write 4, 4D (in order), 4:box,box or "
                            "4D:box, with numbers from 1 to {}",
                            word, kMost));
        if (at == end) {
            others_ = calls;
            continue;
        }
        std::istringstream names(std::string(at + 1, end));
        for (std::string name; std::getline(names, name, ',');) named_[name] = calls;
    }
}

streams::BoxCalls SnetCalls::of(const streams::BoxDefinition& box) const {
    const auto named = named_.find(box.name);
    return named == named_.end() ? others_ : named->second;
}

void SnetCalls::check(const streams::Program& program) const {
    std::set<std::string> names;
    add_names(program, names);
    for (const auto& [name, calls] : named_)
        if (!names.contains(name))
            throw Error(ErrorCode::kBadInput,
                        fmt::format("--calls names the box \"{}\", which the program does not have", name));
}

}  // namespace heddle::tool
