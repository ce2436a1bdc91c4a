// KeptBuffers: the buffers of data that tasks for devices have used, with what devices have of them.
//
// A datum has one buffer over its own memory from its first such task on. In between two tasks its copies on
// devices stay as they are, until somebody else uses the datum (tasks/kept_data.hpp) or memory is short: of
// the copies that nobody uses those used longest ago go, where all together are more than half of the
// smallest device's memory. One for a TaskDevices; any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "devices/buffer_state.hpp"
#include "heddle/device_variant.hpp"
#include "tasks/data_state.hpp"

namespace heddle::devices {

/// Throws kInvalidArgument for a matrix whose columns do not follow each other without a gap.
[[nodiscard]] size_t bytes_without_gap(const heddle::detail::DataView& view);

class KeptBuffers final : public DataKeeper {
  public:
    using Copies = Buffer;

    explicit KeptBuffers(std::span<const Device> devices);
    /// Brings home what is left. No task uses it any more.
    ~KeptBuffers();
    KeptBuffers(const KeptBuffers&) = delete;
    KeptBuffers& operator=(const KeptBuffers&) = delete;

    /// A task begins to use the datum; end() follows. Throws kInvalidArgument for a matrix whose columns do
    /// not follow each other without a gap.
    [[nodiscard]] std::shared_ptr<Buffer> begin(DataState& data, AccessMode how);
    /// With `failed` the device's copy of what was to be written is worth nothing.
    void end(DataState& data, AccessMode how, bool failed) noexcept;

    void bring_home(DataState& data, heddle::AccessMode how) override;
    void forget(DataState& data) noexcept override;

  private:
    struct Kept {
        std::shared_ptr<Buffer> buffer;  // null: nothing is kept any more
        unsigned users = 0, writers = 0;
        unsigned coming_home = 0;  ///< calls that copy it into the datum's memory; writers wait for them
        uint64_t last_use = 0;
    };
    class ComingHome {
      public:
        ComingHome(KeptBuffers& keeper, DataState& data) : keeper_(keeper), data_(data) {}
        ~ComingHome();
        ComingHome(const ComingHome&) = delete;
        ComingHome& operator=(const ComingHome&) = delete;

      private:
        KeptBuffers& keeper_;
        DataState& data_;
    };
    void drop(Kept& kept) noexcept;
    void make_room() noexcept;

    /// No device has memory of its own: nothing is kept.
    const bool all_in_place_;
    const size_t most_bytes_;
    std::mutex mutex_;
    std::condition_variable home_;
    std::unordered_map<DataState*, Kept> kept_;
    size_t bytes_ = 0;  // of the buffers
    uint64_t uses_ = 0;
};

}  // namespace heddle::devices
