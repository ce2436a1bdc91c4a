#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace heddle::bench {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_absolute_deviation(const std::vector<double>& values) {
    const double center = median(values);
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) distances.push_back(std::abs(value - center));
    return median(std::move(distances));
}

Summary summarize(const std::vector<Sample>& samples) {
    std::vector<double> values;
    double lowest_cut = INFINITY;
    for (const Sample& sample : samples) {
        values.push_back(sample.value);
        if (sample.cut) lowest_cut = std::min(lowest_cut, sample.value);
    }
    Summary summary;
    summary.n = static_cast<int>(samples.size());
    summary.median = median(values);
    summary.mad = median_absolute_deviation(values);
    // A cut run may really lie anywhere above its value, also above those in the middle, of which the upper
    // one is looked at: the median would be higher then.
    std::ranges::sort(values);
    summary.at_least = !values.empty() && lowest_cut <= values[values.size() / 2];
    return summary;
}

std::vector<Sample> differences(const std::vector<Sample>& ours, const std::vector<Sample>& theirs) {
    std::vector<Sample> result;
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        result.push_back({ours[i].value - theirs[i].value, ours[i].cut || theirs[i].cut});
    return result;
}

}  // namespace heddle::bench
