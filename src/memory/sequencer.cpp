#include "memory/sequencer.hpp"

#include <fmt/format.h>

#include <utility>

namespace heddle::memory {
namespace {

Ending is_gone(Rank rank) {
    return {fmt::format("rank {} is gone", rank), static_cast<int>(ErrorCode::kUnavailable), -1, {}};
}

}  // namespace

Sequencer::Sequencer(Rank ranks) : contacts_(ranks) {
    for (Rank rank = 0; rank < ranks; ++rank) ranks_.insert(rank);
}

void Sequencer::request(Rank from, uint64_t request, Command command, Output& output) {
    queue_.push_back({from, request, std::move(command)});
    if (queue_.size() == 1) begin(output);
}

void Sequencer::begin(Output& output) {
    Command& command = queue_.front().command;
    if (command.kind == Command::Kind::kCreateSegment || command.kind == Command::Kind::kAllocate)
        command.id = ++last_id_;
    failed_ = {};
    command.gone = gone_;
    if (command.kind != Command::Kind::kCreateSegment || gone_.empty()) return send(output);
    failed_ = is_gone(gone_.front());
    reply(output);
}

void Sequencer::send(Output& output) {
    awaited_ = ranks_;
    output.commands.emplace_back(++last_number_, queue_.front().command);
}

void Sequencer::applied(Rank from, uint64_t number, const Ending& ending, Output& output) {
    if (number != last_number_ || awaited_.erase(from) == 0) return;
    if (failed_.error.empty()) failed_ = ending;
    contacts_[from] = ending.contact;
    if (awaited_.empty()) all_applied(output);
}

void Sequencer::lost(Rank rank, Output& output) {
    if (ranks_.erase(rank) > 0) gone_.push_back(rank);
    if (awaited_.erase(rank) == 0) return;
    if (failed_.error.empty()) failed_ = is_gone(rank);
    if (awaited_.empty()) all_applied(output);
}

void Sequencer::undeliverable(uint64_t number, Ending why, Output& output) {
    if (number != last_number_ || awaited_.empty()) return;
    if (failed_.error.empty()) failed_ = std::move(why);
    awaited_.clear();
    all_applied(output);
}

void Sequencer::all_applied(Output& output) {
    Command& command = queue_.front().command;
    using Kind = Command::Kind;
    const bool well = failed_.error.empty();
    if (well && command.kind == Kind::kCreateSegment) {
        command.kind = Kind::kAttachSegment;
        command.contacts = contacts_;
        return send(output);
    }
    if (well && command.kind == Kind::kAttachSegment) {
        command.kind = Kind::kSealSegment;
        command.contacts.clear();
        return send(output);
    }
    // What undoing it ends with does not count: the first error is told.
    if (!well && (command.kind == Kind::kCreateSegment || command.kind == Kind::kAttachSegment ||
                  command.kind == Kind::kSealSegment)) {
        command.kind = Kind::kDropSegment;
        return send(output);
    }
    if (!well && command.kind == Kind::kAllocate) {
        command.kind = Kind::kFree;
        command.placement = {};
        return send(output);
    }
    reply(output);
}

void Sequencer::reply(Output& output) {
    const Request& request = queue_.front();
    output.replies.push_back({request.from, request.number, request.command.id, std::exchange(failed_, {})});
    queue_.pop_front();
    if (!queue_.empty()) begin(output);
}

}  // namespace heddle::memory
