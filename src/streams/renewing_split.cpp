#include "streams/renewing_split.hpp"

#include <fmt/format.h>

#include <utility>

namespace heddle::streams {

void RenewingSplit::take(Record&& record, Flow& flow) {
    if (!record.has(part_.tag)) {
        LabelSet wanted;
        wanted.add(part_.tag);
        plant_.fail(std::move(record), path_, no_way(record, {wanted}));
        return;
    }
    Replica* replica = nullptr;
    try {
        const std::lock_guard guard(mutex_);
        replica = &enter_replica_for(record.tag(part_.tag));
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    pass(*replica, std::move(record), flow);
}

RenewingPart::Replica& RenewingSplit::enter_replica_for(int value) {
    if (Replica* const known = enter_known(value)) return *known;
    renew_those_left();
    if (in_use() >= plant_.options.most_stages) refuse_another_replica(in_use());
    return enter_another(value);
}

void RenewingSplit::leaves(Record&& record, int /*value*/, Flow& flow) {
    flow.pass(exit_, std::move(record));
}

const Path& RenewingSplit::path_of_replica(size_t others) {
    return plant_.path(&path_, fmt::format("replica {}", others + 1));
}

}  // namespace heddle::streams
