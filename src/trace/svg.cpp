#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <ostream>
#include <set>

#include "trace/axis.hpp"
#include "trace/drawing.hpp"
#include "trace/escape.hpp"
#include "trace/palette.hpp"
#include "trace/raster.hpp"
#include "trace/summary.hpp"

namespace heddle::trace {
namespace {

// The page, in units of the picture.
constexpr int kWidth = 1000;
constexpr int kLeft = 160;   // left edge of the time axis
constexpr int kChart = 656;  // its length: divisible by every column width below
constexpr int kRight = kLeft + kChart;
constexpr int kMargin = 22;
constexpr int kStrip = 30;  // height of a client's chart
constexpr int kStripColumns = 2 * kChart;
constexpr int kStripGap = 14;
constexpr int kGroupGap = 8;
constexpr int kUsed = kRight + 76;  // right edges of the figures beside the clients' charts
constexpr int kShare = kRight + 114;
constexpr int kWaited = kWidth - kMargin;
constexpr const char* kEndAnchor = " text-anchor=\"end\"";
constexpr size_t kMaxRows = 1024;
constexpr size_t kMaxNamed = 16;
constexpr size_t kMaxRuns = 60'000;  // aimed at for all rows together: about 10 bytes each
constexpr size_t kMaxLabels = 300;
constexpr int kMaxMarks = 200;

// Every rule has the page's own prefix, because a picture may be pasted into an HTML page beside others.
constexpr const char* kStyle = R"(<style>
.hd{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",sans-serif;font-size:12px}
.hd-page{fill:#ffffff}.hd-ink{fill:#1f2328}.hd-soft{fill:#636c76}.hd-idle{fill:#eaeef3}.hd-grid{stroke:#d4dae1}
.hd-rule{stroke:#8b949e}.hd-mark{stroke:#1f2328;stroke-dasharray:3 3;stroke-opacity:.65}.hd-warn{fill:#b3261e}
.hd-title{font-size:19px;font-weight:600}.hd-head{font-size:12px;font-weight:600}.hd-small{font-size:11px}
.hd-runs{fill:none;shape-rendering:crispEdges}.hd-on{font-size:11px;pointer-events:none}
@media (prefers-color-scheme:dark){.hd-page{fill:#0f141a}.hd-ink{fill:#e6edf3}.hd-soft{fill:#9aa5b1}
.hd-idle{fill:#212932}.hd-grid{stroke:#36404b}.hd-rule{stroke:#6b7683}.hd-mark{stroke:#e6edf3}.hd-warn{fill:#ff8a80}}
</style>
)";

constexpr Color kOthers = {0x9a, 0xa3, 0xad};

// A rough length of a text; the reader's font is not known here.
double text_width(std::string_view printable_text, double size) {
    return 0.58 * size * static_cast<double>(columns_of(printable_text));
}

struct PlacedRow {
    Row row;
    int y = 0;
    std::vector<Run> runs;
};
struct PlacedGroup {
    std::string label;
    int top = 0;
    int bottom = 0;
    std::vector<PlacedRow> rows;
};

class Picture {
  public:
    Picture(const Timeline& timeline, std::ostream& out, const SvgOptions& options)
        : timeline_(timeline), out_(out), title_(options.title), sum_(summary(timeline)) {
        if (title_.empty()) title_ = timeline.of_tasks ? "Which task ran where" : "Who had which CPU when";
        named_ = clients_to_name(timeline, kMaxNamed);
        place();
        rasterize_rows();
    }

    void draw() {
        head();
        grid();
        cpus();
        axis();
        strips();
        marks();
        out_ << "</g>\n</svg>\n";
    }

  private:
    // Where everything goes, from top to bottom.
    void place() {
        const std::vector<RowGroup> groups = rows_of(timeline_, kMaxRows);
        size_t rows = 0;
        for (const RowGroup& group : groups) rows += group.rows.size();
        pitch_ = std::clamp(static_cast<int>(640 / std::max<size_t>(rows, 1)), 1, rows <= 4 ? 36 : 28);
        bar_ = pitch_ >= 12 ? pitch_ - 3 : pitch_ >= 5 ? pitch_ - 1 : pitch_;
        chart_top_ = 84 + (timeline_.marks.empty() ? 0 : 16);
        int y = chart_top_;
        for (const RowGroup& group : groups) {
            PlacedGroup placed{group.label, y, y, {}};
            for (const Row& row : group.rows) {
                placed.rows.push_back({row, y, {}});
                y += pitch_;
            }
            placed.bottom = y - (pitch_ - bar_);
            groups_.push_back(std::move(placed));
            y += kGroupGap;
        }
        chart_bottom_ = groups_.empty() ? chart_top_ : groups_.back().bottom;
        strips_top_ = chart_bottom_ + 74;
        strips_bottom_ = strips_top_ + static_cast<int>(named_.size()) * (kStrip + kStripGap);
        height_ = strips_bottom_ + (timeline_.clients.size() > named_.size() ? 26 : 8);
        if (named_.empty()) height_ = chart_bottom_ + 46;
    }

    // The finest columns that keep the file small.
    void rasterize_rows() {
        for (const int per_two : {1, 2, 4, 8, 16}) {
            columns_ = 2 * kChart / per_two;
            column_width_ = per_two / 2.0;
            if (rasterize_up_to(kMaxRuns)) return;
        }
        columns_ = kChart / 16;
        column_width_ = 16;
        (void)rasterize_up_to(SIZE_MAX);  // at most kMaxRows x columns_
    }

    bool rasterize_up_to(size_t most) {
        size_t runs = 0;
        for (PlacedGroup& group : groups_) {
            for (PlacedRow& row : group.rows) {
                row.runs = rasterize({timeline_.cpus.data() + row.row.first, row.row.count}, timeline_.end_ns,
                                     columns_);
                runs += row.runs.size();
                if (runs > most) return false;
            }
        }
        return true;
    }

    double x_of(int64_t at_ns) const {
        return kLeft + kChart * static_cast<double>(at_ns) /
                           static_cast<double>(std::max<int64_t>(timeline_.end_ns, 1));
    }

    // `raw` is escaped here and nowhere else.
    void text(double x, double y, const char* classes, std::string_view raw, const char* more = "") {
        out_ << fmt::format("<text x=\"{:g}\" y=\"{:g}\" class=\"{}\"{}>{}</text>\n", x, y, classes, more,
                            xml_text(raw));
    }

    void head() {
        out_ << fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
            "role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n",
            kWidth, height_, xml_text(title_), xml_text(description()));
        out_ << kStyle << "<g class=\"hd\">\n"
             << fmt::format("<rect class=\"hd-page\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n", kWidth,
                            height_);
        text(kMargin, 36, "hd-ink hd-title", title_);
        text(kMargin, 58, "hd-soft", subtitle());
        const double used = sum_.capacity_s > 0 ? 100 * sum_.used_s / sum_.capacity_s : 0;
        text(kWidth - kMargin, 36, "hd-ink hd-title", fmt::format("{:.0f} % used", used), kEndAnchor);
        text(kWidth - kMargin, 58, "hd-soft",
             fmt::format("{} used, {} idle", core_seconds(sum_.used_s), core_seconds(sum_.idle_s)),
             kEndAnchor);
        if (timeline_.truncated)
            text(kMargin, 75, "hd-warn hd-small",
                 "The recording reached its size bound: what came later is missing.");
        else if (timeline_.dropped > 0)
            text(kMargin, 75, "hd-warn hd-small", dropped_text(timeline_));
    }

    std::string subtitle() const {
        std::string line = timeline_.machine;
        if (!line.empty()) line += " · ";
        line += duration(timeline_.end_ns);
        if (timeline_.wall_ns)
            line += fmt::format(" from {:%Y-%m-%d %H:%M:%S} UTC",
                                fmt::gmtime(static_cast<std::time_t>(*timeline_.wall_ns / 1'000'000'000)));
        return shortened(printable(line), 100);
    }

    std::string description() const {
        std::string line = fmt::format("{} {} over {}.", timeline_.cpus.size(),
                                       timeline_.of_tasks ? "workers" : "CPUs", duration(timeline_.end_ns));
        for (const size_t i : named_)
            line +=
                fmt::format(" {} used {}.", timeline_.clients[i].name, core_seconds(sum_.clients[i].used_s));
        return line;
    }

    void grid() {
        const int bottom = strips_bottom_ - kStripGap;
        for (const PlacedGroup& group : groups_) {
            if (pitch_ == bar_) {
                rect(group.top, group.bottom - group.top);
            } else {
                for (const PlacedRow& row : group.rows) rect(row.y, bar_);
            }
        }
        for (size_t i = 0; i < named_.size(); ++i) rect(strip_top(i), kStrip);
        // The lines leave out the labels between the two charts.
        out_ << "<path class=\"hd-grid\" d=\"";
        for (const Tick& tick : ticks(timeline_.end_ns, 9)) {
            out_ << fmt::format("M{:.1f} {}V{}", x_of(tick.at_ns), chart_top_, chart_bottom_ + 7);
            if (!named_.empty()) out_ << fmt::format("M{:.1f} {}V{}", x_of(tick.at_ns), strips_top_, bottom);
        }
        out_ << "\"/>\n";
    }

    void rect(int y, int height) {
        out_ << fmt::format("<rect class=\"hd-idle\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft,
                            y, kChart, height);
    }

    int strip_top(size_t i) const { return strips_top_ + static_cast<int>(i) * (kStrip + kStripGap); }

    Color color(Who who) const {
        const auto index = static_cast<size_t>(who);
        return std::binary_search(named_.begin(), named_.end(), index) ? color_of(index) : kOthers;
    }

    void cpus() {
        std::set<Who> users;
        for (const PlacedGroup& group : groups_)
            for (const PlacedRow& row : group.rows)
                for (const Run& run : row.runs) users.insert(run.user);
        out_ << fmt::format(
            "<g class=\"hd-runs\" transform=\"translate({} 0) scale({:g} 1)\" stroke-width=\"{}\">\n", kLeft,
            column_width_, bar_);
        for (const Who user : users) {
            const ClientHistory& client = timeline_.clients[static_cast<size_t>(user)];
            out_ << fmt::format("<path stroke=\"{}\" d=\"", color(user).hex());
            for (const PlacedGroup& group : groups_)
                for (const PlacedRow& row : group.rows) runs_of(user, row);
            out_ << fmt::format("\"><title>{}</title></path>\n", xml_text(client.name));
        }
        out_ << "</g>\n";
        cpu_labels();
        run_labels();
    }

    void runs_of(Who user, const PlacedRow& row) {
        int at = -1;
        for (const Run& run : row.runs) {
            if (run.user != user) continue;
            if (at < 0)
                out_ << fmt::format("M{} {:g}h{}", run.first, row.y + bar_ / 2.0, run.count);
            else
                out_ << fmt::format("m{} 0h{}", run.first - at, run.count);
            at = run.first + run.count;
        }
    }

    void cpu_labels() {
        int every = 1;
        while (every * pitch_ < 14) every *= 2;
        for (const PlacedGroup& group : groups_) {
            for (size_t i = 0; i < group.rows.size(); i += static_cast<size_t>(every))
                if (i == 0 || group.rows[i].y + 8 <= group.bottom)
                    text(kLeft - 8, group.rows[i].y + std::max(bar_ / 2.0, 4.0) + 4, "hd-soft hd-small",
                         shortened(group.rows[i].row.label, 12), kEndAnchor);
            if (group.label.empty()) continue;
            const int x = kMargin + 22;
            const double middle = (group.top + group.bottom) / 2.0;
            out_ << fmt::format("<path class=\"hd-rule\" d=\"M{} {}V{}\"/>\n", x + 8, group.top,
                                group.bottom);
            if (text_width(group.label, 12) < group.bottom - group.top)
                text(0, 0, "hd-ink", group.label,
                     fmt::format(" text-anchor=\"middle\" transform=\"translate({} {:g}) rotate(-90)\"", x,
                                 middle)
                         .c_str());
        }
    }

    // The client's name on slices that have the room.
    void run_labels() {
        if (bar_ < 14) return;
        size_t labels = 0;
        for (const PlacedGroup& group : groups_) {
            for (const PlacedRow& row : group.rows) {
                for (const Run& run : row.runs) {
                    const std::string name =
                        shortened(printable(timeline_.clients[static_cast<size_t>(run.user)].name), 24);
                    if (text_width(name, 11) + 12 > run.count * column_width_ || labels++ >= kMaxLabels)
                        continue;
                    text(kLeft + run.first * column_width_ + 6, row.y + bar_ / 2.0 + 4, "hd-on", name,
                         color(run.user).light() ? " fill=\"#1f2328\"" : " fill=\"#ffffff\"");
                }
            }
        }
    }

    void axis() {
        out_ << fmt::format("<path class=\"hd-rule\" d=\"M{} {}H{}\"/>\n", kLeft, chart_bottom_ + 4, kRight);
        for (const Tick& tick : ticks(timeline_.end_ns, 9))
            text(std::round(10 * x_of(tick.at_ns)) / 10, chart_bottom_ + 20, "hd-soft hd-small", tick.label,
                 " text-anchor=\"middle\"");
    }

    void strips() {
        if (named_.empty()) return;
        double most = 1;
        std::vector<std::vector<double>> held;
        std::vector<std::vector<double>> wanted;
        for (const size_t i : named_) {
            const ClientHistory& client = timeline_.clients[i];
            held.push_back(column_means(client.held, timeline_.end_ns, kStripColumns));
            wanted.push_back(column_means(client.waiting, timeline_.end_ns, kStripColumns));
            const std::vector<double> demand = column_means(client.demand, timeline_.end_ns, kStripColumns);
            for (size_t column = 0; column < demand.size(); ++column) {
                const double sum = std::max(wanted.back()[column] + held.back()[column], demand[column]);
                wanted.back()[column] = std::min(sum, static_cast<double>(timeline_.cpus.size()));
                most = std::max({most, held.back()[column], wanted.back()[column]});
            }
        }
        most = std::ceil(most - 1e-6);
        strip_heads();
        for (size_t n = 0; n < named_.size(); ++n) strip(n, held[n], wanted[n], most);
        if (timeline_.clients.size() > named_.size()) rest();
    }

    void strip_heads() {
        const double y = strips_top_ - 12;
        const bool tasks = timeline_.of_tasks;
        text(kLeft, y, "hd-ink hd-head",
             tasks ? "Workers in it (solid) and tasks paused beyond that (pale)"
                   : "CPUs held (solid) and wanted beyond that (pale)");
        text(kUsed, y, "hd-soft hd-small", fmt::format("{} {}", unit().name, tasks ? "run" : "used"),
             kEndAnchor);
        text(kShare, y, "hd-soft hd-small", "share", kEndAnchor);
        text(kWaited, y, "hd-soft hd-small", tasks ? "paused" : "waited", kEndAnchor);
    }

    // One unit for all figures, so that they can be compared at a glance.
    AccountUnit unit() const { return account_unit(sum_.capacity_s); }
    std::string figure(double seconds) const {
        const double value = seconds / unit().seconds;
        return value < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
    }

    void strip(size_t n, const std::vector<double>& held, const std::vector<double>& wanted, double most) {
        const size_t i = named_[n];
        const ClientHistory& client = timeline_.clients[i];
        const int top = strip_top(n);
        const std::string fill = color_of(i).hex();
        out_ << fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\n",
                            kMargin, top + 1, fill);
        const std::string name = printable(client.name);
        text(kMargin + 18, top + 11, "hd-ink hd-head", shortened(name, 14));
        if (client.pid > 0)
            text(kMargin + 18, top + 26, "hd-soft hd-small", fmt::format("pid {}", client.pid));
        out_ << fmt::format("<g transform=\"translate({} {}) scale(.5 1)\" fill=\"{}\">", kLeft, top, fill);
        out_ << fmt::format("<path fill-opacity=\".3\" d=\"{}\"/><path d=\"{}\"/></g>\n", area(wanted, most),
                            area(held, most));
        text(kRight + 5, top + 9, "hd-soft hd-small", fmt::format("{:g}", most));
        text(kRight + 5, top + kStrip, "hd-soft hd-small", "0");
        const Account& account = sum_.clients[i];
        const double y = top + (account.lent_s > 0 ? 11 : kStrip / 2.0 + 4);
        text(kUsed, y, "hd-ink", figure(account.used_s), kEndAnchor);
        const double share = sum_.capacity_s > 0 ? 100 * account.used_s / sum_.capacity_s : 0;
        text(kShare, y, "hd-ink", fmt::format("{:.0f} %", share), kEndAnchor);
        text(kWaited, y, "hd-ink", figure(account.waited_s), kEndAnchor);
        if (account.lent_s > 0)
            text(kShare, top + 26, "hd-soft hd-small", fmt::format("lent {}", figure(account.lent_s)),
                 kEndAnchor);
    }

    // The outline of a step chart, one unit a column, merged where the height stays.
    static std::string area(const std::vector<double>& heights, double most) {
        std::string path = fmt::format("M0 {}", kStrip);
        int last = -1;
        for (size_t column = 0; column <= heights.size(); ++column) {
            const bool past = column == heights.size();
            const int tenths =
                past ? 10 * kStrip
                     : static_cast<int>(std::lround(10 * kStrip * (1 - heights[column] / most)));
            if (tenths == last) continue;
            path += column == 0 ? fmt::format("V{:g}", tenths / 10.0)
                                : fmt::format("H{}V{:g}", column, tenths / 10.0);
            last = tenths;
        }
        return path + fmt::format("H{}V{}z", kStripColumns, kStrip);
    }

    void rest() {
        double used = 0;
        for (size_t i = 0; i < timeline_.clients.size(); ++i)
            if (!std::binary_search(named_.begin(), named_.end(), i)) used += sum_.clients[i].used_s;
        out_ << fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\n",
                            kMargin, strips_bottom_, kOthers.hex());
        text(kMargin + 18, strips_bottom_ + 10, "hd-ink",
             fmt::format("{} more {} used {}", timeline_.clients.size() - named_.size(),
                         timeline_.of_tasks ? "names of tasks" : "programs", core_seconds(used)));
    }

    void marks() {
        if (timeline_.marks.empty()) return;
        const int bottom = strips_bottom_ - kStripGap;
        double free_from = 0;
        int drawn = 0;
        double last_x = -1;
        for (const Moment& mark : timeline_.marks) {
            const double x = x_of(mark.at_ns);
            if (x - last_x < 2 || drawn++ >= kMaxMarks) continue;
            last_x = x;
            out_ << fmt::format("<path class=\"hd-mark\" d=\"M{0:.1f} {1}V{2}", x, chart_top_ - 4,
                                chart_bottom_ + 4);
            if (!named_.empty()) out_ << fmt::format("M{:.1f} {}V{}", x, strips_top_, bottom);
            out_ << fmt::format("\"><title>{}</title></path>\n", xml_text(mark.text));
            const std::string label = shortened(printable(mark.text), 28);
            const double width = text_width(label, 11);
            const double from =
                std::clamp(x - width / 2, static_cast<double>(kMargin), kWidth - kMargin - width);
            if (from < free_from) continue;
            text(std::round(from), chart_top_ - 8, "hd-ink hd-small", label);
            free_from = from + width + 8;
        }
    }

    const Timeline& timeline_;
    std::ostream& out_;
    std::string title_;
    Summary sum_;
    std::vector<size_t> named_;
    std::vector<PlacedGroup> groups_;
    int pitch_ = 0;  // from row to row
    int bar_ = 0;    // of that, painted
    int chart_top_ = 0;
    int chart_bottom_ = 0;
    int strips_top_ = 0;
    int strips_bottom_ = 0;
    int height_ = 0;
    int columns_ = 0;
    double column_width_ = 1;
};

}  // namespace

void draw_svg(const Timeline& timeline, std::ostream& out, const SvgOptions& options) {
    Picture(timeline, out, options).draw();
}

}  // namespace heddle::trace
