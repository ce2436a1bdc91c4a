// HandleTable: objects of the C interface by numbers that tell whether the object is still there.
//
// A handle is the place of its object, the kind of that, and how often the place was used before, so that one
// that was destroyed, never made, or is of something else is found out. Looking up takes no lock and costs
// two loads; adding and removing take one. Any thread; but who looks an object up must know that no other
// thread removes it meanwhile. The table stays for the life of the process.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace heddle {

/// Numbers the tables of a process.
inline uintptr_t next_kind_of_handle() noexcept {
    static std::atomic<uintptr_t> kinds{0};
    return kinds.fetch_add(1, std::memory_order_relaxed);
}

template <class T>
class HandleTable {
  public:
    /// Never destroyed: threads that outlive main may still hold handles.
    static HandleTable& process() {
        static auto* table = new HandleTable;
        return *table;
    }

    /// Throws std::bad_alloc.
    [[nodiscard]] uintptr_t add(std::unique_ptr<T> object) {
        const std::lock_guard guard(mutex_);
        if (free_.empty()) grow();
        const uintptr_t place = free_.back();
        free_.pop_back();
        Slot& slot = at(place);
        slot.object.store(object.release(), std::memory_order_release);
        return uses_and_kind(slot) << kPlaceBits | (place + 1);
    }

    /// Null where the handle is none.
    [[nodiscard]] T* find(uintptr_t handle) const noexcept {
        Slot* slot = slot_of(handle);
        return slot == nullptr ? nullptr : slot->object.load(std::memory_order_acquire);
    }

    [[nodiscard]] std::unique_ptr<T> remove(uintptr_t handle) noexcept {
        const std::lock_guard guard(mutex_);
        Slot* slot = slot_of(handle);
        if (slot == nullptr) return nullptr;
        std::unique_ptr<T> object(slot->object.exchange(nullptr, std::memory_order_acq_rel));
        // A place whose uses do not fit any more is not used again.
        if (object != nullptr && ++slot->uses < kMostUses) free_.push_back((handle & kPlaceMask) - 1);
        return object;
    }

  private:
    struct Slot {
        std::atomic<T*> object{nullptr};
        std::atomic<uintptr_t> uses{0};  // written under the mutex
    };
    static constexpr int kPlaceBits = sizeof(uintptr_t) * 4;
    static constexpr uintptr_t kPlaceMask = (uintptr_t{1} << kPlaceBits) - 1;
    static constexpr int kKindBits = sizeof(uintptr_t);
    static constexpr uintptr_t kKindMask = (uintptr_t{1} << kKindBits) - 1;
    static constexpr uintptr_t kMostUses = kPlaceMask >> kKindBits;
    static constexpr uintptr_t kFirstRow = 64;

    /// Places 0 to 63 are row 0; each row after it is as long as all before it.
    [[nodiscard]] static size_t row_of(uintptr_t place) {
        return static_cast<size_t>(std::bit_width(place / kFirstRow));
    }
    [[nodiscard]] static uintptr_t begin_of(size_t row) { return row == 0 ? 0 : kFirstRow << (row - 1); }

    [[nodiscard]] Slot& at(uintptr_t place) const noexcept {
        const size_t row = row_of(place);
        return rows_[row].load(std::memory_order_acquire)[place - begin_of(row)];
    }

    [[nodiscard]] uintptr_t uses_and_kind(const Slot& slot) const noexcept {
        return slot.uses.load(std::memory_order_acquire) << kKindBits | kind_;
    }

    [[nodiscard]] Slot* slot_of(uintptr_t handle) const noexcept {
        const uintptr_t place = (handle & kPlaceMask) - 1;
        if (place >= kPlaceMask || row_of(place) >= rows_.size()) return nullptr;
        if (rows_[row_of(place)].load(std::memory_order_acquire) == nullptr) return nullptr;
        Slot& slot = at(place);
        return uses_and_kind(slot) == handle >> kPlaceBits ? &slot : nullptr;
    }

    void grow() {
        const uintptr_t count = row_count_ == 0 ? kFirstRow : begin_of(row_count_);
        if (row_count_ == rows_.size()) throw std::bad_alloc();
        free_.reserve(begin_of(row_count_) + count);
        rows_[row_count_].store(new Slot[count], std::memory_order_release);
        for (uintptr_t i = count; i-- > 0;) free_.push_back(begin_of(row_count_) + i);
        ++row_count_;
    }

    const uintptr_t kind_ = next_kind_of_handle() & kKindMask;
    std::mutex mutex_;
    std::vector<uintptr_t> free_;
    size_t row_count_ = 0;
    // Written under the mutex with release; who looks up reads with acquire, and so sees the row's slots.
    std::array<std::atomic<Slot*>, 24> rows_{};
};

/// No exception leaves a C call: what `call` throws becomes what `note_error` returns, which is called where
/// the exception is being handled.
template <class Code, class Call>
Code ends_in(Code success, Code (*note_error)() noexcept, Call&& call) noexcept {
    try {
        call();
        return success;
    } catch (...) {
        return note_error();
    }
}

template <class Handle, class Object>
Handle* handle_of(std::unique_ptr<Object> object) {
    return reinterpret_cast<Handle*>(HandleTable<Object>::process().add(std::move(object)));
}

/// Null where the handle is none.
template <class Object>
std::unique_ptr<Object> taken(const void* handle) noexcept {
    return HandleTable<Object>::process().remove(reinterpret_cast<uintptr_t>(handle));
}

}  // namespace heddle
