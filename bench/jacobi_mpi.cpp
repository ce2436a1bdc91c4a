// jacobi_mpi N ITERATIONS   The peer of memory.jacobi: the program of examples/jacobi as one writes it by
// hand in MPI, with the same blocks, the same step and the same line of output.
#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "jacobi/cells.hpp"

namespace {

using heddle::example::Block;
using heddle::example::Cells;
using heddle::example::Mesh;

/// The border of each side goes to the neighbour there, and its border comes here.
void swap_borders(const Mesh& mesh, int rank, Cells& cells) {
    MPI_Request requests[8];
    int count = 0;
    std::vector<double> in[4], out[4];
    for (int side = 0; side < 4; ++side) {
        const int other = mesh.neighbour(static_cast<heddle::memory::Rank>(rank), side);
        if (other < 0) continue;
        const size_t length = cells.length(side);
        in[side].resize(length);
        out[side].resize(length);
        for (size_t i = 0; i < length; ++i) out[side][i] = cells.border(side, i, 1);
        MPI_Irecv(in[side].data(), static_cast<int>(length), MPI_DOUBLE, other, 0, MPI_COMM_WORLD,
                  &requests[count++]);
        MPI_Isend(out[side].data(), static_cast<int>(length), MPI_DOUBLE, other, 0, MPI_COMM_WORLD,
                  &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 4; ++side)
        for (size_t i = 0; i < in[side].size(); ++i) cells.border(side, i, 0) = in[side][i];
}

/// The whole square on rank 0.
uint64_t fingerprint(const Mesh& mesh, int rank, int ranks, size_t n, Cells& cells) {
    std::vector<double> all(rank == 0 ? n * n : 0), part;
    for (int from = 0; from < ranks; ++from) {
        const Block block = mesh.block(static_cast<heddle::memory::Rank>(from));
        part.resize(block.rows * block.columns);
        for (size_t row = 0; rank == from && row < block.rows; ++row)
            for (size_t column = 0; column < block.columns; ++column)
                part[row * block.columns + column] = cells.at(row + 1, column + 1);
        const int count = static_cast<int>(part.size());
        if (rank == from && from > 0) MPI_Send(part.data(), count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        if (rank > 0) continue;
        if (from > 0) MPI_Recv(part.data(), count, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t row = 0; row < block.rows; ++row)
            for (size_t column = 0; column < block.columns; ++column)
                all[(block.first_row + row) * n + block.first_column + column] =
                    part[row * block.columns + column];
    }
    heddle::example::Fingerprint hash;
    hash.add(all.data(), all.size() * sizeof(double));
    return hash.value();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const size_t n = std::strtoul(argv[1], nullptr, 10);
    const int iterations = std::atoi(argv[2]);
    int rank = 0, ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const Mesh mesh(n, static_cast<heddle::memory::Rank>(ranks));
    const Block block = mesh.block(static_cast<heddle::memory::Rank>(rank));
    Cells now(block), next(block);
    heddle::example::heat(block, now);
    heddle::example::heat(block, next);
    double residual = 0;
    const auto begun = std::chrono::steady_clock::now();
    for (int iteration = 0; iteration < iterations; ++iteration) {
        swap_borders(mesh, rank, now);
        residual = heddle::example::step(block, now, next);
        std::swap(now, next);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    const uint64_t hash = fingerprint(mesh, rank, ranks, n, now);
    if (rank == 0)
        fmt::print("n {}, {} iterations on {} rank(s), plain MPI: {:.3f} s, change {:.3g}, result {:016x}\n",
                   n, iterations, ranks, taken.count(), residual, hash);
    MPI_Finalize();
    return 0;
}
