// The networks of tests/golden/streams, 1,000 times each in one process, with one to four workers and the
// smallest queues: all of them keep order, so that each time what comes out is the file, to the byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/task.hpp"
#include "snet_boxes.hpp"
#include "streams/network.hpp"
#include "streams/parser.hpp"
#include "streams/record_streams.hpp"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using streams::Record;

const std::string kNetworks = HEDDLE_TEST_DATA "/golden/streams/";

std::vector<std::string> networks() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(kNetworks))
        if (fs::exists(entry.path() / "out.xml")) names.push_back(entry.path().filename().string());
    return names;
}

std::string text_of(const fs::path& path) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A network with its boxes and records, read once.
class GoldenNetwork {
  public:
    explicit GoldenNetwork(const std::string& folder)
        : program_(streams::parse(streams::Source::of_file(folder + "/net.snet"))),
          boxes_(*program_, fs::exists(folder + "/boxes.c") ? std::vector{folder + "/boxes.c"}
                                                            : std::vector<std::string>()) {
        const File in(std::fopen((folder + "/in.xml").c_str(), "r"), &std::fclose);
        const auto reader = make_record_reader(std::make_unique<streams::InputText>(in.get(), "in.xml"));
        while (std::optional<Record> record = reader->next()) records_.push_back(std::move(*record));
    }

    /// All that comes out, as XML.
    [[nodiscard]] std::string run(int workers, size_t bound) const {
        char* text = nullptr;
        size_t size = 0;
        File out(::open_memstream(&text, &size), &std::fclose);
        const auto writer = make_record_writer(out.get(), streams::RecordFormat::kXml);
        streams::NetworkOptions options;
        options.workers = workers;
        options.queue_bound = bound;
        options.boxes = [&](const streams::BoxDefinition& box) { return boxes_.find(box); };
        options.calls = [&](const streams::BoxDefinition&) { return streams::BoxCalls{workers, true}; };
        options.output = [&](const Record& record) { writer->write(record); };
        {
            streams::Network network(*program_, options);
            for (const Record& record : records_) network.push(record);
            network.settle();
        }
        writer->terminate();
        out.reset();
        const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
        return {text, size};
    }

  private:
    std::unique_ptr<streams::Program> program_;
    tool::SnetBoxes boxes_;
    std::vector<Record> records_;
};

class GoldenNetworks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Each, GoldenNetworks, ::testing::ValuesIn(networks()),
                         [](const auto& name) { return name.param; });

TEST_P(GoldenNetworks, GivesTheSameAThousandTimes) {
    const std::string folder = kNetworks + GetParam(), expected = text_of(folder + "/out.xml");
    const GoldenNetwork network(folder);
    for (int run = 0; run < 1000; ++run)
        ASSERT_EQ(network.run(1 + run % 4, 1 + static_cast<size_t>(run) / 4 % 3), expected) << "run " << run;
}

}  // namespace
}  // namespace heddle::test
