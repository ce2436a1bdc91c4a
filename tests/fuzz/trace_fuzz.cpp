// Whatever the bytes: the reader either throws heddle::Error or gives a trace that every writer can write.
#include <sstream>
#include <string>

#include "fuzz/fuzz.hpp"
#include "heddle/error.hpp"
#include "trace/drawing.hpp"
#include "trace/formats.hpp"
#include "trace/reader.hpp"
#include "trace/summary.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace heddle::trace;
    std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
    // Small buffers, or most of the time would go into clearing them.
    const ReadLimits limits{.max_header_bytes = 4096, .max_line_bytes = 1024};
    try {
        const Timeline timeline(read(in, "input", limits));
        std::ostringstream out;
        write_chrome(timeline, out);
        write_paje(timeline, out);
        write_paraver(timeline, {out, out, out});
        draw_svg(timeline, out);
        draw_text(timeline, out, {.width = 40});
        draw_text(timeline, out, {.ascii = true, .color = true});
    } catch (const heddle::Error&) {
        return 0;
    }
    return 0;
}
