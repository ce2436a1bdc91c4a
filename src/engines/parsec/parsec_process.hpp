// Parsec: the PaRSEC of this process, of which there is one.
//
// What PaRSEC has of its state is the process's, and it cannot be started a second time. So it is started
// with the first engine and stays. It has one thread, which is whoever holds the lock: engines take it for
// each call. Tasks and tiles of all of them lie beside each other.
//
// PaRSEC runs a task that could run by calling could_run() of it, and takes it for ended when it is told so.
#pragma once

#include <parsec.h>
#include <parsec/interfaces/dtd/insert_function.h>

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace heddle {

struct ParsecPiece;

/// What PaRSEC has of a datum.
struct ParsecTile {
    parsec_dtd_tile_t* its = nullptr;
    parsec_data_copy_t* copy = nullptr;
    ParsecPiece* writer = nullptr;  ///< waits for its readers
    ParsecTile* next = nullptr;     ///< in the list of those that are free
    // Of the engine that has it:
    uint32_t users = 0;      ///< pieces
    bool forgotten = false;  ///< no more will come
};

/// A task of PaRSEC's. `Parsec` uses it from insert() to end().
struct ParsecPiece {
    /// Task classes have their data counted, and a taskpool has 25 of them.
    static constexpr size_t kMostTiles = MAX_PARAM_COUNT < 20 ? MAX_PARAM_COUNT : 20;

    [[nodiscard]] bool writes(size_t tile) const { return (written >> tile & 1) != 0; }

    /// Called when it could run, by whoever makes PaRSEC progress, with the lock held.
    void (*could_run)(ParsecPiece&) noexcept;
    parsec_task_t* task;
    size_t count;  ///< of tiles, 1 or more
    uint32_t written;
    std::array<ParsecTile*, kMostTiles> tiles;  ///< each once
};

class Parsec {
  public:
    /// Starts it if need be. Throws kUnavailable. Nothing outlives the process.
    [[nodiscard]] static Parsec& of_process();
    /// "" or why it cannot be had.
    [[nodiscard]] static std::string problem();

    /// For std::lock_guard. All below are called with the lock held.
    void lock();
    void unlock() { mutex_.unlock(); }

    /// It follows all that were inserted before it and use its tiles.
    void insert(ParsecPiece& piece);
    /// It could run, and has ended.
    void end(ParsecPiece& piece);
    /// Finds what could run.
    void progress();

    [[nodiscard]] ParsecTile& take_tile();
    /// No piece that is inserted and has not ended has it.
    void give_back(ParsecTile& tile) noexcept;

  private:
    Parsec();

    std::mutex mutex_;
    parsec_execution_stream_t* stream_;
    parsec_taskpool_t* pool_;
    std::array<parsec_task_class_t*, ParsecPiece::kMostTiles> kinds_;  // by the number of tiles, less one
    parsec_data_collection_t collection_;
    std::deque<ParsecTile> tiles_;
    ParsecTile* free_ = nullptr;
};

}  // namespace heddle
