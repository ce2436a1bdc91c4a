// ComponentTable: who uses which CPU inside this process, as the client page shows it to the arbiter
// (protocol.h), which reads it when somebody asks for the status.
//
// Belongs to whoever shares a process's CPUs among components (Outside), or has them for one pool
// (ArbiterCpus); processes without an arbiter have none. Thread-safe. The owner writes each change as it is
// decided: a lock that nobody else wants and a store of a byte, and nobody is woken. The link to the arbiter
// says which page there is, and none between one arbiter and the next: the table remembers what it shows.
// What a killed process had last shown goes with its page.
//
// The page has places for HEDDLE_COMPONENTS names. One that is full gives the place of a component without
// CPUs to the next; a component that finds none is there without a name. A reader may find the new name at a
// CPU that has just been the old one's, or half of each, as it may find any bytes from a hostile process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "cores/protocol.h"
#include "cores/short_lock.hpp"
#include "heddle/cores.hpp"

namespace heddle {

class ComponentTable {
  public:
    /// From now on the component uses the CPU. `component` is its number, and 0 nobody; numbers that were
    /// seen with one name are not seen with another. Components with one name are shown as one.
    void set(int cpu, uint32_t component, std::string_view name) noexcept;

    /// What each of these components has done. Those with one name are added up; of others nothing is shown.
    struct Work {
        uint32_t component;
        std::string_view name;
        WorkCounts counts;
    };
    void show_work(std::span<const Work> all) noexcept;

    /// Shows all on this page, which is empty, from now on. Null: on none; the last one is not written to
    /// any more when this returns.
    void show_on(heddle_client_page* page) noexcept;
    /// In a forked child, where the page is gone and another thread may have had the lock: from now on this
    /// does nothing.
    void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }

  private:
    using Name = std::array<uint64_t, HEDDLE_COMPONENT_WORDS>;
    struct Place {
        Name name{};  // zeros: never used
        int cpus = 0;
    };
    struct Known {
        uint32_t component = 0;
        uint8_t user = 0;
    };
    static constexpr uint8_t kNobody = 0;
    static constexpr uint8_t kNameless = 0xff;
    static_assert(HEDDLE_COMPONENTS < kNameless);

    [[nodiscard]] static Name encode(std::string_view name) noexcept;
    [[nodiscard]] uint8_t user_of(uint32_t component, std::string_view name) noexcept;
    [[nodiscard]] uint8_t find_place(const Name& name) noexcept;
    void show_name(size_t place) noexcept;
    void count(uint8_t user, int change) noexcept;

    std::atomic<bool> abandoned_{false};  // set once, by the only thread of a forked child
    ShortLock lock_;                      // for all below
    heddle_client_page* page_ = nullptr;
    std::array<Place, HEDDLE_COMPONENTS> places_{};
    std::array<uint8_t, HEDDLE_MAX_CPUS> users_{};  // as in the page
    std::array<Known, 64> known_{};                 // by number, modulo: saves comparing names
};

}  // namespace heddle
