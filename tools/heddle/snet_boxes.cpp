#include "snet_boxes.hpp"

#include <dlfcn.h>
#include <ffi.h>
#include <fmt/format.h>
#include <link.h>

#include <boost/container/small_vector.hpp>

#include "box_compiler.hpp"
#include "box_crash.hpp"
#include "heddle/error.hpp"
#include "streams/c4snet.hpp"

namespace heddle::tool {
namespace {

using streams::BoxCall;
using streams::BoxDefinition;
using streams::LabelKind;

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
    // All is loaded when it goes: a program that is killed leaves nothing behind.
    BoxCompiler compiler(program);
    for (const std::string& file : files)
        load(BoxCompiler::compiles(file) ? compiler.compile(file) : file, file);
    if (const std::string object = compiler.compile_in_line(); !object.empty())
        load(object, "the code in " + program.source.name());
}

SnetBoxes::~SnetBoxes() {
    for (void* library : libraries_) ::dlclose(library);
}

void SnetBoxes::load(const std::string& file, const std::string& called) {
    const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("the boxes of {} cannot be loaded: {}", called, ::dlerror()));
    libraries_.push_back(library);
    names_.push_back(called);
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

/// Throws where the library says with C4SNET_BOX that the function takes something else.
void check_parameters(void* library, const std::string& file, const BoxDefinition& box) {
    const auto* const stated = static_cast<const char*>(own_symbol(library, "c4snet_box_" + box.name));
    if (stated == nullptr) return;
    std::string text = stated;
    std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
    const std::string wanted = parameters_of(box);
    if (text == wanted) return;
    const auto list = [](const std::string& types) {
        return types.empty() ? "no arguments" : "(" + types + ")";
    };
    box.place.source->fail(box.place, fmt::format("the function of the box \"{}\" in {} takes {} behind its "
                                                  "handle, and by its signature the box takes {}",
                                                  box.name, file, list(text), list(wanted)));
}

}  // namespace

streams::BoxFunction SnetBoxes::find(const BoxDefinition& box) const {
    void* function = nullptr;
    const std::string* file = nullptr;
    for (size_t i = 0; i < libraries_.size(); ++i) {
        void* const found = own_symbol(libraries_[i], box.name);
        if (found == nullptr || found == function) continue;
        if (function != nullptr)
            box.place.source->fail(box.place,
                                   fmt::format("the box \"{}\" has a function in {} and another one in "
                                               "{}: leave one of them out",
                                               box.name, *file, names_[i]));
        check_parameters(libraries_[i], names_[i], box);
        function = found;
        file = &names_[i];
    }
    if (function == nullptr)
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("there is no function for the box \"{}\" in {}: name a shared object, or a "
                        "file of C or C++, that has it with --boxes (in C++ as extern \"C\")",
                        box.name, names_.empty() ? "any file" : fmt::format("{}", fmt::join(names_, ", "))));
    auto signature = std::make_shared<Signature>(box);
    return [function, signature](BoxCall& call) {
        RunningBox running(call);
        signature->call(function, running);
    };
}

}  // namespace heddle::tool
