#include "trace/raster.hpp"

#include <algorithm>

namespace heddle::trace {
namespace {

struct Amount {
    Who user;
    double of_column;
};
using Amounts = std::vector<Amount>;

void add(Amounts& amounts, Who user, double by) {
    for (Amount& amount : amounts) {
        if (amount.user != user) continue;
        amount.of_column += by;
        return;
    }
    amounts.push_back({user, by});
}

double amount_of(const Amounts& amounts, Who user) {
    for (const Amount& amount : amounts)
        if (amount.user == user) return amount.of_column;
    return 0;
}

// Calls visit(column, share) for each column that [begin, end) touches; the shares add up to its length in
// columns.
template <class Visit>
void for_each_column(int64_t begin_ns, int64_t end_ns, double columns_per_ns, int columns, Visit visit) {
    const double begin = static_cast<double>(begin_ns) * columns_per_ns;
    const double end = std::min(static_cast<double>(end_ns) * columns_per_ns, static_cast<double>(columns));
    for (int column = static_cast<int>(begin); column < end; ++column)
        visit(column, std::min(end, column + 1.0) - std::max(begin, static_cast<double>(column)));
}

// Gives each column in turn to one of those present in it, and keeps the accounts of what they are due.
class Dither {
  public:
    explicit Dither(double whole) : whole_(whole) {}

    Who choose(const Amounts& present) {
        for (const Amount& amount : present) {
            if (amount.of_column < whole_ * (1 - 1e-9)) continue;
            due_.clear();  // a clear column starts afresh: old debts would smear its edges
            return last_ = amount.user;
        }
        for (const Amount& amount : present) add(due_, amount.user, amount.of_column);
        Who best = present.front().user;
        for (const Amount& amount : present) {
            const double lead = amount_of(due_, amount.user) - amount_of(due_, best);
            const bool tie = lead > -1e-9 && lead < 1e-9;
            if (tie ? amount.user == last_ : lead > 0) best = amount.user;
        }
        add(due_, best, -whole_);
        return last_ = best;
    }

  private:
    double whole_;
    Amounts due_;
    Who last_ = kNobody;
};

}  // namespace

std::vector<Run> rasterize(std::span<const CpuHistory> cpus, int64_t end_ns, int columns) {
    if (end_ns <= 0 || cpus.empty()) return {};
    const double columns_per_ns = columns / static_cast<double>(end_ns);
    std::vector<Amounts> present(static_cast<size_t>(columns));
    for (const CpuHistory& cpu : cpus)
        for (const Slice& slice : cpu.slices)
            if (slice.user != kNobody)
                for_each_column(slice.begin_ns, slice.end_ns, columns_per_ns, columns,
                                [&](int column, double share) {
                                    add(present[static_cast<size_t>(column)], slice.user, share);
                                });
    std::vector<Run> runs;
    const auto whole = static_cast<double>(cpus.size());
    Dither dither(whole);
    for (int column = 0; column < columns; ++column) {
        Amounts& here = present[static_cast<size_t>(column)];
        double idle = whole;
        for (const Amount& amount : here) idle -= amount.of_column;
        if (idle > 1e-9 * whole || here.empty()) here.push_back({kNobody, idle});
        const Who user = dither.choose(here);
        if (user == kNobody) continue;
        if (!runs.empty() && runs.back().user == user && runs.back().first + runs.back().count == column)
            ++runs.back().count;
        else
            runs.push_back({column, 1, user});
    }
    return runs;
}

std::vector<double> column_means(const std::vector<Step>& steps, int64_t end_ns, int columns) {
    std::vector<double> means(static_cast<size_t>(columns));
    if (end_ns <= 0) return means;
    const double columns_per_ns = columns / static_cast<double>(end_ns);
    for (size_t i = 0; i < steps.size(); ++i) {
        const int64_t until = i + 1 < steps.size() ? steps[i + 1].at_ns : end_ns;
        for_each_column(steps[i].at_ns, until, columns_per_ns, columns, [&](int column, double share) {
            means[static_cast<size_t>(column)] += share * static_cast<double>(steps[i].value);
        });
    }
    return means;
}

}  // namespace heddle::trace
