// The C interface: data.
#include <algorithm>

#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

using detail::DataView;

struct TilesObject {
    explicit TilesObject(RuntimeObject& its_runtime) : runtime(its_runtime), dependent(its_runtime) {}
    ~TilesObject() {
        for (heddle_data_t* tile : tiles) taken<DataObject>(tile).reset();
    }
    TilesObject(const TilesObject&) = delete;
    TilesObject& operator=(const TilesObject&) = delete;

    RuntimeObject& runtime;
    Dependent dependent;
    size_t rows = 0, columns = 0;  ///< of tiles
    std::vector<heddle_data_t*> tiles;
};

TilesObject& tiles_of(heddle_tiles_t* tiles) {
    return object_of<TilesObject>(tiles, "matrix of tiles");
}

void check_element(size_t element_bytes) {
    if (element_bytes == 0) refuse("elements of data cannot have 0 bytes");
}

std::unique_ptr<DataObject> datum(heddle_runtime_t* runtime, const DataView& shape) {
    check_element(shape.element_bytes);
    return std::make_unique<DataObject>(c::object(runtime), shape, false);
}

/// Where element (i, j) is; null stays null.
void* element(const DataView& matrix, size_t i, size_t j) {
    if (matrix.address == nullptr) return nullptr;
    return static_cast<std::byte*>(matrix.address) + (i + j * matrix.leading) * matrix.element_bytes;
}

std::unique_ptr<TilesObject> cut(RuntimeObject& runtime, const DataView& matrix, size_t tile) {
    auto tiles = std::make_unique<TilesObject>(runtime);
    tiles->rows = (matrix.rows - 1) / tile + 1;
    tiles->columns = (matrix.columns - 1) / tile + 1;
    tiles->tiles.reserve(tiles->rows * tiles->columns);
    for (size_t j = 0; j < matrix.columns; j += std::min(tile, matrix.columns - j))
        for (size_t i = 0; i < matrix.rows; i += std::min(tile, matrix.rows - i)) {
            DataView shape = matrix;
            shape.address = element(matrix, i, j);
            shape.rows = std::min(tile, matrix.rows - i);
            shape.columns = std::min(tile, matrix.columns - j);
            if (shape.address == nullptr) shape.leading = shape.rows;
            heddle_data_t* made_tile =
                made<heddle_data_t>([&] { return std::make_unique<DataObject>(runtime, shape, true); });
            if (made_tile == nullptr) throw Error(ErrorCode::kLimit, heddle_task_error_message());
            tiles->tiles.push_back(made_tile);
        }
    return tiles;
}

}  // namespace
}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_data_t* heddle_scalar_create(heddle_runtime_t* runtime, void* element, size_t element_bytes) {
    return made<heddle_data_t>([&] { return datum(runtime, {element, 1, 1, 1, element_bytes}); });
}

heddle_data_t* heddle_vector_create(heddle_runtime_t* runtime, void* elements, size_t size,
                                    size_t element_bytes) {
    return made<heddle_data_t>([&] { return datum(runtime, {elements, size, 1, size, element_bytes}); });
}

heddle_data_t* heddle_matrix_create(heddle_runtime_t* runtime, void* elements, size_t rows, size_t columns,
                                    size_t leading, size_t element_bytes) {
    if (elements == nullptr && leading == 0) leading = rows;
    return made<heddle_data_t>([&] {
        return datum(runtime, {elements, rows, columns, leading, element_bytes});
    });
}

heddle_task_ret_t heddle_data_wait(heddle_data_t* data) {
    return guarded([&] { c::object(data).handle.wait(); });
}

heddle_task_ret_t heddle_data_view(heddle_data_t* data, heddle_view_t* view) {
    return guarded([&] {
        if (view == nullptr) refuse("there is no place for the view");
        const DataObject& datum = c::object(data);
        datum.handle.wait();
        const detail::DataView& shape = datum.handle.checked();
        *view = {shape.address, shape.rows, shape.columns, shape.leading, shape.element_bytes};
    });
}

heddle_task_ret_t heddle_data_destroy(heddle_data_t* data) {
    return guarded([&] {
        DataObject& datum = c::object(data);
        if (datum.tile) refuse("a tile goes with its matrix: destroy that");
        datum.handle.release();
        taken<DataObject>(data).reset();
    });
}

heddle_tiles_t* heddle_tiles_create(heddle_runtime_t* runtime, void* elements, size_t rows, size_t columns,
                                    size_t leading, size_t tile, size_t element_bytes) {
    return made<heddle_tiles_t>([&] {
        check_element(element_bytes);
        detail::check_tiles(rows, columns, tile, elements == nullptr ? rows : leading);
        return cut(c::object(runtime), {elements, rows, columns, leading, element_bytes}, tile);
    });
}

heddle_data_t* heddle_tile(heddle_tiles_t* tiles, size_t i, size_t j) {
    heddle_data_t* tile = nullptr;
    (void)guarded([&] {
        const TilesObject& matrix = tiles_of(tiles);
        if (i >= matrix.rows || j >= matrix.columns)
            refuse("tile (" + std::to_string(i) + ", " + std::to_string(j) + ") of " +
                   std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns) + " does not exist");
        tile = matrix.tiles[i + j * matrix.rows];
    });
    return tile;
}

heddle_task_ret_t heddle_tiles_count(heddle_tiles_t* tiles, size_t* rows, size_t* columns) {
    return guarded([&] {
        const TilesObject& matrix = tiles_of(tiles);
        if (rows != nullptr) *rows = matrix.rows;
        if (columns != nullptr) *columns = matrix.columns;
    });
}

heddle_task_ret_t heddle_tiles_wait(heddle_tiles_t* tiles) {
    return guarded([&] {
        for (heddle_data_t* tile : tiles_of(tiles).tiles) c::object(tile).handle.wait();
    });
}

heddle_task_ret_t heddle_tiles_destroy(heddle_tiles_t* tiles) {
    return guarded([&] {
        for (heddle_data_t* tile : tiles_of(tiles).tiles) c::object(tile).handle.wait();
        taken<TilesObject>(tiles).reset();
    });
}
