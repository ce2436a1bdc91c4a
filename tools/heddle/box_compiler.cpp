#include "box_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/subprocess.hpp"
#include "heddle/error.hpp"
#include "streams/preprocessor.hpp"

namespace heddle::tool {
namespace {

using streams::BoxDefinition;
using streams::LabelKind;

/// Where C4SNet.h is: beside the installed command, or in the source tree.
std::string header_folder() {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const std::filesystem::path& folder :
         {own / "../include/heddle/compat", own / "../../include/heddle/compat",
          own / "../../../include/heddle/compat",
          std::filesystem::path(HEDDLE_SOURCE_FOLDER "/include/heddle/compat")})
        if (std::filesystem::exists(folder / "C4SNet.h")) return folder.lexically_normal().string();
    throw Error(ErrorCode::kUnavailable,
                "C4SNet.h, which boxes in C include, is neither beside this command nor in its source tree");
}

using BoxVisitor = std::function<void(const BoxDefinition&)>;

void for_each_box(const std::vector<std::unique_ptr<streams::NetDefinition>>& nets,
                  const std::vector<std::unique_ptr<BoxDefinition>>& boxes, const BoxVisitor& visit) {
    for (const auto& box : boxes) visit(*box);
    for (const auto& net : nets) for_each_box(net->nets, net->boxes, visit);
}

/// Also those of the programs whose nets it uses.
void for_each_box(const streams::Program& program, const BoxVisitor& visit) {
    for_each_box(program.nets, program.boxes, visit);
    for (const auto& other : program.externals) for_each_box(*other, visit);
}

bool is_field(const streams::Entry& entry) {
    return entry.label.kind() == LabelKind::kField;
}

/// Each by its label; a tag that has a field's name, or a tag's, with "_tag" or "_btag" behind it.
std::vector<std::string> argument_names(const BoxDefinition& box) {
    std::vector<std::string> names;
    std::set<std::string> fields, tags;
    for (const streams::Entry& entry : box.input) {
        const LabelKind kind = entry.label.kind();
        if (kind == LabelKind::kField) fields.insert(entry.label.name());
        if (kind == LabelKind::kTag) tags.insert(entry.label.name());
    }
    for (const streams::Entry& entry : box.input) {
        const std::string& name = entry.label.name();
        const bool is_binding = entry.label.kind() == LabelKind::kBindingTag;
        const bool is_taken =
            !is_field(entry) && (fields.contains(name) || (is_binding && tags.contains(name)));
        names.push_back(!is_taken ? name : name + (is_binding ? "_btag" : "_tag"));
    }
    return names;
}

/// "void *f(void *hnd, c4snet_data_t *a, int b)".
std::string prototype_of(const BoxDefinition& box) {
    const std::vector<std::string> names = argument_names(box);
    std::string text = fmt::format("void *{}(void *hnd", box.name);
    for (size_t i = 0; i < names.size(); ++i)
        text += fmt::format(", {}{}", is_field(box.input[i]) ? "c4snet_data_t *" : "int ", names[i]);
    return text + ")";
}

std::string line_of(streams::Place place) {
    return place.source->line_directive(place) + "\n";
}

/// The code without its includes, which are added to `includes`.
std::string take_includes(const BoxDefinition& box, std::string& includes) {
    std::string code;
    const std::string_view text = box.code;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        const size_t first = std::min(line.find_first_not_of(" \t"), line.size());
        std::string_view what;
        for (const std::string_view word : {streams::kIncludeOfCode, std::string_view("#include")})
            if (what.empty() && line.substr(first).starts_with(word)) what = line.substr(first + word.size());
        streams::Place place = box.code_place;
        place.offset += static_cast<uint32_t>(begin);
        if (!what.empty())
            includes += fmt::format("{}#include {}\n", line_of(place), what);
        else
            code += line;
        if (end < text.size()) code += '\n';
        begin = end + 1;
    }
    return code;
}

}  // namespace

std::string parameters_of(const BoxDefinition& box) {
    std::string text;
    for (const streams::Entry& entry : box.input)
        text += fmt::format("{}{}", text.empty() ? "" : ",", is_field(entry) ? "c4snet_data_t*" : "int");
    return text;
}

void check_languages(const streams::Program& program) {
    for_each_box(program, [](const BoxDefinition& box) {
        if (!box.language.empty() && box.language != "C")
            box.place.source->fail(box.place,
                                   fmt::format("boxes are written in C here, not in {}", box.language));
    });
}

BoxCompiler::BoxCompiler(const streams::Program& program) : program_(program) {
    check_languages(program);
}

bool BoxCompiler::compiles(const std::string& file) {
    constexpr std::array<std::string_view, 5> kEndings{".c", ".cpp", ".cc", ".cxx", ".C"};
    return std::ranges::any_of(kEndings, [&](std::string_view ending) { return file.ends_with(ending); });
}

std::string BoxCompiler::compile(const std::string& file) {
    std::string declared = "#include <C4SNet.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
    std::set<std::string> names;
    for_each_box(program_, [&](const BoxDefinition& box) {
        if (box.language.empty() && names.insert(box.name).second)
            declared += line_of(box.place) + prototype_of(box) + ";\n";
    });
    declared += "#ifdef __cplusplus\n}\n#endif\n";
    return compile(file, file, declared);
}

std::string BoxCompiler::compile_in_line() {
    std::string functions,
        includes = "#include <C4SNet.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";
    for_each_box(program_, [&](const BoxDefinition& box) {
        if (box.language.empty()) return;
        const std::string code = take_includes(box, includes);
        functions += fmt::format("{}{}\n{{\n{}{}\n    return hnd;\n}}\n", line_of(box.place),
                                 prototype_of(box), line_of(box.code_place), code);
    });
    if (functions.empty()) return {};
    const std::string file = folder_.path() + "/in_line.c";
    std::ofstream(file) << includes << functions;
    return compile(file, "the code in " + program_.source.name(), "");
}

std::string BoxCompiler::compile(const std::string& file, const std::string& called,
                                 const std::string& first) {
    const std::string number = std::to_string(count_++),
                      object = fmt::format("{}/{}.so", folder_.path(), number),
                      header = fmt::format("{}/{}.h", folder_.path(), number);
    std::ofstream(header) << first;
    std::vector<std::string> command{file.ends_with(".c") ? "cc" : "c++", "-O2", "-shared", "-fPIC"};
    for (const std::string& folder :
         {header_folder(), std::filesystem::absolute(file).parent_path().string(),
          std::filesystem::absolute(program_.source.name()).parent_path().string()})
        command.push_back("-I" + folder);
    command.insert(command.end(), {"-include", header, "-o", object, file, "-lm"});
    const Output output = output_of(command);
    if (output.exit_code != 0)
        throw Error(ErrorCode::kBadInput, fmt::format("{} cannot be compiled:\n{}", called, output.errors));
    return object;
}

}  // namespace heddle::tool
