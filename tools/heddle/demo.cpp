// heddle demo: real programs side by side, as the operating system runs them and under heddle; a table and a
// report.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <sstream>

#include "base/new_file.hpp"
#include "bench/process.hpp"
#include "command.hpp"
#include "cores/observer.hpp"
#include "demo_report.hpp"
#include "heddle/error.hpp"
#include "recorder.hpp"
#include "trace/drawing.hpp"
#include "trace/reader.hpp"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPicture = "/usr/share/desktop-base/softwaves-theme/grub/grub-16x9.png";
constexpr Nanoseconds kSceneLimit = std::chrono::seconds(60);  // of one scene, once

struct Program {
    std::string name;
    std::vector<std::string> argv;
    std::vector<std::string> needs;  ///< files without which it cannot run; without a slash: commands
    std::string package;             ///< where they come from
};

/// The folder of this executable; what belongs to it is found from there, in the build tree and where it is
/// installed.
fs::path own_folder() {
    return fs::read_symlink("/proc/self/exe").parent_path();
}

fs::path first_of(std::initializer_list<fs::path> places, const char* what) {
    for (const fs::path& place : places)
        if (fs::exists(place)) return fs::canonical(place);
    throw Error(ErrorCode::kUnavailable, fmt::format("{} is not installed with heddle", what));
}

void write_file(const fs::path& path, const std::string& text) {
    NewFile file(path.string());
    file.write(std::as_bytes(std::span(text)));
    file.keep();
}

/// As the shell finds a command.
bool is_there(const std::string& need) {
    if (need.find('/') != std::string::npos) return fs::exists(need);
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (::access((fs::path(folder) / need).c_str(), X_OK) == 0) return true;
    return false;
}

/// GraphicsMagick and mathicgb write beside their input, so everything happens in the demo's own folder.
class Stage {
  public:
    explicit Stage(const fs::path& folder)
        : folder_(folder),
          heddle_(
              first_of({own_folder() / "heddle", own_folder() / "../../bin/heddle"}, "the heddle command")),
          data_(first_of({own_folder() / "../../../examples/demo", own_folder() / "../../share/heddle/demo",
                          HEDDLE_SOURCE_FOLDER "/examples/demo"},
                         "the demo's input")) {
        fs::create_directories(folder_);
        for (const char* input : {"cyclic8.ideal", "singular_values.py"})
            fs::copy_file(data_ / input, folder_ / input, fs::copy_options::overwrite_existing);
    }

    [[nodiscard]] Program blur(int number) const {
        return {"GraphicsMagick",
                {"gm", "convert", kPicture, "-resize", "3840x", "-blur", "0x24",
                 (folder_ / fmt::format("blurred-{}.png", number)).string()},
                {"gm", kPicture},
                "graphicsmagick desktop-base"};
    }
    [[nodiscard]] Program singular_values() const {
        return {"numpy + OpenBLAS",
                {"/usr/bin/python3", (folder_ / "singular_values.py").string(),
                 (folder_ / "picture.pgm").string(), "16"},
                {"/usr/lib/python3/dist-packages/numpy", "/usr/lib/" HEDDLE_ARCHITECTURE "/openblas-openmp",
                 "gm", kPicture},
                "python3-numpy libopenblas0-openmp graphicsmagick desktop-base"};
    }
    [[nodiscard]] Program groebner(int number) const {
        const fs::path ideal = folder_ / fmt::format("cyclic8-{}.ideal", number);
        fs::copy_file(folder_ / "cyclic8.ideal", ideal, fs::copy_options::overwrite_existing);
        return {"mathicgb + oneTBB",
                {"mgb", "gb", ideal.string().substr(0, ideal.string().size() - 6), "-reducer", "26"},
                {"mgb"},
                "mathicgb"};
    }
    /// A managed program starts the arbiter, where it has ended meanwhile; then it can be watched. Throws
    /// ServiceAbsent where there can be none.
    void wake_arbiter() const {
        const bench::Command wake{{heddle_.string(), "run", "--require", "--", "true"}, {}, {}};
        const auto woken = bench::run_together({&wake, 1}, kSceneLimit);
        if (woken[0].exit_code == 0) return;
        const std::string why = woken[0].errors.substr(0, woken[0].errors.find('\n'));
        throw ServiceAbsent(why.empty() ? "heddle cannot be started" : why);
    }
    /// Makes the picture that the singular values are of.
    void prepare() const {
        if (!is_there("gm") || !fs::exists(kPicture)) return;
        const bench::Command resize{
            {"gm", "convert", kPicture, "-resize", "900x", (folder_ / "picture.pgm").string()}, {}, {}};
        const auto done = bench::run_together({&resize, 1}, kSceneLimit);
        if (done[0].exit_code != 0)
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("gm cannot read {}: {}", kPicture, done[0].errors));
    }

    /// Runs the programs at once, with `first` before each command line. Their outcomes, in order.
    [[nodiscard]] static std::vector<bench::Outcome> run(const std::vector<Program>& programs,
                                                         const std::vector<std::string>& first) {
        std::vector<bench::Command> commands;
        for (const Program& program : programs) {
            bench::Command command{first, {}, {}};
            command.argv.insert(command.argv.end(), program.argv.begin(), program.argv.end());
            commands.push_back(command);
        }
        auto outcomes = bench::run_together(commands, kSceneLimit);
        for (size_t i = 0; i < outcomes.size(); ++i)
            if (!outcomes[i].cut && outcomes[i].exit_code != 0)
                throw Error(ErrorCode::kSystem, fmt::format("{} ended with {}: {}", programs[i].name,
                                                            outcomes[i].exit_code, outcomes[i].errors));
        return outcomes;
    }

    /// So many times in each way, in turn.
    [[nodiscard]] SceneResult play(const std::string& title, const std::vector<Program>& programs, int number,
                                   int times) const {
        SceneResult result{title, {}, {}, {}, ""};
        for (const Program& program : programs) {
            for (const std::string& need : program.needs)
                if (!is_there(need)) {
                    result.skipped = fmt::format("{} is missing; apt-get install {}", need, program.package);
                    return result;
                }
            result.programs.push_back(program.name);
        }
        wake_arbiter();  // before the scene is played in vain
        for (int time = 1; time <= times; ++time) {
            result.alone.add(times_of(run(programs, {})));
            wake_arbiter();
            Recorder recorder(Observer::default_path(), trace_of(number, time));
            result.managed.add(times_of(run(programs, {heddle_.string(), "run", "--require", "--"})));
            recorder.finish();
        }
        std::ostringstream svg;
        trace::SvgOptions options;
        options.title = title;
        const int shown = static_cast<int>(result.managed.median_index()) + 1;
        const trace::Timeline timeline(trace::read_file(trace_of(number, shown)));
        draw_svg(timeline, svg, options);
        result.svg = svg.str();
        write_file(folder_ / fmt::format("scene-{}.svg", number), result.svg);
        return result;
    }

  private:
    [[nodiscard]] std::string trace_of(int scene, int time) const {
        return (folder_ / fmt::format("scene-{}-{}.jsonl", scene, time)).string();
    }

    [[nodiscard]] static RunTimes times_of(const std::vector<bench::Outcome>& outcomes) {
        RunTimes times;
        Time start = outcomes[0].started;
        Time end = outcomes[0].ended;
        for (const auto& outcome : outcomes) {
            start = std::min(start, outcome.started);
            end = std::max(end, outcome.ended);
            times.cut |= outcome.cut;
            times.cpu_s += outcome.cpu_s;
        }
        times.makespan_s = std::chrono::duration<double>(end - start).count();
        return times;
    }

    fs::path folder_;
    fs::path heddle_;
    fs::path data_;
};

void demo(const std::string& out, int times) {
    const Stage stage{fs::absolute(out)};
    stage.prepare();
    const std::vector<std::pair<std::string, std::vector<Program>>> scenes = {
        {"Two pictures blurred by GraphicsMagick", {stage.blur(1), stage.blur(2)}},
        {"A picture blurred beside numpy's singular values", {stage.blur(1), stage.singular_values()}},
        {"A Groebner basis on oneTBB beside numpy's singular values",
         {stage.groebner(1), stage.singular_values()}},
    };
    fmt::print("Real programs, two at a time: as the system runs them and under heddle, {}.\n\n",
               times == 1 ? "once each" : fmt::format("{} times each in turn; medians", times));
    std::vector<SceneResult> results;
    for (const auto& [title, programs] : scenes) {
        fmt::print("{}\n", title);
        std::fflush(stdout);
        results.push_back(stage.play(title, programs, static_cast<int>(results.size()) + 1, times));
        fmt::print("{}\n", scene_text(results.back()));
        std::fflush(stdout);
    }
    const fs::path report = fs::absolute(out) / "index.html";
    write_file(report, report_html(results));
    fmt::print("Report with pictures: {}\n", fs::relative(report).string());
}

}  // namespace

void add_demo(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("demo", "The tour: real programs side by side, and a report with pictures");
    const auto out = std::make_shared<std::string>("demo-report");
    command->add_option("-o,--out", *out, "Folder for the report")->capture_default_str();
    const auto times = std::make_shared<int>(3);
    command->add_option("-n,--times", *times, "How often each scene is played in each way")
        ->capture_default_str()
        ->check(CLI::Range(1, 99));
    command->callback([out, times] { demo(*out, *times); });
}

}  // namespace heddle::tool
