// ThreadMessage: what went wrong last in a thread, for an interface in C. It stands on the heap and not among
// the thread-local variables: a program that loads libheddle.so at run time has little room for those
// (scripts/check-needed). One object an interface, for good; any thread, also one that ends.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace heddle {

class ThreadMessage {
  public:
    ThreadMessage() noexcept : has_key_(::pthread_key_create(&key_, std::free) == 0) {}

    /// So much of it as there is room for.
    void keep(const char* message) noexcept {
        char* const place = own_place();
        if (place == nullptr) return;
        const size_t length = std::min(std::strlen(message), kRoom - 1);
        std::memcpy(place, message, length);
        place[length] = '\0';
    }
    /// Where there was no memory to keep it, that.
    [[nodiscard]] const char* text() const noexcept {
        const void* const place = has_key_ ? ::pthread_getspecific(key_) : nullptr;
        return place == nullptr ? "there is no memory" : static_cast<const char*>(place);
    }

  private:
    static constexpr size_t kRoom = 1024;

    [[nodiscard]] char* own_place() noexcept {
        if (!has_key_) return nullptr;
        void* place = ::pthread_getspecific(key_);
        if (place != nullptr) return static_cast<char*>(place);
        place = std::malloc(kRoom);
        if (place != nullptr && ::pthread_setspecific(key_, place) != 0)
            std::free(std::exchange(place, nullptr));
        return static_cast<char*>(place);
    }

    pthread_key_t key_{};
    const bool has_key_;
};

}  // namespace heddle
