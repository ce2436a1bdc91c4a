// Recycled: the allocator of containers of nodes (map, list, unordered_map) whose nodes come and go all the
// time. Nodes that were freed wait for the next ones, up to kMost of them.
//
// Each container has its own, and copies of one have none of its nodes; so one thread at a time, as for the
// container. Any two of them are equal: what waits is memory of operator new. AddressSanitizer is to see who
// uses a node that was freed: with it none waits.
#pragma once

#include <cstddef>
#include <new>

#include "base/sanitizers.hpp"

namespace heddle::memory {

template <class T>
class Recycled {
  public:
    using value_type = T;
#if defined(HEDDLE_ADDRESS_SANITIZER)
    static constexpr size_t kMost = 0;
#else
    static constexpr size_t kMost = 512;
#endif

    Recycled() noexcept = default;
    Recycled(const Recycled& /*other*/) noexcept {}
    template <class Other>
    Recycled(const Recycled<Other>& /*other*/) noexcept {}  // NOLINT: allocators convert
    Recycled& operator=(const Recycled& /*other*/) noexcept {
        return *this;
    }
    ~Recycled() {
        while (first_ != nullptr) ::operator delete(take());
    }

    [[nodiscard]] T* allocate(size_t count) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && sizeof(T) >= sizeof(Waiting));
        if (count == 1 && first_ != nullptr) return static_cast<T*>(take());
        if (count > static_cast<size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(count * sizeof(T)));
    }
    void deallocate(T* memory, size_t count) noexcept {
        if (count != 1 || waiting_ == kMost) return ::operator delete(memory);
        first_ = ::new (memory) Waiting{first_};
        ++waiting_;
    }
    friend bool operator==(const Recycled& /*one*/, const Recycled& /*other*/) noexcept {
        return true;
    }

  private:
    struct Waiting {
        Waiting* next;
    };

    [[nodiscard]] void* take() noexcept {
        Waiting* const taken = first_;
        first_ = taken->next;
        --waiting_;
        return taken;
    }

    Waiting* first_ = nullptr;
    size_t waiting_ = 0;
};

}  // namespace heddle::memory
