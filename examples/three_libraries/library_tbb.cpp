#include <oneapi/tbb/parallel_for.h>

#include "rows.hpp"

void smooth_tbb(Smoothing& smoothing) {
    Image image(smoothing);
    for (int round = 0; round < smoothing.rounds; ++round) {
        tbb::parallel_for(size_t{0}, image.rows, [&](size_t row) { image.smooth_row(row); });
        image.now.swap(image.next);
    }
    smoothing.result = image.sum();
}
