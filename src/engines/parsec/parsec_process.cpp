#include "engines/parsec/parsec_process.hpp"

#include <parsec/data_internal.h>
#include <parsec/interfaces/dtd/insert_function_internal.h>
#include <parsec/parsec_internal.h>
#include <parsec/scheduling.h>

#include <limits>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/signals_blocked.hpp"
#include "base/spin_pause.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr size_t kMostTiles = ParsecPiece::kMostTiles;
/// At the lock before a thread sleeps there: others have it for less than a microsecond.
constexpr int kLooks = 100;

Parsec* started = nullptr;  // written once, under start_mutex
std::mutex start_mutex;

/// On a thread that ends then: it binds its thread, and who wants an engine may have a small stack.
parsec_context_t* init(parsec_execution_stream_t*& stream) {
    parsec_context_t* context = nullptr;
    const SignalsBlocked blocked;
    try {
        std::thread([&] {
            context = parsec_init(1, nullptr, nullptr);
            stream = parsec_my_execution_stream();
        }).join();
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::kLimit, std::string("no thread to start PaRSEC: ") + error.what());
    }
    return context;
}

ParsecPiece& piece_of(parsec_task_t* task) {
    ParsecPiece* piece = nullptr;
    parsec_dtd_unpack_args(task, &piece);
    return *piece;
}

/// Before a task runs. A writer is let go with the readers that were inserted before it, and PaRSEC would try
/// it again and again until these have ended. Here it is put aside until the last one has.
parsec_hook_return_t prepare(parsec_execution_stream_t*, parsec_task_t* task) {
    ParsecPiece& piece = piece_of(task);
    for (size_t i = 0; i < piece.count; ++i) {
        ParsecTile& tile = *piece.tiles[i];
        if (!piece.writes(i) || tile.copy->readers == 0) continue;
        piece.task = task;
        tile.writer = &piece;
        return PARSEC_HOOK_RETURN_ASYNC;
    }
    return PARSEC_HOOK_RETURN_DONE;
}

parsec_hook_return_t run(parsec_execution_stream_t*, parsec_task_t* task) {
    ParsecPiece& piece = piece_of(task);
    piece.task = task;
    piece.could_run(piece);
    return PARSEC_HOOK_RETURN_ASYNC;
}

parsec_task_class_t* make_kind(parsec_taskpool_t* pool, size_t tiles) {
    std::array<parsec_dtd_param_t, 1 + kMostTiles> params;
    params[0] = {PARSEC_VALUE, sizeof(ParsecPiece*), nullptr};
    for (size_t i = 1; i <= tiles; ++i) params[i] = {PARSEC_INPUT, PASSED_BY_REF, nullptr};
    auto* const kind = reinterpret_cast<parsec_task_class_t*>(
        parsec_dtd_create_task_classv("heddle", static_cast<int>(1 + tiles), params.data()));
    parsec_dtd_task_class_add_chore(pool, kind, PARSEC_DEV_CPU, reinterpret_cast<void*>(&run));
    kind->prepare_input = prepare;
    return kind;
}

/// Insertion takes one argument after the other: a function for each number of them.
using Insert = void (*)(parsec_taskpool_t*, parsec_task_class_t*, ParsecPiece*);

template <size_t... i>
constexpr Insert insert_of(std::index_sequence<i...>) {
    return [](parsec_taskpool_t* pool, parsec_task_class_t* kind, ParsecPiece* piece) {
        const auto use = [piece](size_t tile) {
            return std::tuple<int, parsec_dtd_tile_t*>(piece->writes(tile) ? PARSEC_INOUT : PARSEC_INPUT,
                                                       piece->tiles[tile]->its);
        };
        std::apply(
            [&](auto... uses) {
                parsec_dtd_insert_task_with_task_class(pool, kind, 0, PARSEC_DEV_CPU, PARSEC_DTD_EMPTY_FLAG,
                                                       &piece, uses..., PARSEC_DTD_ARG_END);
            },
            std::tuple_cat(use(i)...));
    };
}

template <size_t... n>
constexpr std::array<Insert, sizeof...(n)> inserts(std::index_sequence<n...>) {
    return {insert_of(std::make_index_sequence<n + 1>())...};
}

constexpr auto kInserts = inserts(std::make_index_sequence<kMostTiles>());

/// A tile knows its last user by the address of the task, which is freed when it has ended, but for a writer.
/// PaRSEC takes the next task at that address for the same one, and counts one reader too few (4.1).
void forget_reader(parsec_dtd_tile_t& tile, parsec_task_t* ended) {
    if (tile.last_user.task == reinterpret_cast<parsec_dtd_task_t*>(ended))
        tile.last_user.task = tile.last_writer.task;
}

/// The key of a tile is its address.
parsec_data_t* data_of_key(parsec_data_collection_t* collection, parsec_data_key_t key) {
    parsec_data_t* made = nullptr;
    parsec_data_create(&made, collection, key, nullptr, 0, PARSEC_DATA_FLAG_PARSEC_MANAGED);
    reinterpret_cast<ParsecTile*>(key)->copy = made->device_copies[0];
    return made;
}

}  // namespace

std::string Parsec::problem() {
    const std::lock_guard guard(start_mutex);
    if (started == nullptr && (parsec_current_scheduler != nullptr || __parsec_dtd_is_initialized != 0))
        return "this program has started PaRSEC itself, which is there once for a process: let it use PaRSEC "
               "through heddle alone";
    return "";
}

Parsec& Parsec::of_process() {
    if (const std::string why = problem(); !why.empty()) throw Error(ErrorCode::kUnavailable, why);
    const std::lock_guard guard(start_mutex);
    if (started == nullptr) started = new Parsec;
    return *started;
}

Parsec::Parsec() {
    parsec_context_t* const context = init(stream_);
    if (context == nullptr) throw Error(ErrorCode::kUnavailable, "PaRSEC does not start (parsec_init)");
    parsec_set_my_execution_stream(stream_);
    pool_ = parsec_dtd_taskpool_new();
    // Else an insertion would run tasks, and wait for ends, when there are some thousands of them.
    parsec_dtd_window_size = parsec_dtd_threshold_size = std::numeric_limits<int>::max() / 2 + 1;
    parsec_context_add_taskpool(context, pool_);
    parsec_context_start(context);
    for (size_t tiles = 1; tiles <= kMostTiles; ++tiles) kinds_[tiles - 1] = make_kind(pool_, tiles);
    parsec_data_collection_init(&collection_, 1, 0);
    collection_.rank_of_key = [](parsec_data_collection_t*, parsec_data_key_t) { return uint32_t{0}; };
    collection_.vpid_of_key = [](parsec_data_collection_t*, parsec_data_key_t) { return int32_t{0}; };
    collection_.data_of_key = data_of_key;
    parsec_dtd_data_collection_init(&collection_);
}

void Parsec::lock() {
    int looks = 0;
    while (!mutex_.try_lock()) {
        if (++looks == kLooks) {
            mutex_.lock();
            break;
        }
        spin_pause();
    }
    parsec_set_my_execution_stream(stream_);
}

void Parsec::insert(ParsecPiece& piece) {
    kInserts[piece.count - 1](pool_, kinds_[piece.count - 1], &piece);
}

void Parsec::end(ParsecPiece& piece) {
    __parsec_complete_execution(stream_, piece.task);
    for (size_t i = 0; i < piece.count; ++i) {
        ParsecTile& tile = *piece.tiles[i];
        forget_reader(*tile.its, piece.task);
        if (tile.writer == nullptr || tile.copy->readers != 0) continue;
        parsec_task_t* const writer = std::exchange(tile.writer, nullptr)->task;
        PARSEC_LIST_ITEM_SINGLETON(&writer->super);
        __parsec_schedule(stream_, writer, 0);
    }
}

void Parsec::progress() {
    while (parsec_taskpool_test(pool_) > 0)
        ;
}

ParsecTile& Parsec::take_tile() {
    if (free_ != nullptr) return *std::exchange(free_, free_->next);
    ParsecTile& made = tiles_.emplace_back();
    made.its = parsec_dtd_tile_of(&collection_, reinterpret_cast<parsec_data_key_t>(&made));
    return made;
}

void Parsec::give_back(ParsecTile& tile) noexcept {
    tile.next = std::exchange(free_, &tile);
    tile.forgotten = false;
}

}  // namespace heddle
