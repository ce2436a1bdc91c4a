// MemoryWorld: several ranks of the directory/cache in one thread, with messages and transfers that take as
// long as the test says. What is in the segments is really there; nothing else is.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "memory/copy_listings.hpp"
#include "memory/node.hpp"

namespace heddle::test {

class MemoryWorld {
  public:
    /// The copies of a cache, for clients that pin them by themselves.
    struct Listed {
        explicit Listed(uint64_t cache_size) : count(memory::listings_of(cache_size)) {}
        uint32_t count;
        std::unique_ptr<memory::CopyListing[]> listings = std::make_unique<memory::CopyListing[]>(count);
        memory::CopyListings copies{{listings.get(), count}};
    };
    struct Rank {
        explicit Rank(memory::Rank self) : node(self) {}
        memory::Node node;
        std::map<memory::SegmentId, std::vector<std::byte>> parts;
        std::map<memory::CacheId, std::vector<std::byte>> payloads;
        std::map<memory::CacheId, Listed> listed;
        std::vector<memory::Transfer> transfers;
    };
    /// What has come of an operation, by its ticket.
    using Outcome = memory::Completion::Outcome;

    explicit MemoryWorld(memory::Rank ranks) {
        for (memory::Rank rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(rank));
    }

    Rank& operator[](memory::Rank rank) { return *ranks_[rank]; }
    [[nodiscard]] memory::Rank size() const { return static_cast<memory::Rank>(ranks_.size()); }

    /// Of so many bytes on each rank. `addressable`: ranges of it can be had directly.
    memory::SegmentId segment(const std::vector<uint64_t>& parts, bool addressable = true) {
        const memory::SegmentId id{++ids_};
        for (auto& rank : ranks_) {
            rank->node.atlas().add_segment(id, parts);
            auto& part = rank->parts[id];
            part.resize(parts[rank->node.rank()]);
            if (addressable) rank->node.caching().add_part(id, part.data());
        }
        return id;
    }
    memory::DataId allocate(uint64_t size, memory::SegmentId segment,
                            memory::Distribution distribution = memory::equally_distributed) {
        const memory::DataId id{++ids_};
        for (auto& rank : ranks_) rank->node.atlas().allocate(id, size, segment, distribution);
        return id;
    }
    void reserve_versions(memory::DataId data, uint32_t count) {
        for (auto& rank : ranks_) rank->node.atlas().reserve_versions(data, count);
    }
    void free(memory::DataId data) {
        for (auto& rank : ranks_) {
            memory::Actions actions;
            rank->node.free(data, actions);
            take(rank->node.rank(), actions);
        }
    }
    memory::CacheId cache(memory::Rank rank, uint64_t size) {
        const memory::CacheId id{++ids_};
        auto& payload = ranks_[rank]->payloads[id];
        payload.resize(size + 1);  // so that one of no size has an address
        auto& listed = ranks_[rank]->listed.try_emplace(id, size).first->second;
        ranks_[rank]->node.caching().add_cache(id, size, payload.data(), &listed.copies);
        return id;
    }

    /// Begins an operation; its ticket.
    memory::Ticket start(memory::Rank rank, const memory::Operation& operation, memory::ClientId client = 1) {
        const memory::Ticket ticket = ++tickets_;
        memory::Actions actions;
        try {
            if (auto result = ranks_[rank]->node.start(client, ticket, operation, actions))
                outcomes_.emplace(ticket, *result);
        } catch (const memory::MemoryError& error) {
            outcomes_.emplace(ticket, error);
        }
        take(rank, actions);
        return ticket;
    }
    void give_up(memory::Rank rank, memory::Ticket ticket, memory::ClientId client = 1) {
        memory::Actions actions;
        ranks_[rank]->node.give_up(client, ticket, actions);
        take(rank, actions);
    }
    void drop_client(memory::Rank rank, memory::ClientId client, bool died = false) {
        memory::Actions actions;
        memory::LeavingClient leaving{client, died};
        while (ranks_[rank]->node.drop_client(leaving, 1, actions))
            ;
        take(rank, actions);
    }
    /// All others hear that the rank is gone.
    void lose(memory::Rank gone) {
        for (auto& rank : ranks_) {
            if (rank->node.rank() == gone) continue;
            memory::Actions actions;
            rank->node.lost(gone, actions);
            take(rank->node.rank(), actions);
        }
        run();
    }
    void remove_cache(memory::Rank rank, memory::CacheId id) {
        memory::Actions actions;
        ranks_[rank]->node.remove_cache(id, actions);
        take(rank, actions);
    }
    [[nodiscard]] bool ended(memory::Ticket ticket) const { return outcomes_.contains(ticket); }
    [[nodiscard]] const Outcome& outcome(memory::Ticket ticket) const { return outcomes_.at(ticket); }

    /// Everything that is under way, by number: first the channels with a message, then the transfers.
    [[nodiscard]] size_t steps() {
        size_t count = 0;
        for (const auto& [route, channel] : channels_) count += channel.empty() ? 0 : 1;
        for (const auto& rank : ranks_) count += rank->transfers.size();
        return count;
    }
    /// Lets the message or the transfer with that number come to its end.
    void step(size_t number) {
        for (auto& [route, channel] : channels_) {
            if (channel.empty() || number-- > 0) continue;
            const memory::Message message = channel.front();
            channel.pop_front();
            ++delivered_;
            memory::Actions actions;
            ranks_[message.to]->node.handle(message, actions);
            return take(message.to, actions);
        }
        for (auto& rank : ranks_) {
            if (number >= rank->transfers.size()) {
                number -= rank->transfers.size();
                continue;
            }
            const memory::Transfer transfer = rank->transfers[number];
            rank->transfers.erase(rank->transfers.begin() + static_cast<std::ptrdiff_t>(number));
            const std::string error = fail_transfers ? "the cable is out" : "";
            if (error.empty()) move(transfer);
            memory::Actions actions;
            rank->node.transferred(transfer.access, error, actions);
            return take(rank->node.rank(), actions);
        }
    }
    void run() {
        while (steps() > 0) step(0);
    }
    /// Runs all to its end.
    const Outcome& finish(memory::Rank rank, const memory::Operation& operation,
                          memory::ClientId client = 1) {
        const memory::Ticket ticket = start(rank, operation, client);
        run();
        return outcome(ticket);
    }
    template <class Result>
    Result get(memory::Rank rank, const memory::Operation& operation, memory::ClientId client = 1) {
        return std::get<Result>(std::get<memory::OperationResult>(finish(rank, operation, client)));
    }
    [[nodiscard]] bool idle() {
        return steps() == 0 && std::ranges::all_of(ranks_, [](const auto& rank) {
                   return rank->node.caching().idle() && rank->node.home().idle();
               });
    }
    [[nodiscard]] size_t delivered() const { return delivered_; }

    bool fail_transfers = false;

  private:
    void take(memory::Rank rank, memory::Actions& actions) {
        for (const memory::Message& message : actions.messages)
            channels_[{rank, message.to}].push_back(message);
        for (memory::Transfer& transfer : actions.transfers)
            ranks_[rank]->transfers.push_back(std::move(transfer));
        for (memory::Completion& completion : actions.completions)
            outcomes_.emplace(completion.ticket, std::move(completion.result));
    }
    void move(const memory::Transfer& transfer) {
        using Direction = memory::Transfer::Direction;
        std::byte* copy = transfer.copy;
        for (const memory::Transfer::Part& part : transfer.parts) {
            if (part.size == 0) continue;
            if (transfer.direction == Direction::kWithinCache) {
                std::memcpy(copy, part.memory, part.size);
                copy += part.size;
                continue;
            }
            std::byte* const there = ranks_[part.rank]->parts.at(part.segment).data() + part.part_offset;
            if (transfer.direction == Direction::kFromSegment)
                std::memcpy(part.memory, there, part.size);
            else
                std::memcpy(there, part.memory, part.size);
        }
    }

    std::vector<std::unique_ptr<Rank>> ranks_;
    std::map<std::pair<memory::Rank, memory::Rank>, std::deque<memory::Message>> channels_;
    std::map<memory::Ticket, Outcome> outcomes_;
    memory::Ticket tickets_ = 0;
    uint64_t ids_ = 0;
    size_t delivered_ = 0;
};

}  // namespace heddle::test
