#include "streams/c4snet.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "streams/c4snet_text.hpp"

struct cdata {
    std::atomic<size_t> references;
    c4snet_type_t type;
    size_t size;
    void* elements;
};

namespace heddle::streams {

void C4Handle::emit(int variant, std::span<BoxValue> values) noexcept {
    if (failure_) return;
    try {
        for (const BoxValue& value : values)
            if (const auto* field = std::get_if<snet::FieldPointer>(&value); field != nullptr)
                if (const auto* own = dynamic_cast<const C4Field*>(field->get());
                    own != nullptr && own->data() == nullptr)
                    throw Error(
                        ErrorCode::kBadInput,
                        fmt::format("the box \"{}\" sends NULL where data of C4SNet are wanted: there "
                                    "was no memory for them, or they were never made",
                                    box_.box().name));
        box_.emit_moved(variant < 0 ? 0 : static_cast<size_t>(variant), values);
    } catch (...) {
        failure_ = std::current_exception();
    }
}

std::string C4Field::text() const {
    return c4snet_text(data_->type, data_->size, data_->elements);
}

c4snet_data_t* data_of(const Field& field) {
    if (const auto* own = dynamic_cast<const C4Field*>(field.get())) return C4SNetShallowCopy(own->data());
    if (field->interface() != kC4SNet)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("a box in C cannot read data of interface=\"{}\": \"C4SNet\" is wanted",
                                field->interface()));
    return read_c4snet_text(field->text());
}

}  // namespace heddle::streams

using heddle::streams::BoxValue;
using heddle::streams::C4Field;
using heddle::streams::C4Handle;

struct container {
    C4Handle* handle;
    int variant;
    std::vector<BoxValue> values;
};

c4snet_data_t* C4SNetAlloc(c4snet_type_t type, size_t size, void** data) {
    const size_t each = heddle::streams::c4snet_size(type);
    if (each == 0 || (size > 0 && size > PTRDIFF_MAX / each)) return nullptr;
    auto* made = static_cast<cdata*>(std::malloc(sizeof(cdata)));
    void* const elements = std::malloc(size == 0 ? 1 : size * each);
    if (made == nullptr || elements == nullptr) {
        std::free(made);
        std::free(elements);
        return nullptr;
    }
    new (made) cdata{1, type, size, elements};
    if (data != nullptr) *data = elements;
    return made;
}

c4snet_data_t* C4SNetCreate(c4snet_type_t type, size_t size, const void* data) {
    if (size > 0 && data == nullptr) return nullptr;
    void* elements = nullptr;
    c4snet_data_t* const made = C4SNetAlloc(type, size, &elements);
    if (made != nullptr && size > 0) std::memcpy(elements, data, size * heddle::streams::c4snet_size(type));
    return made;
}

void C4SNetFree(c4snet_data_t* data) {
    if (data == nullptr || data->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::free(data->elements);
    std::free(data);
}

c4snet_data_t* C4SNetShallowCopy(c4snet_data_t* data) {
    if (data != nullptr) data->references.fetch_add(1, std::memory_order_relaxed);
    return data;
}

c4snet_data_t* C4SNetDeepCopy(c4snet_data_t* data) {
    return data == nullptr ? nullptr : C4SNetCreate(data->type, data->size, data->elements);
}

int C4SNetSizeof(c4snet_data_t* data) {
    return data == nullptr ? 0 : static_cast<int>(heddle::streams::c4snet_size(data->type));
}
size_t C4SNetArraySize(c4snet_data_t* data) {
    return data == nullptr ? 0 : data->size;
}
void* C4SNetGetData(c4snet_data_t* data) {
    return data == nullptr ? nullptr : data->elements;
}
c4snet_type_t C4SNetGetType(c4snet_data_t* data) {
    return data == nullptr ? CTYPE_pointer : data->type;
}

char* C4SNetGetString(c4snet_data_t* data) {
    if (data == nullptr || (data->type != CTYPE_char && data->type != CTYPE_uchar)) return nullptr;
    auto* const text = static_cast<char*>(std::malloc(data->size + 1));
    if (text == nullptr) return nullptr;
    std::memcpy(text, data->elements, data->size);
    text[data->size] = '\0';
    return text;
}

void C4SNetOut(void* hnd, int variant, ...) {
    auto& handle = *static_cast<C4Handle*>(hnd);
    const auto& outputs = handle.box().outputs;
    boost::container::small_vector<BoxValue, 8> values;
    if (variant >= 1 && static_cast<size_t>(variant) <= outputs.size()) {
        va_list arguments;
        va_start(arguments, variant);
        for (const auto& entry : outputs[static_cast<size_t>(variant) - 1]) {
            if (entry.label.kind() == heddle::streams::LabelKind::kField)
                values.emplace_back(std::make_shared<C4Field>(va_arg(arguments, c4snet_data_t*)));
            else
                values.emplace_back(va_arg(arguments, int));
        }
        va_end(arguments);
    }
    handle.emit(variant, {values.data(), values.size()});
}

c4snet_container_t* C4SNetContainerCreate(void* hnd, int variant) {
    return new (std::nothrow) container{static_cast<C4Handle*>(hnd), variant, {}};
}
void C4SNetContainerSetField(c4snet_container_t* container, void* field) {
    auto value = std::make_shared<C4Field>(static_cast<c4snet_data_t*>(field));
    if (container != nullptr) container->values.emplace_back(std::move(value));
}
void C4SNetContainerSetTag(c4snet_container_t* container, int tag) {
    if (container != nullptr) container->values.emplace_back(tag);
}
void C4SNetContainerSetBTag(c4snet_container_t* container, int tag) {
    if (container != nullptr) container->values.emplace_back(tag);
}
void C4SNetContainerOut(c4snet_container_t* container) {
    if (container == nullptr) return;
    container->handle->emit(container->variant, container->values);
    delete container;
}
