#include "rows.hpp"

void smooth_openmp(Smoothing& smoothing) {
    Image image(smoothing);
    for (int round = 0; round < smoothing.rounds; ++round) {
#pragma omp parallel for
        for (size_t row = 0; row < image.rows; ++row) image.smooth_row(row);
        image.now.swap(image.next);
    }
    smoothing.result = image.sum();
}
