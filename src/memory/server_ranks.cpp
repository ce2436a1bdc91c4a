// What a ServerState does with other ranks: packets, changes that all ranks make, meetings, and ranks that
// go.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/server_state.hpp"

namespace heddle::memory {
namespace {

Ending ending_of(const std::exception& error) {
    Ending ending{error.what(), static_cast<int>(ErrorCode::kSystem), -1, {}};
    if (const auto* known = dynamic_cast<const Error*>(&error)) ending.code = static_cast<int>(known->code());
    if (const auto* of_memory = dynamic_cast<const MemoryError*>(&error))
        ending.memory_code = static_cast<int>(of_memory->memory_code());
    return ending;
}

void throw_if_failed(const Ending& ending) {
    if (ending.error.empty()) return;
    if (ending.memory_code >= 0)
        throw MemoryError(static_cast<MemoryErrorCode>(ending.memory_code), ending.error);
    throw Error(static_cast<ErrorCode>(ending.code), ending.error);
}

}  // namespace

SegmentId ServerState::create_segment(uint64_t size, const SegmentDescription& description) {
    // What the kind lacks is found by the thread that asks, where no other rank is needed for it.
    if (ranks_ == 1) (void)find_segment_kind(description.kind);
    Command command;
    command.segment_kind = description.kind;
    command.options = description.options;
    command.part_sizes.resize(ranks_);
    const std::vector<uint64_t> no_limit(ranks_, UINT64_MAX);
    for (const Share& share : equally_distributed(size, no_limit))
        command.part_sizes[share.rank] = share.size;
    return {change(std::move(command))};
}

void ServerState::delete_segment(SegmentId segment) {
    Command command;
    command.kind = Command::Kind::kDropSegment;
    command.id = segment.value;
    change(std::move(command));
}

DataId ServerState::allocate(uint64_t size, SegmentId segment, const Placement& placement) {
    Command command;
    command.kind = Command::Kind::kAllocate;
    command.segment = segment.value;
    command.size = size;
    command.placement = placement;
    return {change(std::move(command))};
}

std::vector<uint64_t> ServerState::free_bytes(SegmentId segment) {
    const Lock lock(mutex_);
    return node_.atlas().free_bytes(segment, {gone_.begin(), gone_.end()});
}

void ServerState::free(DataId data) {
    Command command;
    command.kind = Command::Kind::kFree;
    command.id = data.value;
    change(std::move(command));
}

void ServerState::reserve_versions(DataId data, uint32_t count) {
    {
        // Not the atlas: this rank may have them before others do, whose readers may be told of one.
        const Lock lock(mutex_);
        const auto known = versions_everywhere_.find(data);
        if (known != versions_everywhere_.end() && known->second >= count) return;
    }
    Command command;
    command.kind = Command::Kind::kReserveVersions;
    command.id = data.value;
    command.size = count;
    change(std::move(command));
    const Lock lock(mutex_);
    uint32_t& everywhere = versions_everywhere_[data];
    everywhere = std::max(everywhere, count);
}

void ServerState::check_room(const op::Put& put) {
    if (put.retain == 0) return;
    const Lock lock(mutex_);
    const auto known = versions_everywhere_.find(put.global.data);
    if (known == versions_everywhere_.end() || known->second <= put.retain)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("room for {} versions of allocation {} is not reserved on all ranks yet: "
                                "reserve it, and wait for the answer, first",
                                put.retain + uint64_t{1}, put.global.data.value));
}

uint64_t ServerState::change(Command command) {
    const auto question = std::make_shared<Question>();
    {
        const Lock lock(mutex_);
        if (gone_.contains(0))
            throw Error(ErrorCode::kUnavailable, "rank 0, which orders all changes, is gone");
        const uint64_t number = ++last_change_;
        changes_.emplace(number, question);
        try {
            send(0, ChangeRequest{number, std::move(command)});
        } catch (...) {
            changes_.erase(number);
            throw;
        }
    }
    wait_for_answer(*question);
    throw_if_failed(question->ending);
    return question->id;
}

std::vector<uint8_t> ServerState::meet(std::vector<uint8_t> content) {
    const auto question = std::make_shared<Question>();
    Look look(may_look() ? mesh_.get() : nullptr);
    {
        const Lock lock(mutex_);
        if (gone_.contains(0)) throw Error(ErrorCode::kUnavailable, "rank 0, where all ranks meet, is gone");
        meetings_.emplace(++last_meeting_, question);
        send(0, Arrival{last_meeting_, std::move(content)});
    }
    look.until([&] { return question->is_answered.load(std::memory_order_acquire); });
    wait_for_answer(*question);
    throw_if_failed(question->ending);
    return std::move(question->content);
}

void ServerState::send(Rank to, Parsed&& content) {
    if (to == rank())
        deal_with(to, std::move(content));
    else
        mesh_->send(to, packet_of(content));
}

void ServerState::received(Rank from, std::span<const std::byte> packet) {
    std::optional<Parsed> content = parse(packet);
    if (!content) return;
    std::vector<std::shared_ptr<OperationState>> told;
    std::vector<std::shared_ptr<Question>> answers;
    {
        const Lock lock(mutex_);
        struct Collecting {
            decltype(answers_)& collected;
            ~Collecting() { collected = nullptr; }
        } const collecting{answers_};
        answers_ = &answers;
        deal_with(from, std::move(*content));
        told.swap(to_wake_);
    }
    for (const auto& state : told) state->tell();
    for (const auto& question : answers) question->answered.signal();
}

void ServerState::deal_with(Rank from, Parsed&& content) {
    Sequencer::Output output;
    if (auto* messages = std::get_if<std::vector<Message>>(&content)) {
        Actions actions;
        trace_step();
        for (Message& message : *messages) {
            message.from = from;
            node_.handle(message, actions);
        }
        return leave_to_waiters(actions);
    }
    if (auto* command = std::get_if<ChangeCommand>(&content)) {
        to_apply_.emplace_back(command->number, std::move(command->command));
        return for_mover_.notify_one();
    }
    if (auto* reply = std::get_if<ChangeReply>(&content))
        return answer(changes_, reply->request, reply->id, std::move(reply->ending), {});
    if (auto* survey = std::get_if<SurveyRequest>(&content)) return send(from, answer_survey(*survey));
    if (auto* surveyed_by = std::get_if<SurveyReply>(&content))
        return surveyed(from, std::move(*surveyed_by));
    if (auto* departure = std::get_if<Departure>(&content))
        return answer(meetings_, departure->meeting, 0, std::move(departure->ending),
                      std::move(departure->content));
    if (!sequencer_) return;  // the rest is for rank 0
    if (auto* request = std::get_if<ChangeRequest>(&content)) {
        sequencer_->request(from, request->request, std::move(request->command), output);
    } else if (auto* applied = std::get_if<ChangeApplied>(&content)) {
        sequencer_->applied(from, applied->number, applied->ending, output);
    } else if (auto* arrival = std::get_if<Arrival>(&content)) {
        arrived_[from] = std::move(*arrival);
        if (arrived_.size() == ranks_ || !gone_.empty()) depart();
    }
    emit(output);
}

void ServerState::depart() {
    const std::map<Rank, Arrival> arrived = std::exchange(arrived_, {});
    Departure departure;
    if (!gone_.empty())
        departure.ending = {fmt::format("rank {} is gone, so not all ranks can meet", *gone_.begin()),
                            static_cast<int>(ErrorCode::kUnavailable),
                            -1,
                            {}};
    for (const auto& [rank, arrival] : arrived)
        if (!arrival.content.empty()) departure.content = arrival.content;
    for (const auto& [rank, arrival] : arrived) {
        departure.meeting = arrival.meeting;
        send(rank, departure);
    }
}

void ServerState::emit(Sequencer::Output& output) {
    // All ranks get a command or none does: one that is too long for a packet fails before the first gets it.
    for (size_t i = 0; i < output.commands.size(); ++i) {
        const ChangeCommand content{output.commands[i].first, output.commands[i].second};
        Packet packet;
        try {
            if (ranks_ > 1) packet = packet_of(Parsed(content));
        } catch (const std::exception& error) {
            sequencer_->undeliverable(content.number, ending_of(error), output);
            continue;
        }
        for (Rank to = 0; to < ranks_; ++to) {
            if (to == rank())
                deal_with(to, content);
            else
                mesh_->send(to, packet);
        }
    }
    for (const Sequencer::Reply& reply : output.replies)
        send(reply.to, ChangeReply{reply.request, reply.id, reply.ending});
}

void ServerState::answer(std::map<uint64_t, std::shared_ptr<Question>>& questions, uint64_t number,
                         uint64_t id, Ending ending, std::vector<uint8_t> content) {
    const auto asked = questions.extract(number);
    if (asked.empty()) return;
    Question& question = *asked.mapped();
    question.id = id;
    question.ending = std::move(ending);
    question.content = std::move(content);
    answered(asked.mapped());
}

void ServerState::answered(const std::shared_ptr<Question>& question) {
    question->is_answered.store(true, std::memory_order_release);
    if (answers_ != nullptr)
        answers_->push_back(question);
    else
        to_answer_.push_back(question);
    if (answers_ == nullptr || mover_waits_) for_mover_.notify_one();
}

void ServerState::lost(Rank rank) {
    const Lock lock(mutex_);
    gone_.insert(rank);
    Actions actions;
    node_.lost(rank, actions);
    leave_to_mover(actions);
    give_up_surveys(rank);
    // What all ranks do fails where rank 0 says so: it knows whether it had taken place before.
    const Ending gone{"rank 0 is gone", static_cast<int>(ErrorCode::kUnavailable), -1, {}};
    while (rank == 0 && !meetings_.empty()) answer(meetings_, meetings_.begin()->first, 0, gone, {});
    while (rank == 0 && !changes_.empty()) answer(changes_, changes_.begin()->first, 0, gone, {});
    if (!sequencer_) return;
    depart();
    Sequencer::Output output;
    sequencer_->lost(rank, output);
    emit(output);
}

Ending ServerState::apply(const Command& command) noexcept {
    try {
        Ending ending;
        ending.contact = change_tables(command);
        return ending;
    } catch (const std::exception& error) {
        return ending_of(error);
    }
}

void ServerState::applied(ChangeApplied applied, const Command& command) {
    if (command.kind != Command::Kind::kFree) return send(0, std::move(applied));
    freed_.emplace_back(DataId{command.id}, std::move(applied));
    tell_freed();
}

void ServerState::tell_freed() {
    std::erase_if(freed_, [&](auto& one) {
        auto& [data, applied] = one;
        if (node_.caching().is_moving(data)) return false;
        send(0, std::move(applied));
        return true;
    });
}

void ServerState::measure_links(const Command& command, Segment& segment) {
    const std::string kind = link_kind(command.segment_kind, command.options);
    std::vector<Rank> unknown;
    {
        const Lock lock(mutex_);
        links_.add_segment({command.id}, kind);
        unknown = links_.unknown(kind, command.part_sizes);
    }
    for (const Rank to : unknown) {
        const LinkSpeed speed = measure_link(segment, to, command.part_sizes[to], SteadyClock());
        const Lock lock(mutex_);
        links_.learn(kind, to, speed);
    }
}

std::string ServerState::change_tables(const Command& command) {
    const SegmentId segment{command.id};
    std::shared_ptr<Segment> made;
    switch (command.kind) {
        case Command::Kind::kCreateSegment: {
            made = find_segment_kind(command.segment_kind)
                       .create({segment, rank(), command.part_sizes, command.options});
            const Lock lock(mutex_);
            segments_.emplace(segment, made);
            return made->contact();
        }
        case Command::Kind::kAttachSegment: {
            {
                const Lock lock(mutex_);
                made = segments_.at(segment);
            }
            made->attach(command.contacts);
            measure_links(command, *made);
            const Lock lock(mutex_);
            node_.atlas().add_segment(segment, command.part_sizes);
            traffic_.add_segment(segment, command.segment_kind);
            descriptions_[segment] = {command.segment_kind, command.options};
            if (std::byte* const part = made->address()) node_.caching().add_part(segment, part);
            return {};
        }
        case Command::Kind::kSealSegment: {
            {
                const Lock lock(mutex_);
                made = segments_.at(segment);
            }
            made->seal();
            return {};
        }
        case Command::Kind::kDropSegment: {
            const Lock lock(mutex_);
            const bool whole = node_.atlas().has_segment(segment);
            if (whole || !segments_.contains(segment)) node_.atlas().remove_segment(segment);
            node_.caching().remove_part(segment);
            traffic_.remove_segment(segment);
            links_.remove_segment(segment);
            descriptions_.erase(segment);
            made = std::move(segments_.extract(segment).mapped());  // it goes without the lock
            return {};
        }
        case Command::Kind::kAllocate: {
            const Placement& placement = command.placement;
            const Distribution distribution =
                placement.by_shares
                    ? Distribution([&](uint64_t, std::span<const uint64_t>) { return placement.shares; })
                    : find_distribution(placement.distribution);
            const Lock lock(mutex_);
            node_.atlas().allocate({command.id}, command.size, {command.segment}, distribution,
                                   placement.distribution, command.gone);
            distributions_[{command.id}] = placement.by_shares ? "" : placement.distribution;
            return {};
        }
        case Command::Kind::kFree: {
            const Lock lock(mutex_);
            Actions actions;
            node_.free({command.id}, actions);
            distributions_.erase({command.id});
            versions_everywhere_.erase({command.id});
            leave_to_mover(actions);
            return {};
        }
        case Command::Kind::kReserveVersions: {
            const Lock lock(mutex_);
            node_.atlas().reserve_versions({command.id}, static_cast<uint32_t>(command.size));
            return {};
        }
    }
    throw Error(ErrorCode::kInvalidArgument, "no such change");
}

}  // namespace heddle::memory
