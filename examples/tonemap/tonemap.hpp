// Reinhard's global operator (Reinhard, Stark, Shirley, Ferwerda, "Photographic tone reproduction for digital
// images", SIGGRAPH 2002) as tasks for devices, and as a plain loop to compare with.
#pragma once

#include <memory>
#include <vector>

#include "heddle/device.hpp"
#include "heddle/device_split.hpp"
#include "tonemap/picture.hpp"

namespace tonemap {

struct Settings {
    float key = 0.18f;   ///< the grey that the average becomes
    float gamma = 2.2f;  ///< of the screen
    size_t parts = 0;    ///< of rows, each a task that any device may run; 0: by the devices' measured speed
};

/// In double precision, one pixel after the other.
[[nodiscard]] Picture reference(const HdrPicture& picture, const Settings& settings);

class ToneMapper {
  public:
    explicit ToneMapper(heddle::devices::DeviceRuntime& runtime);
    /// Its kernels, for each kind of devices.
    [[nodiscard]] static heddle::devices::ProgramSource source();
    /// Throws heddle::Error.
    [[nodiscard]] Picture run(const HdrPicture& picture, const Settings& settings);
    /// Of the last run, in its order.
    [[nodiscard]] const std::vector<heddle::devices::TaskPointer>& tasks() const { return tasks_; }

  private:
    heddle::devices::DeviceRuntime& runtime_;
    std::shared_ptr<heddle::devices::Program> program_;
    heddle::devices::DeviceSplit luminance_split_, tones_split_;
    std::vector<heddle::devices::TaskPointer> tasks_;
};

/// The greatest difference of a channel.
[[nodiscard]] int greatest_difference(const Picture& a, const Picture& b);

}  // namespace tonemap
