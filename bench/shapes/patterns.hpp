// METG(50 %): the smallest tasks that an engine keeps half of its workers' time in, on patterns of
// dependencies.
//
// As Task Bench has it: a pattern is kSteps rows of kWidth tasks, each of which reads what some tasks of the
// row before wrote; granularity is the run's time by workers, a task; METG(50 %) is the granularity at which
// the tasks' own work is half of that. Rows write to two sets of data in turn.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "shapes.hpp"

namespace shapes {

enum class Dependences { kStencil, kTree, kFft, kAllToAll };

struct Pattern {
    static constexpr int kWidth = 8;
    static constexpr int kLogWidth = 3;
    static constexpr int kSteps = 250;
    static constexpr int kData = 2 * kWidth;

    Dependences kind;
    int tasks = count();

    /// Tasks of a row: a tree has one at its root.
    [[nodiscard]] int width(int row) const {
        return kind == Dependences::kTree && row < kLogWidth ? 1 << row : kWidth;
    }
    /// Calls with each column of the row before that a task of this row reads.
    template <class Use>
    void each_read(int row, int column, Use use) const {
        const auto one = [&](int other) {
            if (other >= 0 && other < kWidth) use(other);
        };
        switch (kind) {
            case Dependences::kStencil:
                for (int other = column - 1; other <= column + 1; ++other) one(other);
                break;
            case Dependences::kTree:
                one(column / 2);
                break;
            case Dependences::kFft: {
                const int distance = 1 << ((row - 1) % kLogWidth);
                for (int other = column - distance; other <= column + distance; other += distance) one(other);
                break;
            }
            case Dependences::kAllToAll:
                for (int other = 0; other < kWidth; ++other) one(other);
                break;
        }
    }
    template <class Engine, class Data>
    void insert(Engine& engine, Data& data) const {
        using Datum = typename Engine::Datum;
        std::array<Datum*, kWidth> reads;
        for (int row = 0; row < kSteps; ++row) {
            const auto element = [&](int of_row, int column) -> Datum& {
                return data[static_cast<size_t>(of_row % 2 * kWidth + column)];
            };
            for (int column = 0; column < width(row); ++column) {
                size_t count = 0;
                if (row > 0)
                    each_read(row, column, [&](int other) { reads[count++] = &element(row - 1, other); });
                engine.insert(std::span<Datum* const>(reads.data(), count), element(row, column));
            }
        }
    }

  private:
    [[nodiscard]] int count() const {
        int sum = 0;
        for (int row = 0; row < kSteps; ++row) sum += width(row);
        return sum;
    }
};

/// METG(50 %) in us, between the last of ever shorter tasks with which more is reached and the first with
/// which it is not. Tasks of 0.2 ms with which it is not end the search: the figure is then at least so much.
template <class Engine>
double metg_us(Engine& engine, Dependences kind, int workers) {
    const Pattern pattern{kind};
    const double step_ns = step_takes_ns();
    struct Point {
        double granularity_ns, efficiency;
    };
    const auto measure = [&](double task_ns) {
        kernel_steps = static_cast<uint64_t>(task_ns / step_ns);
        const double each_ns = ns_per_task(engine, pattern, 3) * workers;
        return Point{each_ns, static_cast<double>(kernel_steps) * step_ns / each_ns};
    };
    constexpr double kShortestNs = 20, kLongestNs = 200'000;
    double task_ns = 16'000;
    Point enough = measure(task_ns);
    while (enough.efficiency < 0.5 && task_ns < kLongestNs) enough = measure(task_ns *= 2);
    Point less = enough;
    while (less.efficiency >= 0.5 && task_ns > kShortestNs) {
        enough = less;
        less = measure(task_ns /= std::sqrt(2));
    }
    if (less.efficiency >= 0.5 || enough.efficiency < 0.5) return less.granularity_ns / 1000;
    const double part = (0.5 - less.efficiency) / (enough.efficiency - less.efficiency);
    return (less.granularity_ns + part * (enough.granularity_ns - less.granularity_ns)) / 1000;
}

}  // namespace shapes
