#include "streams/bypass.hpp"

#include <algorithm>

namespace heddle::streams {

Bypass::Bypass(const Topology& part, const Typing& typing) {
    switch (part.kind) {
        case TopologyKind::kSync:
            kind_ = Kind::kAll;
            break;
        case TopologyKind::kFilter:
            if (part.patterns.empty()) kind_ = Kind::kAll;
            break;
        case TopologyKind::kSerial:
        case TopologyKind::kPlaced:
            kind_ = Kind::kAllOf;
            for (const Topology& inner : part.parts) parts_.emplace_back(inner, typing);
            break;
        case TopologyKind::kChoice:
            kind_ = Kind::kBestOf;
            for (const Topology& branch : part.parts)
                branches_.push_back({Bypass(branch, typing), inputs_of(typing.of(branch))});
            break;
        case TopologyKind::kNet:
            if (!part.net->has_signature && part.net->body && !part.net->metadata.contains("observer")) {
                kind_ = Kind::kAllOf;
                parts_.emplace_back(*part.net->body, typing);
            }
            break;
        default:
            break;
    }
}

bool Bypass::lets_through(const Record& record) const {
    switch (kind_) {
        case Kind::kAll:
            return true;
        case Kind::kAllOf:
            return std::all_of(parts_.begin(), parts_.end(),
                               [&](const Bypass& part) { return part.lets_through(record); });
        case Kind::kBestOf: {
            const Branch* const best = best_branch(branches_, record);
            return best != nullptr && best->inner.lets_through(record);
        }
        default:
            return false;
    }
}

}  // namespace heddle::streams
