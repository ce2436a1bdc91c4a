// ObserverPart: tells of each record that passes it, before or behind a box or net whose metadata ask for it.
#pragma once

#include "streams/parts.hpp"

namespace heddle::streams {

class ObserverPart final : public Inlet {
  public:
    ObserverPart(Plant& plant, Inlet& to, Observe observe, bool before, const Path& path)
        : plant_(plant), to_(to), observe_(std::move(observe)), before_(before), path_(path) {}
    void take(Record&& record, Flow& flow) override {
        try {
            observe_(record, before_);
        } catch (const std::exception& error) {
            plant_.fail(std::move(record), path_, error.what());
            return;
        }
        flow.pass(to_, std::move(record));
    }

  private:
    Plant& plant_;
    Inlet& to_;
    const Observe observe_;
    const bool before_;
    const Path& path_;
};

}  // namespace heddle::streams
