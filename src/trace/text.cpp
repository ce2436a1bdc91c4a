#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "trace/axis.hpp"
#include "trace/drawing.hpp"
#include "trace/escape.hpp"
#include "trace/palette.hpp"
#include "trace/raster.hpp"
#include "trace/summary.hpp"

namespace heddle::trace {
namespace {

constexpr size_t kLetters = 26;

class TextDrawing {
  public:
    TextDrawing(const Timeline& timeline, std::ostream& out, const TextOptions& options)
        : timeline_(timeline), out_(out), options_(options), sum_(summary(timeline)) {
        named_ = clients_to_name(timeline, kLetters);
        groups_ = rows_of(timeline, static_cast<size_t>(std::max(options.max_rows, 1)));
        for (const RowGroup& group : groups_)
            for (const Row& row : group.rows)
                margin_ = std::max(margin_, std::min<size_t>(columns_of(row.label), 20));
        for (const size_t i : named_)
            margin_ = std::max(margin_, std::min<size_t>(columns_of(name(i)) + 2, 20));
        columns_ = std::max(options.width, 40) - static_cast<int>(margin_) - 2;
    }

    void draw() {
        put(fmt::format("{}{}{}\n", printable(timeline_.machine), timeline_.machine.empty() ? "" : ", ",
                        duration(timeline_.end_ns)));
        for (const RowGroup& group : groups_) {
            if (!group.label.empty()) put(group.label + "\n");
            for (const Row& row : group.rows) cpu_row(row);
        }
        axis();
        waiting();
        out_ << '\n';
        accounts();
    }

    void accounts() {
        const size_t wide = std::min<size_t>(margin_ + 6, 26);
        if (timeline_.of_tasks)
            put(fmt::format("  {:<{}} {:>8} {:>14} {:>6} {:>14} {:>14}\n", "task", wide, "", "ran", "share",
                            "", "paused"));
        else
            put(fmt::format("  {:<{}} {:>8} {:>14} {:>6} {:>14} {:>14}\n", "program", wide, "pid", "used",
                            "share", "lent", "waited"));
        double other_used = 0;
        for (size_t i = 0; i < timeline_.clients.size(); ++i) {
            const Account& account = sum_.clients[i];
            if (!std::binary_search(named_.begin(), named_.end(), i)) {
                other_used += account.used_s;
                continue;
            }
            const auto who = static_cast<Who>(i);
            out_ << painted(who, sign(who)) << ' ';
            const std::string cut = shortened(name(i), wide, options_.ascii);
            line(cut + std::string(wide - columns_of(cut), ' '),
                 timeline_.of_tasks ? "" : fmt::format("{}", timeline_.clients[i].pid), account.used_s,
                 timeline_.of_tasks ? "" : core_seconds(account.lent_s), account.waited_s);
        }
        if (named_.size() < timeline_.clients.size())
            put(fmt::format("{} {} more used {}\n", options_.ascii ? "+" : "▪",
                            timeline_.clients.size() - named_.size(), core_seconds(other_used)));
        const double share = sum_.capacity_s > 0 ? 100 * sum_.used_s / sum_.capacity_s : 0;
        if (timeline_.of_tasks)
            put(fmt::format("\n{} workers: {} ran tasks ({:.1f} %), {} did not\n", timeline_.cpus.size(),
                            core_seconds(sum_.used_s), share, core_seconds(sum_.idle_s)));
        else
            put(fmt::format("\n{} CPUs: {} used ({:.1f} %), {} idle, {} lent\n", timeline_.cpus.size(),
                            core_seconds(sum_.used_s), share, core_seconds(sum_.idle_s),
                            core_seconds(sum_.lent_s)));
        if (timeline_.truncated) put("The recording reached its size bound: what came later is missing.\n");
        if (timeline_.dropped > 0) put(dropped_text(timeline_) + "\n");
    }

  private:
    // Everything that is not a block goes through here.
    void put(const std::string& text) { out_ << (options_.ascii ? ascii_only(text) : text); }

    std::string name(size_t client) const {
        const std::string clean = printable(timeline_.clients[client].name);
        return options_.ascii ? ascii_only(clean) : clean;
    }

    void margin(const std::string& label) {
        const std::string cut = shortened(label, margin_, options_.ascii);
        put(cut + std::string(margin_ + 1 - columns_of(cut), ' '));
    }

    // The sign of a client is the same in the rows and in the table.
    std::string sign(Who who) const {
        const auto index = static_cast<size_t>(who);
        const auto place = std::lower_bound(named_.begin(), named_.end(), index);
        if (place == named_.end() || *place != index) return options_.ascii ? "+" : "▪";
        const auto rank = static_cast<size_t>(place - named_.begin());
        if (options_.color) return "█";
        static constexpr const char* kBlocks[] = {"█", "░", "▓", "▒"};
        if (!options_.ascii && rank < std::size(kBlocks)) return kBlocks[rank];
        return std::string(1, static_cast<char>('A' + rank));
    }

    std::string painted(Who who, const std::string& text) const {
        if (!options_.color) return text;
        return fmt::format("\x1b[38;5;{}m{}\x1b[0m", color_of(static_cast<size_t>(who)).terminal(), text);
    }

    void cpu_row(const Row& row) {
        margin(row.label);
        int column = 0;
        const auto idle_until = [&](int until) {
            for (; column < until; ++column) out_ << (options_.ascii ? "." : "·");
        };
        for (const Run& run :
             rasterize({timeline_.cpus.data() + row.first, row.count}, timeline_.end_ns, columns_)) {
            idle_until(run.first);
            std::string blocks;
            for (int i = 0; i < run.count; ++i) blocks += sign(run.user);
            out_ << painted(run.user, blocks);
            column += run.count;
        }
        idle_until(columns_);
        out_ << '\n';
    }

    void axis() {
        std::string line;
        for (const Tick& tick : ticks(timeline_.end_ns, columns_ / 12)) {
            const double share =
                static_cast<double>(tick.at_ns) / static_cast<double>(std::max<int64_t>(timeline_.end_ns, 1));
            const auto at = static_cast<size_t>(share * (columns_ - 1));
            if (at + columns_of(tick.label) + 1 > static_cast<size_t>(columns_)) break;
            line += std::string(at - std::min(at, columns_of(line)), ' ') + (options_.ascii ? "|" : "╵") +
                    tick.label;
        }
        margin("");
        put(line + "\n");
    }

    // A line for each client that ever waited; the higher the sign, the more CPUs it waited for.
    void waiting() {
        static constexpr const char* kLevels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
        for (const size_t i : named_) {
            if (sum_.clients[i].waited_s <= 0) continue;
            const std::vector<double> means =
                column_means(timeline_.clients[i].waiting, timeline_.end_ns, columns_);
            const double most = *std::max_element(means.begin(), means.end());
            if (!(most > 0)) continue;  // too short for its columns to tell
            const std::string_view doing = timeline_.of_tasks ? "paused" : "waits";
            margin(
                fmt::format("{} {}", shortened(name(i), margin_ - 1 - doing.size(), options_.ascii), doing));
            std::string line;
            for (const double mean : means) {
                const auto level = static_cast<size_t>(std::ceil(8 * mean / most - 1e-9));
                line += options_.ascii ? std::string(1, " 12345678"[level]) : kLevels[level];
            }
            out_ << painted(static_cast<Who>(i), line) << '\n';
        }
    }

    void line(const std::string& name, const std::string& pid, double used, const std::string& lent,
              double waited) {
        const double share = sum_.capacity_s > 0 ? 100 * used / sum_.capacity_s : 0;
        put(fmt::format("{} {:>8} {:>14} {:>4.0f} % {:>14} {:>14}\n", name, pid, core_seconds(used), share,
                        lent, core_seconds(waited)));
    }

    const Timeline& timeline_;
    std::ostream& out_;
    const TextOptions& options_;
    Summary sum_;
    std::vector<size_t> named_;
    std::vector<RowGroup> groups_;
    size_t margin_ = 8;
    int columns_ = 0;
};

}  // namespace

void draw_text(const Timeline& timeline, std::ostream& out, const TextOptions& options) {
    TextDrawing(timeline, out, options).draw();
}

void draw_accounts(const Timeline& timeline, std::ostream& out, const TextOptions& options) {
    TextDrawing(timeline, out, options).accounts();
}

}  // namespace heddle::trace
