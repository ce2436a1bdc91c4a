// BoxCrash: which box ends the process, by a signal or by exit(), on stderr, before that takes it down as
// ever.
#pragma once

#include <cstddef>
#include <span>

#include "streams/box.hpp"

namespace heddle::tool {

/// For exit(), and for signals that a fault of a box's own code makes, where nobody handles them yet. Once in
/// a process.
void tell_of_box_crashes(size_t stack_bytes);

/// While it lives the box's function runs in this task, or thread: what it sends may pause the task, which
/// then may go on in another thread.
class RunningBox final : public streams::BoxCall {
  public:
    explicit RunningBox(streams::BoxCall& call);
    ~RunningBox() override;
    RunningBox(const RunningBox&) = delete;
    RunningBox& operator=(const RunningBox&) = delete;
    [[nodiscard]] const streams::BoxDefinition& box() const override { return call_.box(); }
    [[nodiscard]] std::span<streams::BoxValue> arguments() override { return call_.arguments(); }
    void emit_moved(size_t variant, std::span<streams::BoxValue> values) override;
    void emit_last(size_t variant, std::span<streams::BoxValue> values) override;

  private:
    void note() const;
    /// In its own code again.
    struct Back {
        const RunningBox& box;
        ~Back() { box.note(); }
    };

    streams::BoxCall& call_;
    const char* const name_;
};

}  // namespace heddle::tool
