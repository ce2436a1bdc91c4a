// Data: memory that tasks name in their arguments, and by which they are ordered.
//
// A Scalar, Vector, Matrix or TileMatrix belongs to one Runtime, which must outlive it: declare the data
// behind their runtime. It is either memory of the caller's, which must outlive it too, or memory of its own,
// zeroed. Tasks are ordered by the objects that they name: two objects over one memory are strangers to each
// other. Tasks get views of it (T&, std::span, MatrixView); the program itself reads it after wait(), or
// after the Sequence's, and until it inserts the next task that writes it. Destroying it waits for the tasks
// that use it; memory of its own lives until those have ended also where the caller is a task that they wait
// for. Matrices are column-major with a leading dimension, as in BLAS. T is trivially copyable, so that
// engines may copy it to other memory.
//
// Constructors throw kInvalidArgument for a size of zero or a leading dimension shorter than a column, and
// kLimit where memory is short. Any thread may use data; moving and destruction are for one. Nothing outlives
// the process; after fork(2) a child must not use its parent's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/export.hpp"

namespace heddle {

/// Bytes to which the library aligns elements whose memory is its own; no type of elements may need more.
inline constexpr size_t kDataAlignment = 64;

class Runtime;

/// `rows` x `columns` elements; (i, j) is data[i + j * leading].
template <class T>
struct MatrixView {
    T* data;
    size_t rows, columns, leading;

    T& operator()(size_t i, size_t j) const { return data[i + j * leading]; }
    operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
        return {data, rows, columns, leading};
    }
};

namespace detail {

/// Where the elements are. A vector has one column, a scalar one element.
struct DataView {
    void* address = nullptr;
    size_t rows = 0, columns = 0, leading = 0;
    size_t element_bytes = 0;
};

/// Throws kInvalidArgument where a matrix cannot be cut into such tiles, kLimit where they are too many.
HEDDLE_API void check_tiles(size_t rows, size_t columns, size_t tile, size_t leading);

/// Registers memory with a runtime; the library's side of all data.
class HEDDLE_API DataHandle {
  public:
    /// `shape.address` null: allocates, zeroed. Throws kInvalidArgument for a size of zero or a leading
    /// dimension shorter than a column, kLimit where memory is short.
    DataHandle(Runtime& runtime, const DataView& shape);
    ~DataHandle();
    DataHandle(DataHandle&& other) noexcept : view_(std::exchange(other.view_, nullptr)) {}
    DataHandle& operator=(DataHandle&& other) noexcept {
        std::swap(view_, other.view_);
        return *this;
    }

    /// Null after release() and in what was moved from.
    [[nodiscard]] DataView* view() const noexcept { return view_; }
    /// The same; throws kInvalidArgument instead of null.
    [[nodiscard]] DataView& checked() const;
    void wait() const;
    void release();

  private:
    void outlive_users() noexcept;
    void let_go() noexcept;

    DataView* view_ = nullptr;
};

}  // namespace detail

/// What all kinds of data have.
class Data {
  public:
    /// Until no task that was inserted so far uses it. Throws kInvalidArgument after release(), in a task
    /// that uses it itself, and in one that one of those comes after by other data: name the data in that
    /// task instead. (Engines with an order of their own do not see who comes after whom: there a task that
    /// names data, and what is under it, waits for its own children and those around it, not for the others.)
    /// kLimit in a task that cannot be paused. Errors of tasks are the sequences' to tell.
    void wait() const { handle_.wait(); }
    /// Ends it before its time: waits, and frees what is its own. Tasks cannot name it any more. Throws as
    /// wait().
    void release() { handle_.release(); }

    /// For engines and argument kinds.
    [[nodiscard]] detail::DataView& view() const { return handle_.checked(); }

  protected:
    Data(Runtime& runtime, const detail::DataView& shape) : handle_(runtime, shape) {}
    detail::DataHandle handle_;
};

/// One element. Tasks see T& (const T& with in()).
template <class T>
class Scalar : public Data {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kDataAlignment);

  public:
    using Element = T;
    using View = T&;
    using ConstView = const T&;

    explicit Scalar(Runtime& runtime, const T& initial = T{}) : Data(runtime, {nullptr, 1, 1, 1, sizeof(T)}) {
        *static_cast<T*>(handle_.view()->address) = initial;
    }
    /// Memory of the caller's.
    [[nodiscard]] static Scalar over(Runtime& runtime, T& element) {
        return Scalar(runtime, detail::DataView{&element, 1, 1, 1, sizeof(T)});
    }

    /// Waits for the tasks that use it.
    [[nodiscard]] T get() const {
        wait();
        return see(view());
    }

    /// For argument kinds, as in all kinds of data: what tasks get of them.
    static T& see(const detail::DataView& view) { return *static_cast<T*>(view.address); }

  private:
    Scalar(Runtime& runtime, const detail::DataView& shape) : Data(runtime, shape) {}
};

/// `size` elements. Tasks see std::span<T> (std::span<const T> with in()).
template <class T>
class Vector : public Data {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kDataAlignment);

  public:
    using Element = T;
    using View = std::span<T>;
    using ConstView = std::span<const T>;

    Vector(Runtime& runtime, size_t size) : Data(runtime, {nullptr, size, 1, size, sizeof(T)}) {}
    /// Memory of the caller's.
    Vector(Runtime& runtime, std::span<T> elements)
        : Data(runtime, {elements.data(), elements.size(), 1, elements.size(), sizeof(T)}) {}

    [[nodiscard]] size_t size() const { return view().rows; }
    /// Waits for the tasks that use it.
    [[nodiscard]] std::span<T> get() const {
        wait();
        return see(view());
    }

    static std::span<T> see(const detail::DataView& view) {
        return {static_cast<T*>(view.address), view.rows};
    }
};

/// Tasks see MatrixView<T> (MatrixView<const T> with in()).
template <class T>
class Matrix : public Data {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kDataAlignment);

  public:
    using Element = T;
    using View = MatrixView<T>;
    using ConstView = MatrixView<const T>;

    Matrix(Runtime& runtime, size_t rows, size_t columns)
        : Data(runtime, {nullptr, rows, columns, rows, sizeof(T)}) {}
    /// Memory of the caller's.
    Matrix(Runtime& runtime, MatrixView<T> elements)
        : Data(runtime, {elements.data, elements.rows, elements.columns, elements.leading, sizeof(T)}) {}

    [[nodiscard]] size_t rows() const { return view().rows; }
    [[nodiscard]] size_t columns() const { return view().columns; }
    /// Waits for the tasks that use it.
    [[nodiscard]] MatrixView<T> get() const {
        wait();
        return see(view());
    }

    static MatrixView<T> see(const detail::DataView& view) {
        return {static_cast<T*>(view.address), view.rows, view.columns, view.leading};
    }
};

/// A matrix cut into tiles of `tile` x `tile` elements (less at the lower and right edge), each a Matrix that
/// tasks name by itself. Of its own memory each tile is contiguous; tiles of the caller's memory lie in it.
template <class T>
class TileMatrix {
  public:
    /// Throw Error kInvalidArgument where there is nothing to cut, or tiles would overlap.
    TileMatrix(Runtime& runtime, size_t rows, size_t columns, size_t tile)
        : TileMatrix(rows, columns, tile, rows) {
        cut([&](size_t, size_t, size_t m, size_t n) { return Matrix<T>(runtime, m, n); });
    }
    TileMatrix(Runtime& runtime, MatrixView<T> elements, size_t tile)
        : TileMatrix(elements.rows, elements.columns, tile, elements.leading) {
        cut([&](size_t i, size_t j, size_t m, size_t n) {
            return Matrix<T>(runtime, MatrixView<T>{&elements(i, j), m, n, elements.leading});
        });
    }

    [[nodiscard]] size_t rows() const { return rows_; }
    [[nodiscard]] size_t columns() const { return columns_; }
    [[nodiscard]] size_t tile_size() const { return tile_; }
    /// Of tiles.
    [[nodiscard]] size_t tile_rows() const { return count(rows_); }
    [[nodiscard]] size_t tile_columns() const { return count(columns_); }
    /// In row i and column j of tiles, which must be one: it is not checked.
    [[nodiscard]] Matrix<T>& tile(size_t i, size_t j) { return tiles_[i + j * tile_rows()]; }
    [[nodiscard]] const Matrix<T>& tile(size_t i, size_t j) const { return tiles_[i + j * tile_rows()]; }
    /// Until no task that was inserted so far uses a tile. Throws as Data::wait().
    void wait() const {
        for (const Matrix<T>& tile : tiles_) tile.wait();
    }

  private:
    /// `leading` of the caller's memory, or as many as the rows.
    TileMatrix(size_t rows, size_t columns, size_t tile, size_t leading)
        : rows_(rows), columns_(columns), tile_(tile) {
        detail::check_tiles(rows, columns, tile, leading);
    }
    [[nodiscard]] size_t count(size_t elements) const { return (elements - 1) / tile_ + 1; }
    template <class Make>
    void cut(Make make) {
        tiles_.reserve(tile_rows() * tile_columns());
        for (size_t j = 0; j < tile_columns(); ++j)
            for (size_t i = 0; i < tile_rows(); ++i)
                tiles_.push_back(make(i * tile_, j * tile_, size_of(i, rows_), size_of(j, columns_)));
    }
    [[nodiscard]] size_t size_of(size_t index, size_t elements) const {
        const size_t begin = index * tile_;
        return elements - begin < tile_ ? elements - begin : tile_;
    }

    size_t rows_, columns_, tile_;
    std::vector<Matrix<T>> tiles_;
};

}  // namespace heddle
