#include "heddle/offload.hpp"
#include "heddle/task.hpp"
#include "rows.hpp"

namespace {

void smooth_on(heddle::Runtime& runtime, Smoothing& smoothing) {
    constexpr size_t kRowsInTask = 16;
    Image image(smoothing);
    for (int round = 0; round < smoothing.rounds; ++round) {
        heddle::Sequence sequence(runtime);
        for (size_t begin = 0; begin < image.rows; begin += kRowsInTask)
            sequence.insert([&image, begin] {
                for (size_t row = begin; row < image.rows && row < begin + kRowsInTask; ++row)
                    image.smooth_row(row);
            });
        sequence.wait();
        image.now.swap(image.next);
    }
    smoothing.result = image.sum();
}

}  // namespace

/// On the runtime of the kernel that it is in, or else on one of its own.
void smooth_native(Smoothing& smoothing) {
    if (!heddle::kernel_cpus().empty()) return smooth_on(heddle::kernel_runtime(), smoothing);
    static heddle::Runtime own;
    smooth_on(own, smoothing);
}
