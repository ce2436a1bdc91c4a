#include "memory/survey.hpp"

#include <nlohmann/json.hpp>

namespace heddle::memory {
namespace {

using Json = nlohmann::json;

PlannedTransfer transfer_of(const GlobalRange& range, CacheId cache) {
    return {range.data.value, range.range.offset, range.range.size, cache.value};
}

template <class Get>
PlannedTransfer transfer_of_get(const Get& get) {
    PlannedTransfer planned = transfer_of(get.global, get.cache);
    planned.prefer_direct = get.prefer_direct;
    return planned;
}

struct Plan {
    std::vector<PlannedTransfer>& all;
    void operator()(const op::Allocate&) const {}
    void operator()(const op::Release&) const {}
    void operator()(const op::GetConst& get) const { all.push_back(transfer_of_get(get)); }
    void operator()(const op::GetMutable& get) const { all.push_back(transfer_of_get(get)); }
    void operator()(const op::GetExclusive& get) const {
        all.push_back(transfer_of(get.global, get.cache));
        all.back().anew = true;
    }
    void operator()(const op::Put& put) const {
        all.push_back(transfer_of(put.global, {}));
        all.back().writes = true;
    }
};

}  // namespace

std::vector<PlannedTransfer> planned_transfers(std::span<const Operation> operations) {
    std::vector<PlannedTransfer> all;
    for (const Operation& operation : operations) std::visit(Plan{all}, operation);
    return all;
}

std::vector<PlannedTransfer> planned_transfers(std::span<const GlobalRange> ranges) {
    std::vector<PlannedTransfer> all;
    for (const GlobalRange& range : ranges) all.push_back(transfer_of(range, {}));
    return all;
}

std::string text_of(const std::vector<DataLocality>& localities) {
    Json rows = Json::array();
    for (const DataLocality& one : localities)
        rows.push_back(
            {one.range.data.value, one.range.range.offset, one.range.range.size, one.home, one.copies});
    return rows.dump();
}

std::vector<DataLocality> localities_in(const std::string& text) {
    try {
        std::vector<DataLocality> all;
        for (const Json& row : Json::parse(text))
            all.push_back({{{row.at(0)}, {row.at(1), row.at(2)}}, row.at(3), row.at(4)});
        return all;
    } catch (const Json::exception&) {
        throw Error(ErrorCode::kSystem, "the memory server tells in no known way where data are");
    }
}

}  // namespace heddle::memory
