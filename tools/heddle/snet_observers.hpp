// SnetObservers: what a program's metadata want to be told of records: into a file, or to one who listens and
// may want to be waited for.
//
// The keys are S-Net's: observer; observer_type before, after or both; observer_data labels, tagvalues or
// allvalues; observer_file, or observer_address and observer_port; observer_interactive; observer_code. Each
// observation is a text of XML of its own, as S-Net's run-time system writes it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "record_files.hpp"
#include "streams/network.hpp"

namespace heddle::tool {

class SnetObservers {
  public:
    /// What is to be called for the records of a part; null: nothing is. Throws kBadInput for metadata that
    /// say something else, kUnavailable where nobody listens. Any thread. What it returns is good while this
    /// lives; it throws what OpenFile and writing do.
    [[nodiscard]] streams::Observe observe(const std::string& position, const streams::Metadata& metadata);
    /// Throws kSystem where something could not be written.
    void flush();
    /// Nobody is waited for any more: observations that wait for an answer fail. Any thread.
    void stop_waiting() noexcept;

  private:
    /// Where observations go; several parts may share one.
    struct Place {
        explicit Place(OpenFile its_file) : file(std::move(its_file)) {}
        std::mutex mutex;
        OpenFile file;
        std::string heard;  ///< of one who answers, and not read yet
    };
    Place& place_of(const std::string& name);
    static void write(Place& place, const std::string& text, bool at_once);
    void wait_for_answer(Place& place, const std::string& name, int number) const;

    std::mutex opening_;  // before mutex_
    std::mutex mutex_;    // for the two below
    std::map<std::string, std::unique_ptr<Place>> places_;
    int numbers_ = 0;
    std::atomic<bool> stopped_{false};
};

}  // namespace heddle::tool
