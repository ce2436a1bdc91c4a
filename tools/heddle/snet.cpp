// heddle snet: S-Net programs. `run` sends records through one; the others look at it (snet_looks.cpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "base/standard_streams.hpp"
#include "box_crash.hpp"
#include "command.hpp"
#include "heddle/error.hpp"
#include "record_files.hpp"
#include "snet_boxes.hpp"
#include "snet_calls.hpp"
#include "snet_observers.hpp"
#include "snet_share.hpp"
#include "snet_stop.hpp"
#include "streams/checker.hpp"
#include "streams/network.hpp"
#include "streams/parser.hpp"
#include "streams/typing.hpp"

namespace heddle::tool {
namespace {

using streams::Record;

struct SnetOptions {
    std::string program;
    std::vector<std::string> boxes;
    std::string input = "-", output = "-", letters, calls, format;
    int workers = 0, min = 0, stack_kib = 0;
    size_t bound = streams::NetworkOptions().queue_bound;
    std::string resources;
    uint32_t turns = streams::NetworkOptions().most_turns;
};

streams::RecordFormat format_of(const SnetOptions& options) {
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
        to_stderr("heddle snet: warning: {}: {} [{}]\n", finding.place.source->where(finding.place),
                  finding.message, streams::name_of(finding.hole));
}

void tell_of_first(int signal) {
    to_stderr(
        "heddle snet: SIG{}: no more records are read, and those under way go on; another signal drops "
        "them\n",
        ::sigabbrev_np(signal));
}

/// Until the input ends or is stopped. Counts those that go in.
void push_all(streams::Network& network, std::FILE* file, const std::string& name,
              const std::function<void()>& before_waiting, const InputEnd& end, uint64_t& count) {
    try {
        const auto reader = streams::make_record_reader(
            std::make_unique<streams::InputText>(file, name, before_waiting, end.descriptor()));
        while (SnetStop::signal() == 0) {
            std::optional<Record> record = reader->next();
            if (!record) break;
            ++count;
            network.push(std::move(*record));
        }
    } catch (const streams::InputStopped&) {  // in the midst of a record
    }
}

/// After a failure: of the network, which has stopped it, or of the input, which has just ended then.
void settle_after(streams::Network& network) noexcept {
    try {
        network.settle();
    } catch (...) {
        // The first one is told.
    }
}

/// What came out before a failure, and the last record. That it cannot be written is told by the failure.
void end_without_failing(RecordSink& sink) noexcept {
    try {
        sink.terminate();
    } catch (...) {
    }
}

void run(const SnetOptions& options) {
    announce_streams(options.program, options.min, options.workers);
    if (!options.resources.empty()) join_resource_server(options.resources);
    const auto program = streams::parse(streams::Source::of_file(options.program));
    look_over(*program, options.program);
    const SnetCalls calls(options.calls);
    calls.check(*program);
    const SnetBoxes boxes(*program, options.boxes);
    const OpenFile input = OpenFile::for_reading(options.input);
    const InputEnd end;  // of a failure, too: who writes may wait for an answer
    SnetObservers observers;
    const auto tell_end = [&] {
        end.tell();
        observers.stop_waiting();
    };
    RecordSink output(options.output, format_of(options), tell_end);
    std::unique_ptr<RecordSink> letters;
    streams::NetworkOptions network_options;
    network_options.observers = [&](const std::string& position, const streams::Metadata& metadata) {
        return observers.observe(position, metadata);
    };
    network_options.workers = options.workers;
    if (options.stack_kib > 0) network_options.stack_bytes = static_cast<size_t>(options.stack_kib) << 10;
    tell_of_box_crashes(network_options.stack_bytes);
    network_options.queue_bound = options.bound;
    network_options.most_turns = options.turns;
    network_options.boxes = [&](const streams::BoxDefinition& box) { return boxes.find(box); };
    network_options.calls = [&](const streams::BoxDefinition& box) { return calls.of(box); };
    network_options.on_failure = tell_end;
    uint64_t taken = 0, left = 0;
    network_options.output = [&](const Record& record) {
        output.write(record);
        ++left;
    };
    if (!options.letters.empty()) {
        letters = std::make_unique<RecordSink>(options.letters, format_of(options), tell_end);
        network_options.dead_letter = [&](const Record& record, const std::string& why) {
            to_stderr("heddle snet: {}\n", why);
            letters->write(record);
        };
    }
    int signal = 0;
    try {
        streams::Network network(*program, std::move(network_options));
        const SnetStop stop(
            end, [](int by) { tell_of_first(by); },
            [&] {
                network.cancel();
                observers.stop_waiting();
                to_stderr("heddle snet: what is under way is dropped\n");
            });
        const auto tell_counts = [&](const std::string& why) {
            to_stderr("heddle snet: stopped by {}: {} records went in, {} came out, {} under way were lost\n",
                      why, taken, left, network.dropped());
        };
        try {
            network.feed([&] {
                push_all(
                    network, input.get(), options.input == "-" ? "stdin" : options.input,
                    [&] { output.flush(); }, end, taken);
            });
            network.settle();
        } catch (...) {
            settle_after(network);
            if (network.dropped() > 0) tell_counts("a failure");
            throw;
        }
        output.flush();
        observers.flush();
        for (const std::string& remark : network.remarks()) to_stderr("heddle snet: {}\n", remark);
        signal = SnetStop::signal();
        if (signal != 0) tell_counts(std::string("SIG") + ::sigabbrev_np(signal));
    } catch (...) {
        end_without_failing(output);
        if (letters) end_without_failing(*letters);
        throw;
    }
    output.terminate();
    if (letters) letters->terminate();
    if (signal != 0) throw CLI::RuntimeError(128 + signal);
}

}  // namespace

void add_snet(CLI::App& app) {
    CLI::App* snet = app.add_subcommand("snet", "S-Net programs: boxes in C, joined to networks of streams");
    snet->require_subcommand(1);
    auto options = std::make_shared<SnetOptions>();

    CLI::App* runs = snet->add_subcommand("run", "Send records through the last net of a program");
    runs->add_option("program", options->program, "A file of S-Net")->required();
    runs->add_option("--boxes", options->boxes,
                     "Shared objects, or files of C or C++, with the functions of boxes");
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
    runs->add_option("--bound", options->bound,
                     "Records that may wait before a box, beside those in its calls")
        ->check(CLI::Range(1, 1 << 24));
    runs->add_option(
        "--resource-server", options->resources,
        "PORT or HOST:PORT: take CPUs from a resource server of S-Net, not from heddle's arbiter");
    runs->add_option("--stack", options->stack_kib,
                     "KiB of the stack that a box runs on: a power of two; 1024 without it")
        ->check(CLI::Range(16, 1 << 20))
        ->check([](const std::string& text) {
            const bool is_power = std::has_single_bit(std::strtoul(text.c_str(), nullptr, 10));
            return is_power ? std::string() : text + " is no power of two";
        });
    runs->add_option("--turns", options->turns, "How often a record may go back in feedbacks")
        ->check(CLI::Range(1U, UINT32_MAX))
        ->capture_default_str();
    runs->add_option(
        "--dead-letters", options->letters,
        "A file for records that fail: the others go on. Without it the first failure ends the run");
    runs->callback([options] { run(*options); });

    add_snet_looks(*snet);
    add_snet_serve(*snet);
}

}  // namespace heddle::tool
