#include "engines/parsec/parsec_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

namespace heddle {

ParsecEngine::ParsecEngine(const EngineOptions& options)
    : NativeBehind(options), parsec_(Parsec::of_process()) {}

ParsecEngine::~ParsecEngine() {
    stop_native();
    const std::lock_guard turn(parsec_);
    for (const auto& [data, tile] : tiles_) parsec_.give_back(*tile);
}

void ParsecEngine::insert(Lane& lane, Task& task) {
    if (task.accesses == 0) return ready(lane, task);
    Piece* found = nullptr;
    {
        const std::lock_guard turn(parsec_);
        for (Piece* piece = &describe(task); piece != nullptr; piece = piece->other) {
            for (size_t i = 0; i < piece->count; ++i) ++piece->tiles[i]->users;
            parsec_.insert(*piece);
        }
        found = find();
    }
    while (found != nullptr) {
        Piece& piece = *std::exchange(found, found->behind);
        may_run(lane, *piece.its_task, piece);
    }
}

Task* ParsecEngine::ended(Lane& lane, InGraph& in_graph, Task* continuation) noexcept {
    Piece* found = nullptr;
    {
        const std::lock_guard turn(parsec_);
        Piece& first = static_cast<Piece&>(in_graph);
        for (Piece* piece = &first; piece != nullptr; piece = piece->other) {
            parsec_.end(*piece);
            for (ParsecTile* tile : std::span(piece->tiles).first(piece->count))
                if (--tile->users == 0 && tile->forgotten) parsec_.give_back(*tile);
        }
        give_back(&first);
        found = find();
    }
    while (found != nullptr) {
        Piece& piece = *std::exchange(found, found->behind);
        Task& task = *piece.its_task;
        if (continuation == nullptr && task.priority == 0 && (task.special & kPlaced) == 0) {
            mark(task, piece);
            continuation = &task;
        } else {
            may_run(lane, task, piece);
        }
    }
    return continuation;
}

void ParsecEngine::could_run(ParsecPiece& it) noexcept {
    Piece& first = *static_cast<Piece&>(it).first;
    if (--first.missing != 0) return;
    ParsecEngine& self = *first.engine;
    const int32_t priority = first.its_task->priority;
    Piece* before = self.last_ready_;
    if (before != nullptr && before->its_task->priority < priority) {
        before = nullptr;
        for (Piece* one = self.ready_; one->its_task->priority >= priority; one = one->behind) before = one;
    }
    Piece*& link = before == nullptr ? self.ready_ : before->behind;
    first.behind = std::exchange(link, &first);
    if (first.behind == nullptr) self.last_ready_ = &first;
}

ParsecEngine::Piece* ParsecEngine::find() noexcept {
    parsec_.progress();
    last_ready_ = nullptr;
    return std::exchange(ready_, nullptr);
}

/// All that may throw.
ParsecEngine::Piece& ParsecEngine::describe(Task& task) {
    find_uses(task, uses_);
    Piece* first = nullptr;
    try {
        for (size_t done = 0; done < uses_.size();) {
            Piece& piece = take_piece();
            if (first == nullptr) {
                first = &piece;
                first->missing = 0;
                first->other = nullptr;
            } else {
                piece.other = std::exchange(first->other, &piece);
            }
            ++first->missing;
            piece.first = first;
            piece.its_task = &task;
            piece.count = std::min(uses_.size() - done, Piece::kMostTiles);
            piece.written = 0;
            for (size_t i = 0; i < piece.count; ++i, ++done) {
                piece.tiles[i] = &tile_of(uses_[done].data);
                piece.written |= uint32_t{uses_[done].writes} << i;
            }
        }
    } catch (...) {
        give_back(first);
        throw;
    }
    return *first;
}

ParsecEngine::Piece& ParsecEngine::take_piece() {
    if (free_ != nullptr) return *std::exchange(free_, free_->other);
    Piece& made = pieces_.emplace_back();
    made.engine = this;
    made.ParsecPiece::could_run = &ParsecEngine::could_run;
    return made;
}

void ParsecEngine::give_back(Piece* pieces) noexcept {
    while (pieces != nullptr) {
        Piece* const other = std::exchange(pieces->other, free_);
        free_ = std::exchange(pieces, other);
    }
}

ParsecTile& ParsecEngine::tile_of(const DataState* data) {
    const auto it = tiles_.find(data);
    if (it != tiles_.end()) return *it->second;
    ParsecTile& tile = parsec_.take_tile();
    try {
        tiles_.emplace(data, &tile);
    } catch (...) {
        parsec_.give_back(tile);
        throw;
    }
    return tile;
}

void ParsecEngine::forget(const DataState& data) noexcept {
    const std::lock_guard turn(parsec_);
    const auto it = tiles_.find(&data);
    if (it == tiles_.end()) return;
    ParsecTile& tile = *it->second;
    tiles_.erase(it);
    // Its last task has ended for its wait, and may not have here.
    tile.forgotten = true;
    if (tile.users == 0) parsec_.give_back(tile);
}

namespace {

std::string version() {
    int major = 0, minor = 0, release = 0;
    parsec_version(&major, &minor, &release);
    return fmt::format("PaRSEC {}.{}.{}", major, minor, release);
}

const EngineFactory kFactory{"parsec", &Parsec::problem, version,
                             [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                                 return std::make_unique<ParsecEngine>(options);
                             }};

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
