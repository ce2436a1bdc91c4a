// The Laplace equation on a square, by Jacobi's iteration on as many ranks as there are (seed 001
// section 4.4): the borders of the blocks go through global memory, of the kind that one word on the command
// line names. With a picture its bright parts are lamps that heat what is around them, and the warmth of each
// place is a picture, too.
//
//     heddle memory launch -n 4 -- jacobi --n 300 --iterations 200 --segment shm
//     mpirun -n 4 jacobi --n 300 --iterations 200 --segment mpi
//     gm convert picture.png lamps.pgm; heddle memory launch -n 2 -- jacobi --lamps lamps.pgm --warmth
//     warmth.pgm
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "cells.hpp"
#include "grey_map.hpp"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: an example of it
using heddle::example::Block;
using heddle::example::Cells;
using heddle::example::GreyMap;
using heddle::example::Mesh;

constexpr int kSides = 4;
/// Whose border a side gets.
constexpr int kOpposite[kSides] = {Mesh::kDown, Mesh::kUp, Mesh::kRight, Mesh::kLeft};

struct Options {
    size_t n = 256;
    int iterations = 200;
    std::string segment = "shm", path, data;
    bool verify = false;
    std::string lamps, warmth;
    double bright = 0.8;
};

struct Extent {
    uint64_t rows = 0, columns = 0;
};

class Solver {
  public:
    Solver(Server& server, const Options& options, const Extent& extent)
        : options_(options),
          extent_(extent),
          server_(server),
          client_(server),
          collective_(server),
          mesh_(extent.rows, extent.columns, server.ranks()),
          block_(mesh_.block(server.rank())),
          now_(block_),
          next_(block_) {
        const size_t longest = std::max(mesh_.most_rows(), mesh_.most_columns());
        slot_ = longest * sizeof(double);
        SegmentDescription description{options.segment, {}};
        if (!options.path.empty()) description.options["path"] = options.path;
        if (!options.data.empty()) description.options["data"] = options.data;
        const uint64_t borders = kSides * server.ranks() * slot_;
        const uint64_t square = extent.rows * extent.columns * sizeof(double);
        segment_ = collective_.create_segment(borders + square, description);
        for (DataId& side : halos_) side = collective_.allocate(server.ranks() * slot_, segment_);
        square_ = collective_.allocate(square, segment_);
        cache_ = client_.create_cache(std::max(kSides * slot_ * 2, extent.columns * sizeof(double)));
        if (!options.lamps.empty()) return;
        heddle::example::heat(block_, now_);
        heddle::example::heat(block_, next_);
    }

    /// Rank 0 has the picture, and all get their parts of it.
    void light(const GreyMap& picture) {
        for (size_t row = 0; row < picture.rows; ++row)
            put_row(row, 0, &picture.values[row * picture.columns], picture.columns);
        collective_.barrier();
        for (size_t row = 0; row < block_.rows; ++row)
            with_row(block_.first_row + row, block_.first_column, block_.columns, [&](const double* values) {
                for (size_t column = 0; column < block_.columns; ++column) {
                    const bool lit = values[column] >= options_.bright;
                    now_.at(row + 1, column + 1) = next_.at(row + 1, column + 1) = lit ? values[column] : 0;
                    lamps_.push_back(lit);
                }
            });
        collective_.barrier();
    }

    void run() {
        for (int iteration = 0; iteration < options_.iterations; ++iteration) {
            swap_borders();
            residual_ = lamps_.empty() ? heddle::example::step(block_, now_, next_)
                                       : heddle::example::step(block_, now_, next_, lamps_);
            std::swap(now_, next_);
        }
    }

    /// Borders whose every cell is a function of rank, place and iteration: what arrives is known. Returns
    /// the number of wrong cells.
    size_t verify() {
        size_t wrong = 0;
        for (int iteration = 0; iteration < options_.iterations; ++iteration) {
            for (int side = 0; side < kSides; ++side)
                for (size_t i = 0; i < now_.length(side); ++i)
                    now_.border(side, i, 1) = known(server_.rank(), side, i, 1, iteration);
            swap_borders();
            for (int side = 0; side < kSides; ++side) {
                const int other = mesh_.neighbour(server_.rank(), side);
                for (size_t i = 0; other >= 0 && i < now_.length(side); ++i)
                    wrong +=
                        now_.border(side, i, 0) != known(static_cast<Rank>(other), side, i, 0, iteration);
            }
        }
        return wrong;
    }

    /// Puts all cells of this rank where rank 0 looks for them.
    void gather() {
        for (size_t row = 0; row < block_.rows; ++row)
            put_row(block_.first_row + row, block_.first_column, &now_.at(row + 1, 1), block_.columns);
        collective_.barrier();
    }
    /// On rank 0, of what all have gathered: a number that two results share only where all their bytes are
    /// the same.
    uint64_t fingerprint() {
        heddle::example::Fingerprint hash;
        for (size_t row = 0; row < extent_.rows; ++row)
            with_row(row, 0, extent_.columns,
                     [&](const double* values) { hash.add(values, extent_.columns * sizeof(double)); });
        return hash.value();
    }
    [[nodiscard]] GreyMap picture() {
        GreyMap map{extent_.rows, extent_.columns, {}};
        for (size_t row = 0; row < extent_.rows; ++row)
            with_row(row, 0, extent_.columns, [&](const double* values) {
                map.values.insert(map.values.end(), values, values + extent_.columns);
            });
        return map;
    }

    [[nodiscard]] CacheStatistics statistics() const { return client_.statistics(cache_); }
    /// By how much a cell of any rank has changed at most in the last step. All ranks.
    [[nodiscard]] double residual() {
        double largest = 0;
        for (Rank rank = 0; rank < server_.ranks(); ++rank) {
            double its = 0;
            const std::vector<std::byte> told =
                collective_.broadcast(std::as_bytes(std::span(&residual_, 1)), rank);
            std::memcpy(&its, told.data(), sizeof its);
            largest = std::max(largest, its);
        }
        return largest;
    }

    /// All ranks, when nobody needs the memory any more.
    void end() {
        collective_.barrier();
        client_.delete_cache(cache_);
        collective_.free(square_);
        for (const DataId side : halos_) collective_.free(side);
        collective_.delete_segment(segment_);
        collective_.barrier();
    }

  private:
    [[nodiscard]] GlobalRange place(size_t row, size_t column, size_t columns) const {
        return {square_, {(row * extent_.columns + column) * sizeof(double), columns * sizeof(double)}};
    }
    void put_row(size_t row, size_t column, const double* values, size_t columns) {
        const GlobalRange to = place(row, column, columns);
        const MutableLocalRange local = client_.allocate_local(to.range.size, cache_);
        std::memcpy(local.pointer(), values, to.range.size);
        client_.put_and_release(local, to);
    }
    template <class Look>
    void with_row(size_t row, size_t column, size_t columns, const Look& look) {
        const ConstLocalRange local = client_.get_const(place(row, column, columns), cache_);
        look(reinterpret_cast<const double*>(local.pointer()));
        client_.release(local);
    }
    /// Of the cell that Cells::border() gives, if `rank` has it.
    [[nodiscard]] double known(Rank rank, int side, size_t i, size_t inside, int iteration) const {
        const bool flat = side == Mesh::kUp || side == Mesh::kDown;
        const size_t across = side == Mesh::kUp || side == Mesh::kLeft
                                  ? inside
                                  : now_.length(flat ? Mesh::kLeft : Mesh::kUp) + 1 - inside;
        const size_t row = block_.first_row + (flat ? across : i + 1);
        const size_t column = block_.first_column + (flat ? i + 1 : across);
        return static_cast<double>(row * (extent_.columns + 2) + column) + 1e8 * rank + 1e-3 * iteration;
    }

    /// Each rank puts its borders where its neighbours look for them, and looks when all have.
    void swap_borders() {
        std::vector<Operation> allocations, puts, gets, releases;
        std::vector<int> sides;
        for (int side = 0; side < kSides; ++side)
            if (mesh_.neighbour(server_.rank(), side) >= 0) sides.push_back(side);
        for (const int side : sides)
            allocations.push_back(op::Allocate{now_.length(side) * sizeof(double), cache_});
        const std::vector<OperationResult> own = client_.execute_sync(allocations);
        for (size_t which = 0; which < sides.size(); ++which) {
            const int side = sides[which];
            const auto local = std::get<MutableLocalRange>(own[which]);
            auto* const values = reinterpret_cast<double*>(local.pointer());
            for (size_t i = 0; i < now_.length(side); ++i) values[i] = now_.border(side, i, 1);
            const auto other = static_cast<uint64_t>(mesh_.neighbour(server_.rank(), side));
            puts.push_back(
                op::Put{local, {halos_[kOpposite[side]], {other * slot_, local.range.size}}, {}, true});
        }
        (void)client_.execute_sync(puts);
        collective_.barrier();
        for (const int side : sides)
            gets.push_back(op::GetMutable{
                {halos_[side], {server_.rank() * slot_, now_.length(side) * sizeof(double)}}, cache_});
        const std::vector<OperationResult> halos = client_.execute_sync(gets);
        for (size_t which = 0; which < sides.size(); ++which) {
            const auto local = std::get<MutableLocalRange>(halos[which]);
            const auto* const values = reinterpret_cast<const double*>(local.pointer());
            for (size_t i = 0; i < now_.length(sides[which]); ++i)
                now_.border(sides[which], i, 0) = values[i];
            releases.push_back(op::Release{local});
        }
        (void)client_.execute_sync(releases);
        collective_.barrier();  // a faster neighbour must not overwrite what is still read
    }

    const Options& options_;
    Extent extent_;
    Server& server_;
    Client client_;
    Collective collective_;
    Mesh mesh_;
    Block block_;
    Cells now_, next_;
    std::vector<bool> lamps_;  // of this block, row after row
    uint64_t slot_ = 0;
    SegmentId segment_;
    DataId halos_[kSides], square_;
    CacheId cache_;
    double residual_ = 0;
};

/// What rank 0 has read is for all to know.
Extent agreed(Server& server, const Extent& mine) {
    const std::vector<std::byte> all = Collective(server).broadcast(std::as_bytes(std::span(&mine, 1)), 0);
    Extent extent;
    std::memcpy(&extent, all.data(), sizeof extent);
    return extent;
}

/// 0, or 1 where a transfer was wrong.
int solve(Server& server, const Options& options) {
    GreyMap picture;
    if (server.rank() == 0 && !options.lamps.empty()) {
        try {
            picture = heddle::example::read_grey_map(options.lamps);
        } catch (const std::exception& error) {
            // Now: who hears of it first ends, and this rank may be ended for that.
            fmt::print(stderr, "jacobi: {}\n", error.what());
        }
    }
    const Extent extent = options.lamps.empty() ? Extent{options.n, options.n}
                                                : agreed(server, {picture.rows, picture.columns});
    if (extent.rows == 0) return 1;  // rank 0 has said why
    if (!Mesh(extent.rows, extent.columns, server.ranks()).fits())
        throw std::runtime_error("there are more ranks than rows or columns: use fewer");
    Solver solver(server, options, extent);
    if (!options.lamps.empty()) solver.light(picture);
    const auto begun = std::chrono::steady_clock::now();
    size_t wrong = 0;
    if (options.verify)
        wrong = solver.verify();
    else
        solver.run();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    if (wrong > 0) fmt::print(stderr, "jacobi: rank {} got {} wrong cells\n", server.rank(), wrong);
    solver.gather();
    const double residual = solver.residual();
    if (server.rank() == 0 && options.verify)
        fmt::print("{} iterations on {} rank(s), segment {}: the transfers of rank 0 are {}\n",
                   options.iterations, server.ranks(), options.segment, wrong == 0 ? "right" : "wrong");
    else if (server.rank() == 0)
        fmt::print("{}, {} iterations on {} rank(s), segment {}: {:.3f} s, change {:.3g}, result {:016x}\n",
                   options.lamps.empty() ? fmt::format("n {}", options.n)
                                         : fmt::format("{} x {}", extent.columns, extent.rows),
                   options.iterations, server.ranks(), options.segment, taken.count(), residual,
                   solver.fingerprint());
    if (server.rank() == 0 && !options.warmth.empty())
        heddle::example::write_grey_map(options.warmth, solver.picture());
    solver.end();
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("The Laplace equation on a square, by Jacobi's iteration on the ranks of a directory/cache");
    app.add_option("--n", options.n, "Rows and columns of the square")->check(CLI::Range(1, 100'000));
    app.add_option("--iterations", options.iterations, "Steps")->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--segment", options.segment, "What the memory is made of: shm, file, mpi or gaspi");
    app.add_option("--path", options.path, "The folder of segments that are files");
    app.add_option("--data", options.data,
                   "How MPI carries the data: windows or messages; by itself it finds out");
    app.add_flag("--verify", options.verify, "Check each transfer in place of solving");
    app.add_option("--lamps", options.lamps,
                   "A picture (PGM), whose bright parts heat the rest, in place of a square");
    app.add_option("--bright", options.bright, "From which brightness on, 0 to 1")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--warmth", options.warmth, "The picture (PGM) to make of the result");
    CLI11_PARSE(app, argc, argv);
    try {
        Server server;
        return solve(server, options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "jacobi: {}\n", error.what());
        return 1;
    }
}
