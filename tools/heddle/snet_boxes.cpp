#include "snet_boxes.hpp"

#include <dlfcn.h>
#include <ffi.h>
#include <fmt/format.h>
#include <link.h>

#include <boost/container/small_vector.hpp>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/subprocess.hpp"
#include "heddle/error.hpp"
#include "streams/c4snet.hpp"

namespace heddle::tool {
namespace {

using streams::BoxCall;
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

/// The function of a box whose body is a part of the program.
std::string function_text(const BoxDefinition& box) {
    std::string arguments = "void *hnd";
    for (const streams::Entry& entry : box.input)
        arguments +=
            fmt::format(", {}{}", entry.label.kind() == LabelKind::kField ? "c4snet_data_t *" : "int ",
                        entry.label.name());
    return fmt::format("void *{}({})\n{{\n{}\n{}\n    return hnd;\n}}\n", box.name, arguments,
                       box.code_place.source->line_directive(box.code_place), box.code);
}

/// Calls C functions of a box's signature.
class Signature {
  public:
    explicit Signature(const BoxDefinition& box) {
        types_.push_back(&ffi_type_pointer);
        for (const streams::Entry& entry : box.input)
            types_.push_back(entry.label.kind() == LabelKind::kField ? &ffi_type_pointer : &ffi_type_sint);
        if (ffi_prep_cif(&interface_, FFI_DEFAULT_ABI, static_cast<unsigned>(types_.size()),
                         &ffi_type_pointer, types_.data()) != FFI_OK)
            throw Error(ErrorCode::kLimit, fmt::format("the box \"{}\" has too many arguments", box.name));
    }
    Signature(const Signature&) = delete;
    Signature& operator=(const Signature&) = delete;

    void call(void* function, BoxCall& box) {
        const auto values = box.arguments();
        // The box's own from when it is called: before that another argument may be none.
        Arguments arguments(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            const auto* const field = std::get_if<streams::Field>(&values[i]);
            arguments[i].is_field = field != nullptr;
            if (field != nullptr)
                arguments[i].field.reset(streams::data_of(*field));
            else
                arguments[i].number = std::get<int>(values[i]);
        }
        streams::C4Handle handle(box);
        if (arguments.size() <= kMostDirect)
            call_directly(function, &handle, {arguments.data(), arguments.size()});
        else
            call_by_ffi(function, &handle, arguments);
        handle.finish();
    }

  private:
    struct FreeData {
        void operator()(c4snet_data_t* data) const { C4SNetFree(data); }
    };
    struct Argument {
        bool is_field = false;
        std::unique_ptr<c4snet_data_t, FreeData> field;
        int number = 0;
    };
    /// On the stack, as far as most boxes go.
    using Arguments = boost::container::small_vector<Argument, 8>;
    /// A call that libffi puts together costs as much as a short box.
    static constexpr size_t kMostDirect = 4;

    template <class... Known>
    static void call_directly(void* function, void* handle, std::span<Argument> rest, Known... known) {
        if (rest.empty()) {
            reinterpret_cast<void* (*)(void*, Known...)>(function)(handle, known...);
        } else if constexpr (sizeof...(Known) < kMostDirect) {
            Argument& next = rest.front();
            if (next.is_field)
                call_directly(function, handle, rest.subspan(1), known..., next.field.release());
            else
                call_directly(function, handle, rest.subspan(1), known..., next.number);
        }
    }
    void call_by_ffi(void* function, void* handle, Arguments& arguments) {
        std::vector<void*> pointers{handle}, at;
        for (const Argument& one : arguments) pointers.push_back(one.field.get());
        at.push_back(&pointers[0]);
        for (size_t i = 0; i < arguments.size(); ++i)
            at.push_back(arguments[i].is_field ? static_cast<void*>(&pointers[i + 1]) : &arguments[i].number);
        void* result = nullptr;
        for (Argument& one : arguments) (void)one.field.release();
        ffi_call(&interface_, FFI_FN(function), &result, at.data());
    }

    ffi_cif interface_{};
    std::vector<ffi_type*> types_;
};

}  // namespace

SnetBoxes::SnetBoxes(const streams::Program& program, const std::vector<std::string>& files) {
    for (const std::string& file : files) {
        if (file.ends_with(".c"))
            compile(file, file);
        else
            load(file);
    }
    std::string text;
    for_each_box(program, [&](const BoxDefinition& box) {
        if (box.language.empty()) return;
        if (box.language != "C")
            throw Error(ErrorCode::kBadInput,
                        program.source.report(
                            box.place, fmt::format("boxes are written in C here, not in {}", box.language)));
        text += function_text(box);
    });
    if (!text.empty()) compile_in_line(program, text);
    // All is loaded: a program that is killed leaves nothing behind.
    folder_.reset();
}

void SnetBoxes::compile_in_line(const streams::Program& program, const std::string& text) {
    if (folder_ == nullptr) folder_ = std::make_unique<TemporaryFolder>("/tmp/heddle-boxes-");
    const std::string source = folder_->path() + "/in_line.c";
    std::ofstream(source)
        << "#include <C4SNet.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        << text;
    compile(source, "the code in " + program.source.name());
}

SnetBoxes::~SnetBoxes() {
    for (void* library : libraries_) ::dlclose(library);
}

void SnetBoxes::compile(const std::string& source, const std::string& called) {
    if (folder_ == nullptr) folder_ = std::make_unique<TemporaryFolder>("/tmp/heddle-boxes-");
    const std::string object = fmt::format("{}/{}.so", folder_->path(), libraries_.size());
    const Output output = output_of({"cc", "-O2", "-shared", "-fPIC", "-I" + header_folder(),
                                     "-I" + std::filesystem::absolute(source).parent_path().string(), "-o",
                                     object, source, "-lm"});
    if (output.exit_code != 0)
        throw Error(ErrorCode::kBadInput, fmt::format("{} cannot be compiled:\n{}", called, output.errors));
    load(object);
    names_.back() = called;
}

void SnetBoxes::load(const std::string& file) {
    const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("the boxes of {} cannot be loaded: {}", file, ::dlerror()));
    libraries_.push_back(library);
    names_.push_back(file);
}

namespace {

/// Null where the library has none itself: dlsym() looks into what it needs, too, as the C library, whose
/// write() is no box.
void* own_symbol(void* library, const std::string& name) {
    void* const found = ::dlsym(library, name.c_str());
    link_map* own = nullptr;
    void* of = nullptr;
    Dl_info where;
    const bool known = found != nullptr && ::dlinfo(library, RTLD_DI_LINKMAP, &own) == 0 &&
                       ::dladdr1(found, &where, &of, RTLD_DL_LINKMAP) != 0;
    return known && of == own ? found : nullptr;
}

}  // namespace

streams::BoxFunction SnetBoxes::find(const BoxDefinition& box) const {
    void* function = nullptr;
    for (void* library : libraries_)
        if (function == nullptr) function = own_symbol(library, box.name);
    if (function == nullptr)
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("there is no function for the box \"{}\" in {}: name a shared object or a C "
                        "file that has it with --boxes",
                        box.name, names_.empty() ? "any file" : fmt::format("{}", fmt::join(names_, ", "))));
    auto signature = std::make_shared<Signature>(box);
    return [function, signature](BoxCall& call) { signature->call(function, call); };
}

}  // namespace heddle::tool
