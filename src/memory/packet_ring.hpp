// PacketRing: packets from one process to another, in memory that both have.
//
// One thread pushes at a time and one takes at a time, in whatever processes. A packet is its length and its
// bytes in whole words; it is there with one store of `head_`, so whoever dies while it writes has written
// nothing. `head_` is written by who pushes and `tail_` by who takes: the release of each and the acquire of
// the other order the words between them.
//
// Who takes may sleep, and so may who has found no room. Each says so in a word, passes a full fence, and
// looks once more; the other has done its part before its own fence, and then reads that word. One of the two
// sees the other. Who reads that somebody sleeps takes the word back, and has to wake him: once for each
// sleep. How one is woken is not the ring's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/full_fence.hpp"

namespace heddle::memory {

template <uint64_t Words>
class PacketRing {
  public:
    static_assert((Words & (Words - 1)) == 0, "places are found by a mask");
    static constexpr size_t kMostBytes = (Words - 1) * sizeof(uint64_t);

    // Of who pushes.

    /// False: there is no room now. No more than kMostBytes.
    [[nodiscard]] bool push(std::span<const std::byte> packet) noexcept {
        const uint64_t head = head_.load(std::memory_order_relaxed);
        const uint64_t end = head + words_of(packet.size());
        if (end - known_tail_ > Words) known_tail_ = tail_.load(std::memory_order_acquire);
        if (end - known_tail_ > Words) return false;
        word(head) = packet.size();
        for (uint64_t place = head + 1; place != end; ++place) {
            uint64_t value = 0;
            copy_word(&value, packet.data(), packet.size());
            word(place) = value;
            packet = packet.subspan(std::min(packet.size(), sizeof value));
        }
        head_.store(end, std::memory_order_release);
        return true;
    }
    /// After push(). True: who takes sleeps, and is to be woken.
    [[nodiscard]] bool wakes() noexcept {
        full_fence();
        return asleep_.load(std::memory_order_relaxed) != 0 &&
               asleep_.exchange(0, std::memory_order_relaxed) != 0;
    }
    /// As push(). Where it is false, who takes will read in gives_room() that somebody waits for room.
    [[nodiscard]] bool push_or_wait(std::span<const std::byte> packet) noexcept {
        if (push(packet)) return true;
        wants_room_.store(1, std::memory_order_relaxed);
        full_fence();
        return push(packet);
    }

    // Of who takes.

    [[nodiscard]] bool empty() const noexcept {
        return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
    }
    /// Calls take(packet) for those that are there now, in their order, each out of `buffer`. False: what is
    /// there is none of push(), or longer than the buffer.
    template <class Take>
    [[nodiscard]] bool take(std::span<std::byte> buffer, const Take& take) {
        const uint64_t head = head_.load(std::memory_order_acquire);
        uint64_t tail = tail_.load(std::memory_order_relaxed);
        if (head - tail > Words) return false;
        while (tail != head) {
            const uint64_t size = word(tail);
            if (size > buffer.size() || words_of(size) > head - tail) return false;
            for (uint64_t done = 0; done < size; done += sizeof(uint64_t)) {
                const uint64_t value = word(tail + 1 + done / sizeof value);
                copy_word(buffer.data() + done, &value, size - done);
            }
            tail += words_of(size);
            tail_.store(tail, std::memory_order_release);
            take(std::span<const std::byte>(buffer.first(size)));
        }
        return true;
    }
    /// After take(). True: who pushes waits for room, and is to be woken.
    [[nodiscard]] bool gives_room() noexcept {
        full_fence();
        return wants_room_.load(std::memory_order_relaxed) != 0 &&
               wants_room_.exchange(0, std::memory_order_relaxed) != 0;
    }
    /// Who takes is about to sleep. A full fence and another take() have to follow; what comes after them
    /// wakes it.
    void sleeps() noexcept { asleep_.store(1, std::memory_order_relaxed); }
    /// It looks by itself.
    void looks() noexcept { asleep_.store(0, std::memory_order_relaxed); }

  private:
    [[nodiscard]] static constexpr uint64_t words_of(uint64_t bytes) noexcept {
        return 1 + (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    }
    /// A word, or as much as is left.
    static void copy_word(void* to, const void* from, size_t left) noexcept {
        if (left >= sizeof(uint64_t))
            std::memcpy(to, from, sizeof(uint64_t));
        else
            std::memcpy(to, from, left);
    }
    [[nodiscard]] uint64_t& word(uint64_t place) noexcept { return words_[place & (Words - 1)]; }

    alignas(64) std::atomic<uint64_t> head_{0};
    uint64_t known_tail_ = 0;              // of who pushes: saves it a look at the other's word
    std::atomic<uint32_t> wants_room_{0};  // set by who pushes, taken back by who takes
    alignas(64) std::atomic<uint64_t> tail_{0};
    alignas(64) std::atomic<uint32_t> asleep_{0};  // set by who takes, taken back by either
    alignas(64) std::array<uint64_t, Words> words_{};
};

}  // namespace heddle::memory
