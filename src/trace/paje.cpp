#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "trace/escape.hpp"
#include "trace/formats.hpp"
#include "trace/palette.hpp"

namespace heddle::trace {
namespace {

// Numbers of the event definitions below.
enum Code : int {
    kContainerType,
    kStateType,
    kVariableType,
    kEventType,
    kEntityValue,
    kCreateContainer,
    kDestroyContainer,
    kSetState,
    kPushState,
    kPopState,
    kSetVariable,
    kNewEvent,
};

// The format describes its own lines: for each kind of event its fields in order.
struct Definition {
    Code code;
    const char* name;
    std::initializer_list<const char*> fields;
};
const Definition kDefinitions[] = {
    {kContainerType, "PajeDefineContainerType", {"Alias string", "Type string", "Name string"}},
    {kStateType, "PajeDefineStateType", {"Alias string", "Type string", "Name string"}},
    {kVariableType, "PajeDefineVariableType", {"Alias string", "Type string", "Name string", "Color color"}},
    {kEventType, "PajeDefineEventType", {"Alias string", "Type string", "Name string", "Color color"}},
    {kEntityValue, "PajeDefineEntityValue", {"Alias string", "Type string", "Name string", "Color color"}},
    {kCreateContainer,
     "PajeCreateContainer",
     {"Time date", "Alias string", "Type string", "Container string", "Name string"}},
    {kDestroyContainer, "PajeDestroyContainer", {"Time date", "Type string", "Name string"}},
    {kSetState, "PajeSetState", {"Time date", "Type string", "Container string", "Value string"}},
    {kPushState, "PajePushState", {"Time date", "Type string", "Container string", "Value string"}},
    {kPopState, "PajePopState", {"Time date", "Type string", "Container string"}},
    {kSetVariable, "PajeSetVariable", {"Time date", "Type string", "Container string", "Value double"}},
    {kNewEvent, "PajeNewEvent", {"Time date", "Type string", "Container string", "Value string"}},
};

std::string as_seconds(int64_t ns) {
    return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string rgb(const Color& color) {
    return fmt::format("\"{:.3f} {:.3f} {:.3f}\"", color.red / 255.0, color.green / 255.0,
                       color.blue / 255.0);
}

class PajeWriter {
  public:
    PajeWriter(const Timeline& timeline, std::ostream& out) : timeline_(timeline), out_(out) {}

    void run() {
        define();
        create();
        change();
        destroy();
    }

  private:
    // Something that happens, found first and written later, since Paje wants all lines by time. Of one
    // moment, work that ends goes before work that begins.
    struct Change {
        int64_t at_ns;
        enum Kind : uint8_t { kEnd, kUse, kHeld, kDemand, kWaiting, kPaused, kMark, kBegin } kind;
        uint32_t of;  // the CPU, client, mark or work
        int64_t value;
    };

    template <class... Fields>
    void line(Code code, const Fields&... fields) {
        out_ << static_cast<int>(code);
        ((out_ << ' ' << fields), ...);
        out_ << '\n';
    }

    void define() {
        for (const Definition& definition : kDefinitions) {
            out_ << "%EventDef " << definition.name << ' ' << static_cast<int>(definition.code) << '\n';
            for (const char* field : definition.fields) out_ << "% " << field << '\n';
            out_ << "%EndEventDef\n";
        }
        const std::string grey = rgb({0x80, 0x80, 0x80});
        line(kContainerType, "MACHINE", "0", "\"Machine\"");
        line(kContainerType, "CPU", "MACHINE", "\"CPU\"");
        line(kContainerType, "CLIENT", "MACHINE", "\"Client\"");
        line(kContainerType, "WORKER", "CLIENT", "\"Worker\"");
        line(kStateType, "USER", "CPU", "\"User\"");
        line(kStateType, "WORK", "WORKER", "\"Work\"");
        line(kVariableType, "HELD", "CLIENT", "\"Held CPUs\"", rgb({0x2a, 0x9d, 0x5c}));
        line(kVariableType, "DEMAND", "CLIENT", "\"Demanded CPUs\"", rgb({0x2f, 0x74, 0xd0}));
        line(kVariableType, "WAITING", "CLIENT", "\"Awaited CPUs\"", rgb({0xd6, 0x45, 0x45}));
        if (has_pauses()) line(kVariableType, "PAUSED", "CLIENT", "\"Paused tasks\"", grey);
        line(kEventType, "MARK", "MACHINE", "\"Mark\"", grey);
        line(kEntityValue, "idle", "USER", "\"idle\"", rgb({0xe6, 0xea, 0xef}));
        for (size_t i = 0; i < timeline_.clients.size(); ++i)
            line(kEntityValue, user(static_cast<Who>(i)), "USER", paje_string(timeline_.clients[i].name),
                 rgb(color_of(i)));
    }

    void create() {
        const std::string zero = as_seconds(0);
        line(kCreateContainer, zero, "m", "MACHINE", "0", "\"machine\"");
        for (size_t row = 0; row < timeline_.cpus.size(); ++row) {
            line(kCreateContainer, zero, cpu(row), "CPU", "m",
                 fmt::format("\"CPU {}\"", timeline_.cpus[row].place.cpu));
            line(kSetState, zero, "USER", cpu(row), "idle");
        }
        for (size_t i = 0; i < timeline_.clients.size(); ++i) {
            const ClientHistory& client = timeline_.clients[i];
            // pajeng finds containers by name too, so that two clients may not share one.
            line(kCreateContainer, zero, container(i), "CLIENT", "m",
                 paje_string(fmt::format("{} pid {} client {}", client.name, client.pid, client.id.value)));
            for (const char* variable : {"HELD", "DEMAND", "WAITING"})
                line(kSetVariable, zero, variable, container(i), 0);
            if (has_pauses()) line(kSetVariable, zero, "PAUSED", container(i), 0);
        }
        for (size_t i = 0; i < timeline_.lanes.size(); ++i)
            line(kCreateContainer, zero, lane(i), "WORKER",
                 container(static_cast<size_t>(timeline_.lanes[i].client)),
                 paje_string(fmt::format(
                     "{} of client {}", timeline_.lanes[i].name,
                     timeline_.clients[static_cast<size_t>(timeline_.lanes[i].client)].id.value)));
    }

    void change() {
        collect();
        std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
            return std::pair(a.at_ns, a.kind) < std::pair(b.at_ns, b.kind);
        });
        for (const Change& change : changes_) write(change);
    }

    void collect() {
        for (uint32_t row = 0; row < timeline_.cpus.size(); ++row) {
            const auto& slices = timeline_.cpus[row].slices;
            for (size_t i = 0; i < slices.size(); ++i) {
                changes_.push_back({slices[i].begin_ns, Change::kUse, row, slices[i].user});
                const int64_t next = i + 1 < slices.size() ? slices[i + 1].begin_ns : timeline_.end_ns;
                if (slices[i].end_ns < next)
                    changes_.push_back({slices[i].end_ns, Change::kUse, row, kNobody});
            }
        }
        for (uint32_t i = 0; i < timeline_.clients.size(); ++i) {
            const auto add = [&](Change::Kind kind, const std::vector<Step>& steps) {
                for (const Step& step : steps) changes_.push_back({step.at_ns, kind, i, step.value});
            };
            add(Change::kHeld, timeline_.clients[i].held);
            add(Change::kDemand, timeline_.clients[i].demand);
            add(Change::kWaiting, timeline_.clients[i].waiting);
            add(Change::kPaused, timeline_.clients[i].paused);
        }
        for (uint32_t i = 0; i < timeline_.marks.size(); ++i)
            changes_.push_back({timeline_.marks[i].at_ns, Change::kMark, i, 0});
        for (uint32_t i = 0; i < timeline_.work.size(); ++i) {
            const Work& work = timeline_.work[i];
            changes_.push_back({work.begin_ns, Change::kBegin, i, 0});
            // Work without length begins and ends in one go.
            if (work.begin_ns < work.end_ns) changes_.push_back({work.end_ns, Change::kEnd, i, 0});
        }
    }

    void write(const Change& change) {
        const std::string at = as_seconds(change.at_ns);
        const auto set = [&](const char* variable) {
            line(kSetVariable, at, variable, container(change.of), change.value);
        };
        switch (change.kind) {
            case Change::kUse:
                line(kSetState, at, "USER", cpu(change.of), user(static_cast<Who>(change.value)));
                break;
            case Change::kHeld:
                set("HELD");
                break;
            case Change::kDemand:
                set("DEMAND");
                break;
            case Change::kWaiting:
                set("WAITING");
                break;
            case Change::kPaused:
                set("PAUSED");
                break;
            case Change::kMark:
                line(kNewEvent, at, "MARK", "m", paje_string(timeline_.marks[change.of].text));
                break;
            case Change::kBegin: {
                const Work& work = timeline_.work[change.of];
                line(kPushState, at, "WORK", lane(static_cast<size_t>(work.lane)), paje_string(work.name));
                if (work.begin_ns == work.end_ns)
                    line(kPopState, at, "WORK", lane(static_cast<size_t>(work.lane)));
                break;
            }
            case Change::kEnd:
                line(kPopState, at, "WORK", lane(static_cast<size_t>(timeline_.work[change.of].lane)));
                break;
        }
    }

    void destroy() {
        const std::string end = as_seconds(timeline_.end_ns);
        for (size_t i = 0; i < timeline_.lanes.size(); ++i) line(kDestroyContainer, end, "WORKER", lane(i));
        for (size_t i = 0; i < timeline_.clients.size(); ++i)
            line(kDestroyContainer, end, "CLIENT", container(i));
        for (size_t row = 0; row < timeline_.cpus.size(); ++row)
            line(kDestroyContainer, end, "CPU", cpu(row));
        line(kDestroyContainer, end, "MACHINE", "m");
    }

    bool has_pauses() const {
        return std::ranges::any_of(timeline_.clients,
                                   [](const ClientHistory& client) { return !client.paused.empty(); });
    }

    static std::string cpu(size_t row) { return fmt::format("p{}", row); }
    static std::string container(size_t client) { return fmt::format("c{}", client); }
    static std::string lane(size_t index) { return fmt::format("w{}", index); }
    static std::string user(Who who) { return who == kNobody ? "idle" : fmt::format("u{}", who); }

    const Timeline& timeline_;
    std::ostream& out_;
    std::vector<Change> changes_;
};

}  // namespace

void write_paje(const Timeline& timeline, std::ostream& out) {
    PajeWriter(timeline, out).run();
}

}  // namespace heddle::trace
