#include "streams/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "streams/xml_reader.hpp"

namespace heddle::streams {
namespace {

/// As nets nest.
constexpr size_t kMostNested = 200;

bool is_default(std::string_view name) {
    return name == "default" || name == "boxdefault" || name == "netdefault";
}

/// Names of boxes are looked for everywhere.
Metadata* box_metadata(std::vector<std::unique_ptr<NetDefinition>>& nets,
                       std::vector<std::unique_ptr<BoxDefinition>>& boxes, std::string_view name) {
    for (auto& box : boxes)
        if (box->name == name) return &box->metadata;
    for (auto& net : nets)
        if (Metadata* found = box_metadata(net->nets, net->boxes, name)) return found;
    return nullptr;
}

void add_missing(Metadata& to, const Metadata& from) {
    to.insert(from.begin(), from.end());
}

void apply_default(std::vector<std::unique_ptr<NetDefinition>>& nets,
                   std::vector<std::unique_ptr<BoxDefinition>>& boxes, const std::string& of,
                   const Metadata& keys) {
    for (auto& box : boxes)
        if (of != "netdefault") add_missing(box->metadata, keys);
    for (auto& net : nets) {
        if (of != "boxdefault") add_missing(net->metadata, keys);
        apply_default(net->nets, net->boxes, of, keys);
    }
}

}  // namespace

void MetadataReader::read(std::string_view text, Place place, const Source& source,
                          const std::vector<std::string>& around) {
    // The text begins behind "<" of "<metadata>".
    const size_t begin = text.find('>') + 1;
    XmlReader reader(text.substr(begin));
    std::vector<Block> open;
    std::vector<std::string> elements;  // that are open: blocks, and in the last one perhaps a key
    const auto in_key = [&] { return elements.size() > open.size(); };
    try {
        for (auto event = reader.next(); event != XmlReader::Event::kEnd; event = reader.next()) {
            const Place here{&source, static_cast<uint32_t>(place.offset + begin + reader.offset())};
            if (event == XmlReader::Event::kOpen) {
                const std::string name(reader.name());
                if (in_key())
                    throw Error(ErrorCode::kBadInput,
                                fmt::format("<{}> stands in <{}>, which is for text", name, elements.back()));
                elements.push_back(name);
                if (name == "box" || name == "net" || is_default(name)) {
                    if (open.size() == kMostNested)
                        throw Error(
                            ErrorCode::kBadInput,
                            fmt::format("blocks of metadata are nested more than {} deep", kMostNested));
                    Block block{name, open.empty() ? around : open.back().path, {}, here};
                    if (!is_default(name)) block.path.emplace_back(reader.attribute("name"));
                    open.push_back(std::move(block));
                } else if (open.empty()) {
                    throw Error(ErrorCode::kBadInput,
                                fmt::format("<{}> belongs into a <box> or <net>", name));
                } else {
                    open.back().keys[name] = std::string(reader.attribute("value"));
                }
            } else if (event == XmlReader::Event::kText) {
                if (in_key()) open.back().keys[elements.back()] += reader.content();
            } else {
                const std::string_view expected =
                    elements.empty() ? std::string_view("metadata") : elements.back();
                if (reader.name() != expected)
                    throw Error(ErrorCode::kBadInput,
                                fmt::format("</{}> stands where </{}> is wanted", reader.name(), expected));
                if (elements.empty()) break;
                if (!in_key()) {
                    blocks_.push_back(std::move(open.back()));
                    open.pop_back();
                }
                elements.pop_back();
            }
        }
        if (!elements.empty())
            throw Error(ErrorCode::kBadInput, fmt::format("<{}> is not closed", elements.back()));
    } catch (const Error& error) {
        source.fail({&source, static_cast<uint32_t>(place.offset + begin + reader.offset())}, error.what());
    }
}

void MetadataReader::apply(Program& program, const Source& source) const {
    // First what is said of one by its name, and of defaults the innermost: each is for what is not said.
    std::vector<const Block*> defaults;
    for (const Block& block : blocks_)
        if (is_default(block.of))
            defaults.push_back(&block);
        else
            apply(block, program, source);
    std::ranges::stable_sort(defaults, std::greater{}, [](const Block* block) { return block->path.size(); });
    for (const Block* block : defaults) apply(*block, program, source);
}

void MetadataReader::apply(const Block& block, Program& program, const Source& source) {
    auto* nets = &program.nets;
    auto* boxes = &program.boxes;
    Metadata* found = nullptr;
    for (size_t i = 0; i < block.path.size(); ++i) {
        found = nullptr;
        const bool wants_box = block.of == "box" && i + 1 == block.path.size();
        if (wants_box) found = box_metadata(*nets, *boxes, block.path[i]);
        for (auto& net : *nets) {
            if (wants_box || net->name != block.path[i]) continue;
            found = &net->metadata;
            boxes = &net->boxes;
            nets = &net->nets;
            break;
        }
        if (found == nullptr)
            source.fail(block.place, fmt::format("there is no {} \"{}\" that this could be said of",
                                                 wants_box ? "box" : "net", block.path[i]));
    }
    if (is_default(block.of))
        apply_default(*nets, *boxes, block.of, block.keys);
    else if (found != nullptr)
        for (const auto& [key, value] : block.keys) (*found)[key] = value;
}

}  // namespace heddle::streams
