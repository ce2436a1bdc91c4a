// The operations of vmem.hpp (seed 001 sections 4.2.2 to 4.2.4), and what they give. Plain values; any
// thread.
#pragma once

#include <boost/variant.hpp>
#include <concepts>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/compat/vmem/types.hpp"

namespace vmem {

using operation_result_t = boost::variant<void_t, const_local_range_t, mutable_local_range_t>;

namespace op {

struct allocate_t {
    allocate_t(size_t size, cache_id_t cache) : size_(size), cache_(cache) {}
    using result_type = mutable_local_range_t;
    [[nodiscard]] heddle::memory::Operation native() const {
        return heddle::memory::op::Allocate{size_, {cache_.value()}};
    }

  private:
    size_t size_;
    cache_id_t cache_;
};

struct release_t {
    explicit release_t(const_local_range_t const& local) : local_(local.native()) {}
    explicit release_t(mutable_local_range_t const& local) : local_(local.native()) {}
    using result_type = void_t;
    [[nodiscard]] heddle::memory::Operation native() const { return heddle::memory::op::Release{local_}; }

  private:
    heddle::memory::LocalRange local_;
};

namespace detail {

template <class Operation, class Result, bool kDirect>
struct get {
    get(global_range_t const& global, cache_id_t cache)
        : get_{vmem::detail::native(global), {cache.value()}, {}, kDirect} {}
    using result_type = Result;
    [[nodiscard]] heddle::memory::Operation native() const { return get_; }

  protected:
    Operation get_;
};

template <class Get>
struct with_tag : Get {
    with_tag(global_range_t const& global, cache_id_t cache, tag_t tag) : Get(global, cache) {
        this->get_.tag = tag;
    }
};

template <class Result, bool kDirect>
using get_const = get<heddle::memory::op::GetConst, Result, kDirect>;
template <class Result, bool kDirect>
using get_mutable = get<heddle::memory::op::GetMutable, Result, kDirect>;

}  // namespace detail

using get_const_t = detail::get_const<const_local_range_t, false>;
using get_const_preferring_direct_segment_memory_access_t = detail::get_const<const_local_range_t, true>;
using get_const_with_tag_t = detail::with_tag<get_const_t>;
using get_const_preferring_direct_segment_memory_access_with_tag_t =
    detail::with_tag<get_const_preferring_direct_segment_memory_access_t>;

using get_mutable_t = detail::get_mutable<mutable_local_range_t, false>;
using get_mutable_preferring_direct_segment_memory_access_t =
    detail::get_mutable<mutable_local_range_t, true>;
using get_mutable_with_tag_t = detail::with_tag<get_mutable_t>;
using get_mutable_preferring_direct_segment_memory_access_with_tag_t =
    detail::with_tag<get_mutable_preferring_direct_segment_memory_access_t>;

struct put_t {
    put_t(const_local_range_t const& source, global_range_t const& global)
        : put_{source.native(), vmem::detail::native(global)} {}
    put_t(mutable_local_range_t const& source, global_range_t const& global)
        : put_{source.native(), vmem::detail::native(global)} {}
    using result_type = void_t;
    [[nodiscard]] heddle::memory::Operation native() const { return put_; }

  protected:
    heddle::memory::op::Put put_;
};

struct put_and_release_t : put_t {
    template <class Local>
    put_and_release_t(Local const& source, global_range_t const& global) : put_t(source, global) {
        put_.release = true;
    }
};

struct put_and_set_tag_t : put_t {
    template <class Local>
    put_and_set_tag_t(Local const& source, global_range_t const& global, tag_t tag) : put_t(source, global) {
        put_.tag = tag;
    }
};

struct put_and_release_and_set_tag_t : put_and_set_tag_t {
    template <class Local>
    put_and_release_and_set_tag_t(Local const& source, global_range_t const& global, tag_t tag)
        : put_and_set_tag_t(source, global, tag) {
        put_.release = true;
    }
};

}  // namespace op

/// Any of them.
class operation_t {
  public:
    template <class Operation>
    requires(!std::same_as<Operation, operation_t> &&
             requires(const Operation& one) {
                 { one.native() } -> std::same_as<heddle::memory::Operation>;
             }) operation_t(Operation const& operation)
        : native_(operation.native()) {}  // NOLINT: converts
    [[nodiscard]] const heddle::memory::Operation& native() const { return native_; }

  private:
    heddle::memory::Operation native_;
};

namespace detail {

[[nodiscard]] inline std::vector<heddle::memory::Operation> native(
    const std::vector<operation_t>& operations) {
    std::vector<heddle::memory::Operation> all;
    for (const operation_t& operation : operations) all.push_back(operation.native());
    return all;
}

[[nodiscard]] inline operation_result_t result_of(const heddle::memory::OperationResult& result) {
    if (const auto* local = std::get_if<heddle::memory::ConstLocalRange>(&result))
        return const_local_range_t(*local);
    if (const auto* local = std::get_if<heddle::memory::MutableLocalRange>(&result))
        return mutable_local_range_t(*local);
    return void_t{};
}

}  // namespace detail
}  // namespace vmem
