// A band to a tridiagonal matrix. Sweep s makes column s tridiagonal by a reflector, which fills a bulge
// below the band; reflectors further down chase it out at the end. A step touches 2 widths of rows and
// columns.
//
// A task does some steps of each of several sweeps, one behind the other by a step: together they stay within
// two blocks of columns, which are in a cache for all of them. Blocks are what tasks name: sweeps that follow
// run on blocks that these have left.
#include <algorithm>
#include <vector>

#include "algebra/blas_threads.hpp"
#include "algebra/eigen_stages.hpp"
#include "algebra/lapack.hpp"
#include "algebra/task_inserter.hpp"

namespace heddle::algebra {
namespace {

constexpr int kOne = 1;

/// v = 1, x... with (I − tau v vᵀ) x = a multiple of the first unit vector, which x becomes.
void reflect(size_t count, double* x, double* v, double& tau) {
    const int n = static_cast<int>(count);
    lapack().dlarfg(&n, x, x + 1, &kOne, &tau);
    v[0] = 1;
    std::copy_n(x + 1, count - 1, v + 1);
    std::fill_n(x + 1, count - 1, 0.0);
}

/// The band, and where its sweeps are.
class Chase {
  public:
    explicit Chase(SymmetricBand& band)
        : n_(band.size()),
          width_(band.width()),
          band_(band.view().data),
          leading_(2 * width_),
          next_(n_),
          tau_(n_),
          reflectors_(width_, n_) {
        for (size_t s = 0; s < n_; ++s) next_[s] = kNotStarted;
    }

    /// Goes on with a sweep while its steps stay below the row and column `limit`.
    void advance(size_t sweep, size_t limit, double* work) {
        size_t& row = next_[sweep];
        double* const v = &reflectors_(0, sweep);
        double& tau = tau_[sweep];
        if (row == kNotStarted) {
            const size_t count = std::min(width_, n_ - 1 - sweep);
            if (sweep + 1 + count > limit) return;
            reflect(count, at(sweep + 1, sweep), v, tau);
            apply_both(sweep + 1, count, v, tau, work);
            row = sweep + 1;
        }
        while (row + width_ < n_) {
            const size_t below = row + width_, count = std::min(width_, n_ - below);
            if (below + count > limit) return;
            step(row, below, count, v, tau, work);
            row = below;
        }
    }

  private:
    static constexpr size_t kNotStarted = static_cast<size_t>(-1);

    /// Element (i, j) of a matrix with the leading dimension leading_.
    [[nodiscard]] double* at(size_t i, size_t j) const { return band_ + i + j * leading_; }

    /// D = H D H with H = I − tau v vᵀ, D the symmetric block that begins in `first`.
    void apply_both(size_t first, size_t count, const double* v, double tau, double* w) const {
        if (tau == 0) return;
        const int n = static_cast<int>(count), leading = static_cast<int>(leading_);
        const double zero = 0, minus = -1;
        double* const d = at(first, first);
        lapack().dsymv("L", &n, &tau, d, &leading, v, &kOne, &zero, w, &kOne, 1);
        double dot = 0;
        for (size_t i = 0; i < count; ++i) dot += w[i] * v[i];
        for (size_t i = 0; i < count; ++i) w[i] -= 0.5 * tau * dot * v[i];
        lapack().dsyr2("L", &n, &minus, v, &kOne, w, &kOne, d, &leading, 1);
    }

    /// The block of `count` rows from `below` that the last reflector, of the columns from `row`, fills.
    void step(size_t row, size_t below, size_t count, double* v, double& tau, double* w) const {
        const int m = static_cast<int>(count), n = static_cast<int>(width_),
                  leading = static_cast<int>(leading_);
        const double zero = 0, one = 1;
        double* const b = at(below, row);
        const double right = -tau;
        lapack().dgemv("N", &m, &n, &one, b, &leading, v, &kOne, &zero, w, &kOne, 1);
        lapack().dger(&m, &n, &right, w, &kOne, v, &kOne, b, &leading);
        reflect(count, b, v, tau);
        if (tau != 0 && n > 1) {
            const int rest = n - 1;
            const double left = -tau;
            double* const c = b + leading_;
            lapack().dgemv("T", &m, &rest, &one, c, &leading, v, &kOne, &zero, w, &kOne, 1);
            lapack().dger(&m, &rest, &left, v, &kOne, w, &kOne, c, &leading);
        }
        apply_both(below, count, v, tau, w);
    }

    size_t n_, width_;
    double* band_;
    size_t leading_;
    std::vector<size_t> next_;  // the first row of the sweep's last reflector
    std::vector<double> tau_;
    DenseMatrix reflectors_;  // the last one of each sweep
};

}  // namespace

void chase_bulges(Runtime& runtime, SymmetricBand& band, Progress* progress) {
    const size_t n = band.size(), width = band.width();
    if (width < 2 || n < 3) return;
    Chase chase(band);
    // A sweep is a step of at most `width` behind the one before: with `group` of them and the reach of a
    // step, a task's steps begin in the block before its own at the earliest.
    const size_t group = 7, size = (group + 1) * width;
    std::vector<Matrix<double>> blocks;
    blocks.emplace_back(runtime, 1, 1);  // what comes before the first
    for (size_t first = 0; first < n; first += size) {
        const MatrixView<double> all = band.view();
        blocks.emplace_back(
            runtime, MatrixView<double>{&all(0, first), all.rows, std::min(size, n - first), all.leading});
    }
    Sequence sequence(runtime);
    TaskInserter insert(sequence, progress);
    for (size_t sweep = 0; sweep + 2 < n; sweep += group) {
        const size_t last = std::min(sweep + group, n - 2);
        for (size_t block = 1 + sweep / size; block < blocks.size(); ++block) {
            const bool at_end = block + 1 == blocks.size();
            const auto work = [&chase, sweep, last, at_end, limit = block * size, width](MatrixView<double>,
                                                                                         MatrixView<double>) {
                const BlasThreads one(1);
                std::vector<double> scratch(width);
                for (size_t s = sweep; s < last; ++s)
                    chase.advance(s, at_end ? static_cast<size_t>(-1) : limit - (s - sweep) * width,
                                  scratch.data());
            };
            insert.task("chase", static_cast<int>(block), work, inout(blocks[block - 1]),
                        inout(blocks[block]));
        }
    }
    sequence.wait();
}

}  // namespace heddle::algebra
