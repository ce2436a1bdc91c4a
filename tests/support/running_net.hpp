// A network in one process whose records that leave are kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streams/network.hpp"
#include "streams/parser.hpp"

namespace heddle::test {

inline const streams::Label kA(streams::LabelKind::kTag, "a"), kB(streams::LabelKind::kTag, "b"),
    kK(streams::LabelKind::kTag, "k");

inline streams::Record with(std::vector<std::pair<streams::Label, int>> tags) {
    streams::Record record;
    for (const auto& [label, value] : tags) record.set(label, value);
    return record;
}

class RunningNet {
  public:
    explicit RunningNet(const std::string& text, int workers = 2, size_t bound = 8,
                        std::map<std::string, streams::BoxFunction> boxes = {}, bool letters = false)
        : program_(streams::parse(streams::Source("test", text))) {
        streams::NetworkOptions options;
        options.workers = workers;
        options.queue_bound = bound;
        options.boxes = [boxes](const streams::BoxDefinition& box) { return boxes.at(box.name); };
        options.output = [this](streams::Record record) { out_.push_back(std::move(record)); };
        if (letters)
            options.dead_letter = [this](const streams::Record&, const std::string& why) {
                letters_.push_back(why);
            };
        network_ = std::make_unique<streams::Network>(*program_, std::move(options));
    }
    streams::Network& network() { return *network_; }
    std::vector<int> values(streams::Label label) {
        std::vector<int> values;
        for (const streams::Record& record : out_)
            values.push_back(record.has(label) ? record.tag(label) : -1);
        return values;
    }
    const std::vector<std::string>& letters() const { return letters_; }

  private:
    std::unique_ptr<streams::Program> program_;
    std::vector<streams::Record> out_;
    std::vector<std::string> letters_;
    std::unique_ptr<streams::Network> network_;
};

inline std::vector<int> upto(int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(i);
    return all;
}

}  // namespace heddle::test
