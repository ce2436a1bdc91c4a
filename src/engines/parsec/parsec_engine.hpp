// ParsecEngine: tasks in the order that PaRSEC's Dynamic Task Discovery finds.
//
// Who inserts a task, and who has run one, takes the one PaRSEC of the process and tells it so; what could
// run then goes to the workers. A task that PaRSEC runs is left open (it "will be completed asynchronously")
// until it has ended here. One with more data than a task of PaRSEC can have becomes several, and could run
// when all of these could.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "engines/graphs/data_uses.hpp"
#include "engines/graphs/native_behind.hpp"
#include "engines/parsec/parsec_process.hpp"

namespace heddle {

class ParsecEngine final : public NativeBehind {
  public:
    /// Throws kUnavailable where PaRSEC cannot be had.
    explicit ParsecEngine(const EngineOptions& options);
    ~ParsecEngine() override;

    void insert(Lane& lane, Task& task) override;
    void forget(const DataState& data) noexcept override;

  private:
    struct Piece : ParsecPiece, InGraph {
        ParsecEngine* engine;
        Task* its_task;
        Piece* first;    ///< of the task
        Piece* other;    ///< the next one of the task, or null
        Piece* behind;   ///< of the first: among those that could run
        size_t missing;  ///< of the first: how many of the task could not run yet
    };

    Task* ended(Lane& lane, InGraph& in_graph, Task* continuation) noexcept override;
    static void could_run(ParsecPiece& piece) noexcept;
    /// Makes PaRSEC progress. Returns what could run, first pieces. Leaves none for others to find.
    [[nodiscard]] Piece* find() noexcept;
    [[nodiscard]] Piece& describe(Task& task);
    [[nodiscard]] Piece& take_piece();
    void give_back(Piece* pieces) noexcept;
    [[nodiscard]] ParsecTile& tile_of(const DataState* data);

    Parsec& parsec_;
    // With the lock of parsec_:
    std::unordered_map<const DataState*, ParsecTile*> tiles_;
    std::deque<Piece> pieces_;
    Piece* free_ = nullptr;   // linked by `other`
    Piece* ready_ = nullptr;  // linked by `behind`, highest priority first, then oldest first
    Piece* last_ready_ = nullptr;
    std::vector<DataUse> uses_;
};

}  // namespace heddle
