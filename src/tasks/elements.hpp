// Elements: memory for the elements of a datum, aligned as heddle/data.hpp says.
//
// Owned by one; no thread rules of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "heddle/data.hpp"

namespace heddle {

class Elements {
  public:
    Elements() = default;
    /// Not initialised. Throws std::bad_alloc.
    explicit Elements(size_t bytes) {
        size_t room = bytes + kDataAlignment - 1;
        if (room < bytes) throw std::bad_alloc();
        block_ = std::make_unique_for_overwrite<std::byte[]>(room);
        void* address = block_.get();
        first_ = static_cast<std::byte*>(std::align(kDataAlignment, bytes, address, room));
    }
    [[nodiscard]] std::byte* get() const { return first_; }
    void reset() { block_.reset(), first_ = nullptr; }

  private:
    std::unique_ptr<std::byte[]> block_;
    std::byte* first_ = nullptr;
};

}  // namespace heddle
