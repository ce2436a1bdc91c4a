// S-Net's FRONT as a peer: runs front_nets, which is built where there is a snet-rts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heddle::bench {

inline constexpr const char* kNoFront =
    "there was no snet-rts when this was built; set SNET_RTS_HOME to where it is installed";

class FrontPeer {
  public:
    /// The folder of front_nets.
    explicit FrontPeer(const std::filesystem::path& programs) : program_(programs / "front_nets") {}
    [[nodiscard]] bool is_there() const { return std::filesystem::exists(program_); }
    /// One run of each, in seconds. Throws kUnavailable where it fails or gives something else than `wanted`.
    void run(const char* net, int number, int wanted);
    /// Seconds of the net's runs above those of a net that does nothing, medians of both: what the run-time
    /// system takes to begin and to end is not counted.
    [[nodiscard]] double median() const;

  private:
    std::filesystem::path program_;
    std::vector<double> net_, nothing_;
};

}  // namespace heddle::bench
