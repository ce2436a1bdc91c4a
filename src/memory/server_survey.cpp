// What a ServerState tells of costs and places: its own answers, and those of the other ranks.
#include <algorithm>
#include <utility>

#include "memory/server_state.hpp"

namespace heddle::memory {

double ServerState::seconds_here(const PlannedTransfer& planned) const {
    const GlobalRange range = planned.range();
    const CachingAgent& caching = node_.caching();
    if (!planned.writes && !planned.anew && caching.has_copy(range, {planned.cache})) return 0;
    if (planned.prefer_direct && caching.is_here(range)) return 0;
    const SegmentId segment = node_.atlas().segment_of(range.data);
    double seconds = 0;
    for (const Piece& piece : node_.atlas().pieces(range))
        seconds += links_.seconds(segment, piece.home, piece.global.range.size);
    return seconds;
}

SurveyReply ServerState::answer_survey(const SurveyRequest& request) const {
    SurveyReply reply{request.number, 0, {}};
    for (size_t i = 0; i < request.transfers.size(); ++i) {
        const PlannedTransfer& planned = request.transfers[i];
        try {
            reply.seconds += seconds_here(planned);
            if (node_.caching().has_part_of(planned.range()))
                reply.copies.push_back(static_cast<uint32_t>(i));
        } catch (const MemoryError&) {
            // It was freed after somebody asked.
        }
    }
    return reply;
}

std::map<Rank, SurveyReply> ServerState::ask_ranks(std::vector<PlannedTransfer> transfers) {
    const auto survey = std::make_shared<Survey>();
    bool waits = false;
    {
        const Lock lock(mutex_);
        const uint64_t number = ++last_survey_;
        for (const PlannedTransfer& planned : transfers) (void)node_.atlas().pieces(planned.range());
        survey->replies[rank()] = answer_survey({number, transfers});
        for (PlannedTransfer& planned : transfers) planned.cache = 0;  // which is one of this rank
        for (Rank other = 0; other < ranks_; ++other)
            if (other != rank() && !gone_.contains(other)) survey->awaited.insert(other);
        waits = !survey->awaited.empty();
        if (waits) surveys_.emplace(number, survey);
        for (const Rank other : survey->awaited) send(other, SurveyRequest{number, transfers});
    }
    if (waits) wait_for_answer(*survey);
    return std::move(survey->replies);
}

std::map<Rank, SurveyReply> ServerState::survey(std::span<const PlannedTransfer> transfers) {
    std::map<Rank, SurveyReply> all =
        ask_ranks({transfers.begin(),
                   transfers.begin() + static_cast<ptrdiff_t>(std::min(kMostInSurvey, transfers.size()))});
    for (size_t done = kMostInSurvey; done < transfers.size(); done += kMostInSurvey) {
        const auto some = transfers.subspan(done, std::min(kMostInSurvey, transfers.size() - done));
        const std::map<Rank, SurveyReply> replies = ask_ranks({some.begin(), some.end()});
        std::erase_if(all, [&](const auto& one) { return !replies.contains(one.first); });
        for (auto& [rank, sum] : all) {
            sum.seconds += replies.at(rank).seconds;
            for (const uint32_t place : replies.at(rank).copies)
                sum.copies.push_back(static_cast<uint32_t>(done) + place);
        }
    }
    return all;
}

void ServerState::surveyed(Rank from, SurveyReply reply) {
    const auto found = surveys_.find(reply.number);
    if (found == surveys_.end() || found->second->awaited.erase(from) == 0) return;
    found->second->replies[from] = std::move(reply);
    end_survey(found->second->awaited.empty(), found);
}

void ServerState::end_survey(bool complete, Surveys::iterator survey) {
    if (!complete) return;
    answered(survey->second);
    surveys_.erase(survey);
}

void ServerState::give_up_surveys(Rank gone) {
    for (auto one = surveys_.begin(); one != surveys_.end();) {
        const auto here = one++;
        end_survey(here->second->awaited.erase(gone) > 0 && here->second->awaited.empty(), here);
    }
}

std::vector<TransferCost> ServerState::transfer_costs(std::span<const PlannedTransfer> transfers) {
    std::vector<TransferCost> costs;
    for (const auto& [rank, reply] : survey(transfers)) costs.push_back({rank, reply.seconds});
    std::ranges::stable_sort(costs, {}, &TransferCost::seconds);
    return costs;
}

std::vector<DataLocality> ServerState::data_locality(std::span<const GlobalRange> ranges) {
    std::vector<DataLocality> all;
    std::vector<GlobalRange> pieces;
    {
        const Lock lock(mutex_);
        for (const GlobalRange& range : ranges)
            for (const Piece& piece : node_.atlas().pieces(range)) {
                all.push_back({piece.global, piece.home, {}});
                pieces.push_back(piece.global);
            }
    }
    if (pieces.empty()) return all;
    const std::vector<PlannedTransfer> transfers = planned_transfers(pieces);
    for (const auto& [rank, reply] : survey(transfers))
        for (const uint32_t place : reply.copies) all.at(place).copies.insert(rank);
    return all;
}

}  // namespace heddle::memory
