// Numbers, ids and ranges of vmem.hpp. Plain values; any thread.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>

#include "heddle/memory_types.hpp"

namespace vmem {
namespace detail {

/// Throws heddle::Error kInvalidArgument.
[[noreturn]] HEDDLE_API void refuse_negative();
/// Throws heddle::Error kInvalidArgument where the text is no number.
[[nodiscard]] HEDDLE_API uint64_t id_of(const std::string& text);

/// A number that is not mixed up with those of another Meaning where it is passed to a function, but converts
/// from and to integers.
template <class Meaning>
class number {
  public:
    constexpr number() = default;
    template <std::integral Integer>
    constexpr number(Integer value) : value_(static_cast<uint64_t>(value)) {  // NOLINT: converts
        if (value < Integer{}) refuse_negative();
    }
    constexpr operator uint64_t() const { return value_; }  // NOLINT: converts
    constexpr number& operator+=(uint64_t more) {
        value_ += more;
        return *this;
    }
    constexpr number& operator-=(uint64_t less) {
        value_ -= less;
        return *this;
    }

  private:
    uint64_t value_ = 0;
};

/// Names a thing of the server. 0: none.
template <class Thing>
class id {
  public:
    constexpr id() = default;
    explicit constexpr id(uint64_t value) : value_(value) {}
    [[nodiscard]] constexpr uint64_t value() const { return value_; }
    [[nodiscard]] std::string to_string() const { return std::to_string(value_); }
    /// Throws heddle::Error kInvalidArgument.
    [[nodiscard]] static id from_string(const std::string& text) { return id(id_of(text)); }
    friend constexpr auto operator<=>(id, id) = default;
    /// For Boost.Serialization.
    template <class Archive>
    void serialize(Archive& archive, unsigned) {
        archive& value_;
    }

  private:
    uint64_t value_ = 0;
};

}  // namespace detail

using size_t = detail::number<struct size_meaning>;
using offset_t = detail::number<struct offset_meaning>;
using rank_t = detail::number<struct rank_meaning>;
using tag_t = detail::number<struct tag_meaning>;

using segment_id_t = detail::id<struct segment_thing>;
using data_id_t = detail::id<struct data_thing>;
using cache_id_t = detail::id<struct cache_thing>;

/// Of a cache for clients of several processes.
class shareable_cache_id_t {
  public:
    shareable_cache_id_t() = default;
    explicit shareable_cache_id_t(uint64_t value) : id_(value) {}
    operator cache_id_t() const { return id_; }  // NOLINT: converts
    [[nodiscard]] std::string to_string() const { return id_.to_string(); }
    /// Throws heddle::Error kInvalidArgument.
    [[nodiscard]] static shareable_cache_id_t from_string(const std::string& text) {
        return shareable_cache_id_t(detail::id_of(text));
    }
    friend auto operator<=>(const shareable_cache_id_t&, const shareable_cache_id_t&) = default;

  private:
    cache_id_t id_;
};
using shared_cache_id_t = shareable_cache_id_t;

struct void_t {
    friend constexpr bool operator==(void_t, void_t) = default;
};

struct range_t {
    offset_t offset;
    size_t size;
};

struct global_range_t {
    data_id_t data_id;
    range_t range;
};

namespace detail {

/// Bytes at hand, until they are released. `range` of a copy may be changed within it, to put a part.
template <class Pointer>
class local_range {
  public:
    local_range() = default;
    explicit local_range(const heddle::memory::LocalRange& local)
        : range{local.range.offset, local.range.size}, local_(local) {}
    [[nodiscard]] Pointer pointer() const { return local_.base + static_cast<uint64_t>(range.offset); }
    [[nodiscard]] heddle::memory::LocalRange native() const {
        heddle::memory::LocalRange local = local_;
        local.range = {range.offset, range.size};
        return local;
    }

    range_t range;

  private:
    heddle::memory::LocalRange local_;
};

[[nodiscard]] inline heddle::memory::GlobalRange native(const global_range_t& global) {
    return {{global.data_id.value()}, {global.range.offset, global.range.size}};
}

}  // namespace detail

using const_local_range_t = detail::local_range<void const*>;
using mutable_local_range_t = detail::local_range<void*>;

}  // namespace vmem
