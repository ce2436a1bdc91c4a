// CpuSet: a set of CPUs by their operating-system index, of any size.
//
// A value: copied freely, owned by whoever holds it, no locks. Text forms are those of the Linux kernel: the
// list "0-3,8" and the hexadecimal mask "0f" (see cpuset(7)).
#pragma once

#include <sched.h>

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/export.hpp"

namespace heddle {

class HEDDLE_API CpuSet {
  public:
    /// No CPU index at or above this one is accepted from text; a guard against "0-4000000000".
    static constexpr int kMaxCpus = 1 << 16;

    CpuSet() = default;
    CpuSet(std::initializer_list<int> cpus);

    /// CPUs first..last-1. Throws kInvalidArgument unless 0 <= first <= last <= kMaxCpus.
    [[nodiscard]] static CpuSet range(int first, int last);
    /// Parses the kernel's list form, "0-3,8,10-11" or "" for the empty set.
    /// Throws kBadInput naming the offending part.
    [[nodiscard]] static CpuSet parse(std::string_view list);
    /// Converts from what sched_getaffinity(2) filled in; bytes is CPU_ALLOC_SIZE of it.
    [[nodiscard]] static CpuSet from_native(const cpu_set_t* set, size_t bytes);

    /// Adds or removes one CPU. Throws kInvalidArgument for a CPU outside 0..kMaxCpus-1.
    void insert(int cpu);
    void erase(int cpu);

    [[nodiscard]] bool contains(int cpu) const noexcept;
    [[nodiscard]] bool contains(const CpuSet& other) const noexcept;
    [[nodiscard]] bool intersects(const CpuSet& other) const noexcept;
    [[nodiscard]] int count() const noexcept;
    [[nodiscard]] bool empty() const noexcept;
    /// The lowest CPU, or -1 in an empty set; the next one above `cpu`, or -1.
    [[nodiscard]] int first() const noexcept { return next(-1); }
    [[nodiscard]] int next(int cpu) const noexcept;
    /// The highest CPU, or -1.
    [[nodiscard]] int last() const noexcept;

    CpuSet& operator|=(const CpuSet& other);
    CpuSet& operator&=(const CpuSet& other);
    /// Set difference.
    CpuSet& operator-=(const CpuSet& other);
    friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
    friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
    friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
    friend HEDDLE_API bool operator==(const CpuSet& a, const CpuSet& b) noexcept;

    /// "0-3,8"; "" for the empty set. parse(to_list()) is the identity.
    [[nodiscard]] std::string to_list() const;
    /// For sched_setaffinity(2): exactly as many whole words as needed for `cpus` CPUs (default: up to
    /// last()).
    [[nodiscard]] std::vector<unsigned long> to_native(int cpus = 0) const;

    /// Iterates over the CPUs in ascending order.
    class iterator {
      public:
        using value_type = int;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        using pointer = const int*;
        using reference = int;
        iterator(const CpuSet* set, int cpu) : set_(set), cpu_(cpu) {}
        int operator*() const noexcept { return cpu_; }
        iterator& operator++() noexcept {
            cpu_ = set_->next(cpu_);
            return *this;
        }
        friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.cpu_ == b.cpu_; }

      private:
        const CpuSet* set_;
        int cpu_;
    };
    [[nodiscard]] iterator begin() const noexcept { return {this, first()}; }
    [[nodiscard]] iterator end() const noexcept { return {this, -1}; }

  private:
    static constexpr int kWordBits = 64;
    void trim() noexcept;  // keeps words_ without trailing zeros, so that equality is word-wise

    std::vector<uint64_t> words_;
};

}  // namespace heddle
