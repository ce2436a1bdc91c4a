// The Laplace equation on a square, by Jacobi's iteration on as many ranks as there are (seed 001
// section 4.4): the borders of the blocks go through global memory, of the kind that one word on the command
// line names.
//
//     heddle memory launch -n 4 -- jacobi --n 300 --iterations 200 --segment shm
//     mpirun -n 4 jacobi --n 300 --iterations 200 --segment mpi
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <vector>

#include "cells.hpp"
#include "heddle/memory.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: an example of it
using heddle::example::Block;
using heddle::example::Cells;
using heddle::example::Mesh;

constexpr int kSides = 4;
/// Whose border a side gets.
constexpr int kOpposite[kSides] = {Mesh::kDown, Mesh::kUp, Mesh::kRight, Mesh::kLeft};

struct Options {
    size_t n = 256;
    int iterations = 200;
    std::string segment = "shm", path, data;
    bool verify = false;
};

class Solver {
  public:
    Solver(Server& server, const Options& options)
        : options_(options),
          server_(server),
          client_(server),
          collective_(server),
          mesh_(options.n, server.ranks()),
          block_(mesh_.block(server.rank())),
          now_(block_),
          next_(block_) {
        const size_t longest = std::max(mesh_.most_rows(), mesh_.most_columns());
        slot_ = longest * sizeof(double);
        SegmentDescription description{options.segment, {}};
        if (!options.path.empty()) description.options["path"] = options.path;
        if (!options.data.empty()) description.options["data"] = options.data;
        const uint64_t borders = kSides * server.ranks() * slot_;
        const uint64_t square = options.n * options.n * sizeof(double);
        segment_ = collective_.create_segment(borders + square, description);
        for (DataId& side : halos_) side = collective_.allocate(server.ranks() * slot_, segment_);
        square_ = collective_.allocate(square, segment_);
        cache_ = client_.create_cache(std::max(kSides * slot_ * 2, options.n * sizeof(double)));
        heddle::example::heat(block_, now_);
        heddle::example::heat(block_, next_);
    }

    void run() {
        for (int iteration = 0; iteration < options_.iterations; ++iteration) {
            swap_borders();
            residual_ = heddle::example::step(block_, now_, next_);
            std::swap(now_, next_);
        }
    }

    /// Borders whose every cell is a function of rank, place and iteration: what arrives is known. Returns
    /// the number of wrong cells.
    size_t verify() {
        size_t wrong = 0;
        for (int iteration = 0; iteration < options_.iterations; ++iteration) {
            for (int side = 0; side < kSides; ++side)
                for (size_t i = 0; i < length(side); ++i)
                    border(side, i, 1) = known(server_.rank(), side, i, 1, iteration);
            swap_borders();
            for (int side = 0; side < kSides; ++side) {
                const int other = mesh_.neighbour(server_.rank(), side);
                for (size_t i = 0; other >= 0 && i < length(side); ++i)
                    wrong += border(side, i, 0) != known(static_cast<Rank>(other), side, i, 0, iteration);
            }
        }
        return wrong;
    }

    /// A number that two results share only where all their bytes are the same.
    uint64_t fingerprint() {
        for (size_t row = 0; row < block_.rows; ++row) {
            const uint64_t offset =
                ((block_.first_row + row) * options_.n + block_.first_column) * sizeof(double);
            const MutableLocalRange local = client_.allocate_local(block_.columns * sizeof(double), cache_);
            std::memcpy(local.pointer(), &now_.at(row + 1, 1), local.range.size);
            client_.put_and_release(local, {square_, {offset, local.range.size}});
        }
        collective_.barrier();
        heddle::example::Fingerprint hash;
        for (size_t row = 0; server_.rank() == 0 && row < options_.n; ++row) {
            const uint64_t size = options_.n * sizeof(double);
            const ConstLocalRange local = client_.get_const({square_, {row * size, size}}, cache_);
            hash.add(local.pointer(), size);
            client_.release(local);
        }
        return hash.value();
    }

    [[nodiscard]] CacheStatistics statistics() const { return client_.statistics(cache_); }
    [[nodiscard]] double residual() const { return residual_; }

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
    /// Of the cell that border() gives, if `rank` has it.
    [[nodiscard]] double known(Rank rank, int side, size_t i, size_t inside, int iteration) const {
        const bool flat = side == Mesh::kUp || side == Mesh::kDown;
        const size_t across = side == Mesh::kUp || side == Mesh::kLeft
                                  ? inside
                                  : length(flat ? Mesh::kLeft : Mesh::kUp) + 1 - inside;
        const size_t row = block_.first_row + (flat ? across : i + 1);
        const size_t column = block_.first_column + (flat ? i + 1 : across);
        return static_cast<double>(row * (options_.n + 2) + column) + 1e8 * rank + 1e-3 * iteration;
    }
    [[nodiscard]] size_t length(int side) const {
        return side == Mesh::kUp || side == Mesh::kDown ? block_.columns : block_.rows;
    }
    /// The ith cell of a side: 0 the one of the neighbour, 1 one's own.
    double& border(int side, size_t i, size_t inside) {
        switch (side) {
            case Mesh::kUp:
                return now_.at(inside, i + 1);
            case Mesh::kDown:
                return now_.at(block_.rows + 1 - inside, i + 1);
            case Mesh::kLeft:
                return now_.at(i + 1, inside);
            default:
                return now_.at(i + 1, block_.columns + 1 - inside);
        }
    }

    /// Each rank puts its borders where its neighbours look for them, and looks when all have.
    void swap_borders() {
        std::vector<Operation> allocations, puts, gets, releases;
        std::vector<int> sides;
        for (int side = 0; side < kSides; ++side)
            if (mesh_.neighbour(server_.rank(), side) >= 0) sides.push_back(side);
        for (const int side : sides)
            allocations.push_back(op::Allocate{length(side) * sizeof(double), cache_});
        const std::vector<OperationResult> own = client_.execute_sync(allocations);
        for (size_t which = 0; which < sides.size(); ++which) {
            const int side = sides[which];
            const auto local = std::get<MutableLocalRange>(own[which]);
            auto* const values = reinterpret_cast<double*>(local.pointer());
            for (size_t i = 0; i < length(side); ++i) values[i] = border(side, i, 1);
            const auto other = static_cast<uint64_t>(mesh_.neighbour(server_.rank(), side));
            puts.push_back(
                op::Put{local, {halos_[kOpposite[side]], {other * slot_, local.range.size}}, {}, true});
        }
        (void)client_.execute_sync(puts);
        collective_.barrier();
        for (const int side : sides)
            gets.push_back(op::GetMutable{
                {halos_[side], {server_.rank() * slot_, length(side) * sizeof(double)}}, cache_});
        const std::vector<OperationResult> halos = client_.execute_sync(gets);
        for (size_t which = 0; which < sides.size(); ++which) {
            const auto local = std::get<MutableLocalRange>(halos[which]);
            const auto* const values = reinterpret_cast<const double*>(local.pointer());
            for (size_t i = 0; i < length(sides[which]); ++i) border(sides[which], i, 0) = values[i];
            releases.push_back(op::Release{local});
        }
        (void)client_.execute_sync(releases);
        collective_.barrier();  // a faster neighbour must not overwrite what is still read
    }

    const Options& options_;
    Server& server_;
    Client client_;
    Collective collective_;
    Mesh mesh_;
    Block block_;
    Cells now_, next_;
    uint64_t slot_ = 0;
    SegmentId segment_;
    DataId halos_[kSides], square_;
    CacheId cache_;
    double residual_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("The Laplace equation on a square, by Jacobi's iteration on the ranks of a directory/cache");
    app.add_option("--n", options.n, "Rows and columns of the square")->check(CLI::Range(1, 100'000));
    app.add_option("--iterations", options.iterations, "Steps")->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--segment", options.segment, "What the memory is made of: shm, file or mpi");
    app.add_option("--path", options.path, "The folder of segments that are files");
    app.add_option("--data", options.data,
                   "How MPI carries the data: windows or messages; by itself it finds out");
    app.add_flag("--verify", options.verify, "Check each transfer in place of solving");
    CLI11_PARSE(app, argc, argv);
    try {
        Server server;
        if (server.ranks() > options.n) throw std::runtime_error("there are more ranks than rows: use fewer");
        Solver solver(server, options);
        const auto begun = std::chrono::steady_clock::now();
        size_t wrong = 0;
        if (options.verify)
            wrong = solver.verify();
        else
            solver.run();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
        const uint64_t fingerprint = solver.fingerprint();
        if (wrong > 0) fmt::print(stderr, "jacobi: rank {} got {} wrong cells\n", server.rank(), wrong);
        if (server.rank() == 0) {
            if (options.verify)
                fmt::print("{} iterations on {} rank(s), segment {}: the transfers of rank 0 are {}\n",
                           options.iterations, server.ranks(), options.segment,
                           wrong == 0 ? "right" : "wrong");
            else
                fmt::print(
                    "n {}, {} iterations on {} rank(s), segment {}: {:.3f} s, change {:.3g}, result "
                    "{:016x}\n",
                    options.n, options.iterations, server.ranks(), options.segment, taken.count(),
                    solver.residual(), fingerprint);
        }
        solver.end();
        return wrong == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "jacobi: {}\n", error.what());
        return 1;
    }
}
