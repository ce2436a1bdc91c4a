// CostModel: what tasks took on a device, by their signature (the program's text, the kernels and how much
// work each has): the median of the last runs. The first one in a process is dropped, since drivers compile
// then; one run that took far too long changes no median.
//
// Kept in a file for each host, a line an entry: those of other devices and driver versions stay there, and
// are not used. A file that is not ours, or broken, is left alone and ignored. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "heddle/device_types.hpp"

namespace heddle::devices {

using Signature = uint64_t;

/// The last so many runs.
class RunTimes {
  public:
    void add(double us);
    /// None yet: nothing.
    [[nodiscard]] std::optional<double> median() const;
    /// Text and back; nothing where it is none.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] static std::optional<RunTimes> parse(const std::string& text);

  private:
    static constexpr size_t kKept = 9;
    std::array<double, kKept> us_{};
    size_t count_ = 0;
};

class DeviceCosts {
  public:
    [[nodiscard]] std::optional<double> estimate_us(Signature signature) const;
    /// `drop_first`: it is not counted where it is the first of this process.
    void add(Signature signature, double us, bool drop_first);

  private:
    friend class CostModel;
    struct Entry {
        RunTimes times;
        std::optional<double> median;  // of them
        bool ran = false;              // in this process
        int64_t used = 0;              // later is more; below 0: by an earlier process
    };
    mutable std::mutex mutex_;
    std::unordered_map<Signature, Entry> entries_;
};

class CostModel {
  public:
    /// Of the file, which need not be there; no path: nothing is kept.
    explicit CostModel(std::string path);
    /// The user's own for this host; "" where the system has no place for it.
    [[nodiscard]] static std::string default_path();

    /// "", or why the file is ignored, or costs are not kept.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] DeviceCosts& of(const DeviceInfo& device);
    /// Writes the file anew, with what others have written there since; whole or not at all; not one that is
    /// ignored. What was used last comes first, and no more than kMost.
    void save() const;

    static constexpr size_t kMost = 16'384;  ///< kernels with sizes and devices; 1 to 2 MB

  private:
    void read();
    [[nodiscard]] std::string problem_of_writing() const;

    const std::string path_;
    std::string problem_;
    std::map<std::string, DeviceCosts> devices_;  // their addresses stay
};

}  // namespace heddle::devices
