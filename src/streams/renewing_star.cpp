#include "streams/renewing_star.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "streams/renewable.hpp"

namespace heddle::streams {

RenewingStar::RenewingStar(Plant& plant, const Topology& part, Inlet& exit, const Path& path)
    : RenewingPart(plant, part, exit, path),
      leaving_(sets_of(part.patterns)),
      keeps_nothing_(keeps_nothing(part.parts[0])),
      fired_stage_(part.parts[0], plant.typing) {}

void RenewingStar::take(Record&& record, Flow& flow) {
    {
        // Before it is in stages itself, which it may be in until it has come to rest.
        const std::lock_guard guard(mutex_);
        if (!keeps_nothing_ || in_use() > kFew) renew_those_left();
    }
    arrive(std::move(record), 0, flow);
}

void RenewingStar::arrive(Record&& record, int stage, Flow& flow) {
    if (plant_.drops(record)) return;
    Replica* replica = nullptr;
    try {
        if (!matches_any(part_.patterns, leaving_, record)) {
            const std::lock_guard guard(mutex_);
            replica = &enter_stage_for(record, stage);
        }
    } catch (...) {
        plant_.fail(std::move(record), path_);
        return;
    }
    if (replica == nullptr)
        flow.pass(exit_, std::move(record));
    else
        pass(*replica, std::move(record), flow);
}

RenewingPart::Replica& RenewingStar::enter_stage_for(Record& record, int stage) {
    Replica* replica = enter_known(stage);
    if (replica != nullptr) return *replica;
    renew_those_left();
    if (all_fired(states_.of(stage)) && fired_stage_.lets_through(record)) {
        // Nobody is in these stages who could be overtaken.
        stage = states_.last_alike(stage) + 1;
        if ((replica = enter_known(stage)) != nullptr) return *replica;
    }
    check_limits(record, stage);
    return enter_another(stage);
}

void RenewingStar::check_limits(Record& record, int stage) const {
    const auto number = static_cast<uint64_t>(stage);
    const uint64_t most = plant_.options.most_stages;
    if (number >= most + states_.count() || stage == std::numeric_limits<int>::max())
        throw Error(ErrorCode::kLimit, fmt::format("this is replica {}, and none may be more: does no record "
                                                   "ever match {}?",
                                                   number, text_of(leaving_)));
    // Where each stage fires at once nothing else would ever end it.
    if (number >= most && record.turns_back++ >= plant_.options.most_turns)
        throw Error(ErrorCode::kLimit,
                    fmt::format("this record, or what it comes of, has come into {} new stages, and it may "
                                "not into more",
                                plant_.options.most_turns));
}

void RenewingStar::leaves(Record&& record, int stage, Flow& flow) {
    arrive(std::move(record), stage + 1, flow);
}

const Path& RenewingStar::path_of_replica(size_t others) {
    return plant_.path(path_.outer, fmt::format("*[{}]", others));
}

}  // namespace heddle::streams
