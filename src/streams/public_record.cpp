// The records of heddle/streams_record.hpp: those of this layer, in the place that the header leaves for
// them.
#include <cxxabi.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/sanitizers.hpp"
#include "heddle/streams_box.hpp"
#include "streams/record.hpp"

namespace heddle::snet {
namespace {

streams::Record& of(void* parts) {
    return *std::launder(static_cast<streams::Record*>(parts));
}
const streams::Record& of(const void* parts) {
    return *std::launder(static_cast<const streams::Record*>(parts));
}

}  // namespace

FieldValue::~FieldValue() = default;
BoxCall::~BoxCall() = default;

Record::Record() noexcept {
    static_assert(sizeof(streams::Record) <= kSize && alignof(streams::Record) <= 8);
    new (parts_) streams::Record();
}
Record::Record(const Record& other) {
    new (parts_) streams::Record(of(other.parts()));
}
Record::Record(Record&& other) noexcept {
    new (parts_) streams::Record(std::move(of(other.parts())));
}
Record& Record::operator=(Record other) noexcept {
    std::swap(of(parts()), of(other.parts()));
    return *this;
}
Record::~Record() {
    of(parts()).~Record();
}

std::string Record::text() const {
    return of(parts()).text();
}
const FieldPointer* Record::field(uint32_t code) const {
    return of(parts()).find_field(streams::Label::of(code));
}
const int* Record::tag(uint32_t code) const {
    return of(parts()).find_tag(streams::Label::of(code));
}
void Record::set_field(uint32_t code, FieldPointer value) {
    of(parts()).set(streams::Label::of(code), std::move(value));
}
void Record::set_tag(uint32_t code, int value) {
    of(parts()).set(streams::Label::of(code), value);
}
void Record::remove(uint32_t code) {
    of(parts()).remove(streams::Label::of(code));
}
FieldPointer Record::take_field(uint32_t code, const std::string& label) {
    if (field(code) == nullptr) fail_missing(label);
    return of(parts()).take_field(streams::Label::of(code));
}
void Record::fail_missing(const std::string& label) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the record {} has no {}", text(), label));
}

namespace detail {

uint32_t label_code(LabelKind kind, std::string_view name) {
    static_assert(static_cast<int>(LabelKind::kBindingTag) ==
                  static_cast<int>(streams::LabelKind::kBindingTag));
    return streams::Label(static_cast<streams::LabelKind>(kind), name).code();
}

bool has_sole_owner(const FieldPointer& value) noexcept {
    if (value.use_count() != 1) return false;
        // Acquire: what the others did with it came before they let it go. A count that goes up and down says
        // that to ThreadSanitizer, too, which knows no fences.
#if defined(HEDDLE_THREAD_SANITIZER)
    const FieldPointer once_more = value;
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    return true;
}

std::string type_name(const std::type_info& type) {
    int status = 0;
    char* const plain = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    std::string name = plain != nullptr ? plain : type.name();
    std::free(plain);
    constexpr std::string_view kString =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    for (size_t at = name.find(kString); at != std::string::npos; at = name.find(kString))
        name.replace(at, kString.size(), "std::string");
    return name;
}

std::string text_of_object(const std::type_info& type) {
    return fmt::format("({})", type_name(type));
}

void fail_type(std::string_view label, const FieldValue* found, const std::type_info& wanted) {
    std::string what = "nothing: its value was taken out";
    if (found != nullptr) {
        // "heddle::snet::detail::Typed<long>": its argument is what its writer knows.
        what = type_name(typeid(*found));
        if (const size_t open = what.find('<'); found->interface() == "C++" && open != std::string::npos)
            what = what.substr(open + 1, what.size() - open - 2);
        else
            what = fmt::format("data of {}", found->interface());
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the field {} holds {}, not {}", label, what, type_name(wanted)));
}

void fail_shared(std::string_view label, const std::type_info& type) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the field {} is shared by several records, and a {} cannot be copied: take it by "
                    "const reference or as a std::shared_ptr<const ...>",
                    label, type_name(type)));
}

}  // namespace detail
}  // namespace heddle::snet
