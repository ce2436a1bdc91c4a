// heddle snet: S-Net programs. `run` sends records through one; the others look at it (snet_looks.hpp).
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "command.hpp"
#include "heddle/error.hpp"
#include "record_files.hpp"
#include "snet_boxes.hpp"
#include "snet_calls.hpp"
#include "snet_looks.hpp"
#include "snet_observers.hpp"
#include "snet_share.hpp"
#include "streams/checker.hpp"
#include "streams/network.hpp"
#include "streams/parser.hpp"
#include "streams/typing.hpp"

namespace heddle::tool {
namespace {

using streams::Record;

struct Options {
    std::string program;
    std::vector<std::string> boxes;
    std::string input = "-", output = "-", letters, calls, format;
    int workers = 0, min = 0;
    size_t bound = 256;
};

streams::RecordFormat format_of(const Options& options) {
    if (const auto named = streams::record_format(options.format)) return *named;
    const bool json = options.output.ends_with(".json") || options.output.ends_with(".jsonl");
    return json ? streams::RecordFormat::kJsonLines : streams::RecordFormat::kXml;
}

/// What may go wrong is told, and what can never work is refused.
void look_over(const streams::Program& program, const std::string& name) {
    const streams::Typing typing(program);
    streams::Checker checker(program, typing);
    const std::vector<streams::Finding> findings = checker.check();
    if (const streams::Finding* reason = checker.never_works())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("no record can ever come out of {}:\n{}", name, reason->text()));
    for (const streams::Finding& finding : findings)
        fmt::print(stderr, "heddle snet: warning: {}: {} [{}]\n", finding.place.source->where(finding.place),
                   finding.message, streams::name_of(finding.hole));
}

void run(const Options& options) {
    announce_streams(options.program, options.min, options.workers);
    const auto program = streams::parse(streams::Source::of_file(options.program));
    look_over(*program, options.program);
    const SnetCalls calls(options.calls);
    calls.check(*program);
    const SnetBoxes boxes(*program, options.boxes);
    const OpenFile input = OpenFile::for_reading(options.input);
    RecordSink output(options.output, format_of(options));
    std::unique_ptr<RecordSink> letters;
    SnetObservers observers;
    streams::NetworkOptions network_options;
    network_options.observers = [&](const std::string& position, const streams::Metadata& metadata) {
        return observers.observe(position, metadata);
    };
    network_options.workers = options.workers;
    network_options.queue_bound = options.bound;
    network_options.boxes = [&](const streams::BoxDefinition& box) { return boxes.find(box); };
    network_options.calls = [&](const streams::BoxDefinition& box) { return calls.of(box); };
    network_options.output = [&](const Record& record) { output.write(record); };
    if (!options.letters.empty()) {
        letters = std::make_unique<RecordSink>(options.letters, format_of(options));
        network_options.dead_letter = [&](const Record& record, const std::string& why) {
            fmt::print(stderr, "heddle snet: {}\n", why);
            letters->write(record);
        };
    }
    try {
        streams::Network network(*program, std::move(network_options));
        const auto reader = streams::make_record_reader(std::make_unique<streams::InputText>(
            input.get(), options.input == "-" ? "stdin" : options.input, [&] { output.flush(); }));
        while (std::optional<Record> record = reader->next()) network.push(std::move(*record));
        network.settle();
        output.flush();
        observers.flush();
        for (const std::string& remark : network.remarks()) fmt::print(stderr, "heddle snet: {}\n", remark);
    } catch (...) {
        output.flush();  // what came out before
        if (letters) letters->flush();
        throw;
    }
    output.terminate();
    if (letters) letters->terminate();
}

}  // namespace

void add_snet(CLI::App& app) {
    CLI::App* snet = app.add_subcommand("snet", "S-Net programs: boxes in C, joined to networks of streams");
    snet->require_subcommand(1);
    auto options = std::make_shared<Options>();

    CLI::App* runs = snet->add_subcommand("run", "Send records through the last net of a program");
    runs->add_option("program", options->program, "A file of S-Net")->required();
    runs->add_option("--boxes", options->boxes, "Shared objects or C files with the functions of boxes");
    runs->add_option(
        "-i,--input", options->input,
        "Records of XML or JSON lines: a file; -: stdin; tcp:PORT or tcp:HOST:PORT: who connects");
    runs->add_option("-o,--output", options->output,
                     "Where records go: a file; -: stdout; tcp:PORT or tcp:HOST:PORT: who listens");
    runs->add_option(
            "--format", options->format,
            "What is written: xml, binary (XML with data in base64) or json (JSON lines). Without it "
            "XML, or what a file's name ends with")
        ->check(CLI::IsMember({"xml", "binary", "json"}));
    runs->add_option("-w,--workers,--max", options->workers, "At most so many; as many as CPUs without it")
        ->check(CLI::Range(1, 1 << 16));
    runs->add_option("--min", options->min, "CPUs that the arbiter leaves to it whatever others want")
        ->check(CLI::Range(0, 1 << 16));
    runs->add_option(
        "-c,--calls", options->calls,
        "How often boxes are called at once: 4, 4D (in order), 2:box,box; all together in one text");
    runs->add_option("--bound", options->bound, "Records that may wait before a box")
        ->check(CLI::Range(1, 1 << 24));
    runs->add_option(
        "--dead-letters", options->letters,
        "A file for records that fail: the others go on. Without it the first failure ends the run");
    runs->callback([options] { run(*options); });

    add_snet_looks(*snet);
}

}  // namespace heddle::tool
