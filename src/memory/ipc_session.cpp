#include "memory/ipc_session.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace heddle::memory {
namespace {

// Far above what a sound program needs; a hostile one takes no more.
constexpr size_t kMostRunning = 65'536;
constexpr size_t kMostHeld = 1'000'000;
constexpr size_t kMostChanges = 1024;
constexpr size_t kMostCaches = 128;
constexpr size_t kMostRegistrations = 65'536;
constexpr size_t kLongestName = 64;

/// Of those that mean one; nothing: it is a request of another kind.
std::optional<Operation> operation_in(ipc::Request& request) {
    return std::visit(
        [](auto& content) -> std::optional<Operation> {
            using Content = std::decay_t<decltype(content)>;
            if constexpr (std::is_constructible_v<Operation, Content>)
                return Operation(content);
            else
                return {};
        },
        request);
}

CacheId cache_of(const Operation& operation) {
    return std::visit(
        [](const auto& one) {
            using One = std::decay_t<decltype(one)>;
            if constexpr (std::is_same_v<One, op::Release>)
                return one.local.cache;
            else if constexpr (std::is_same_v<One, op::Put>)
                return one.source.cache;
            else
                return one.cache;
        },
        operation);
}

std::shared_ptr<MemoryRegion> region_of(const std::string& text) {
    auto region = std::make_shared<MemoryRegion>(text.size(), MemoryRegion::Sharing::kReadOnly);
    std::memcpy(region->data(), text.data(), text.size());
    return region;
}

[[noreturn]] void limit(const char* what, size_t most) {
    throw Error(ErrorCode::kLimit, fmt::format("a client cannot have more than {} {} at once", most, what));
}

}  // namespace

bool IpcSession::handle(std::span<const std::byte> packet) {
    auto parsed = ipc::parse_request(packet);
    if (!parsed) {
        const auto version = ipc::version_of(packet);
        if (version && *version != ipc::kVersion)
            reply(1, ipc::Failure{ErrorCode::kVersionMismatch,
                                  {},
                                  fmt::format("the client speaks version {} of the protocol, the server {}: "
                                              "use one heddle for both",
                                              *version, ipc::kVersion)});
        return false;
    }
    const bool says_hello = std::holds_alternative<ipc::Hello>(parsed->content);
    if (says_hello == (client_ != 0)) return false;
    // Nobody could tell how many there are of what is not answered.
    if (parsed->number == 0 && !std::holds_alternative<op::Release>(parsed->content) &&
        !std::holds_alternative<ipc::GiveUp>(parsed->content) &&
        !std::holds_alternative<ipc::Goodbye>(parsed->content))
        return false;
    try {
        deal_with(parsed->number, parsed->content);
    } catch (const std::exception& error) {
        reply(parsed->number, ipc::failure_of(error));
    }
    return true;
}

void IpcSession::deal_with(uint64_t number, ipc::Request& request) {
    if (auto operation = operation_in(request)) return begin(number, std::move(*operation));
    if (const auto* hello = std::get_if<ipc::Hello>(&request)) {
        name_ = hello->name.substr(0, kLongestName);
        client_ = server_.add_client(name_);
        reply(number, ipc::Welcome{server_.rank(), server_.ranks()});
    } else if (const auto* wanted = std::get_if<ipc::CreateCache>(&request)) {
        if (caches_.size() >= kMostCaches) limit("caches", kMostCaches);
        show_cache(number, keep(server_.create_client_cache(wanted->size, wanted->options)));
    } else if (const auto* known = std::get_if<ipc::AttachCache>(&request)) {
        if (const auto mine = caches_.find(known->cache); mine != caches_.end())
            return show_cache(number, mine->second);
        if (caches_.size() >= kMostCaches) limit("caches", kMostCaches);
        show_cache(number, keep(server_.attach_cache(known->cache)));
    } else if (const auto* old = std::get_if<ipc::DeleteCache>(&request)) {
        (void)attached(old->cache);
        try {
            server_.delete_cache(old->cache);
        } catch (const MemoryError&) {  // somebody else has deleted it: what it has of it goes all the same
            caches_.erase(old->cache);
            throw;
        }
        caches_.erase(old->cache);
        reply(number, ipc::Done{});
    } else if (const auto* segment = std::get_if<ipc::AskFreeBytes>(&request)) {
        reply(number, ipc::FreeBytes{server_.free_bytes(segment->segment)});
    } else if (const auto* counted = std::get_if<ipc::AskStatistics>(&request)) {
        (void)attached(counted->cache);
        reply(number, server_.statistics(counted->cache));
    } else if (const auto* waiting = std::get_if<ipc::GiveUp>(&request)) {
        give_up(waiting->request);
    } else if (std::holds_alternative<ipc::Goodbye>(request)) {
        leaves_in_order_ = true;
    } else if (const auto* reader = std::get_if<ipc::RegisterReader>(&request)) {
        // Where a part of one is given up it is two.
        const size_t most = reader->reads ? kMostRegistrations : 2 * kMostRegistrations;
        if (reader_changes_ >= kMostRegistrations) reader_changes_ = server_.registrations(client_);
        if (reader_changes_ >= most) limit("registrations as a reader", most);
        ++reader_changes_;
        server_.register_reader(client_, reader->global, reader->reads);
        reply(number, ipc::Done{});
    } else if (const auto* pinned = std::get_if<ipc::HoldPinned>(&request)) {
        hold_pinned(number, *pinned);
    } else if (std::holds_alternative<ipc::AskStatus>(request)) {
        const auto text = region_of(host_.status());
        reply(number, ipc::TextIs{text->size()}, {text});
    } else {
        change(number, std::move(request));
    }
}

IpcSession::Attached& IpcSession::attached(CacheId cache) {
    const auto found = caches_.find(cache);
    if (found == caches_.end())
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("this client has no cache {}: it was deleted, or is another's", cache.value));
    return found->second;
}

IpcSession::Attached& IpcSession::keep(Attached cache) {
    try {
        return caches_.try_emplace(cache.id, cache).first->second;
    } catch (...) {
        server_.detach_cache(cache.id, *cache.pins);
        throw;
    }
}

void IpcSession::show_cache(uint64_t number, const Attached& cache) {
    Regions regions{cache.payload};
    if (cache.staging) regions.push_back(cache.staging);
    regions.push_back(cache.listings);
    regions.push_back(cache.pins);
    reply(number, ipc::CacheIs{cache.id, cache.payload->size(), !cache.staging}, std::move(regions));
}

void IpcSession::hold_pinned(uint64_t number, const ipc::HoldPinned& wanted) {
    (void)attached(wanted.cache);
    {
        const std::scoped_lock lock(mutex_);
        if (held_ >= kMostHeld) limit("local ranges", kMostHeld);
        ++held_;
    }
    try {
        reply(number, ipc::Got{server_.hold_pinned(client_, wanted.cache, wanted.pin), false});
    } catch (...) {
        const std::scoped_lock lock(mutex_);
        --held_;
        throw;
    }
}

void IpcSession::fetch_written(Attached& cache, const LocalRange& source) {
    const HeldRange held = server_.held(client_, source);
    if (!held.writable || !cache.staging) return;
    std::vector<Range> read;
    {
        const std::scoped_lock lock(mutex_);
        for (auto other = sources_.lower_bound({cache.id, held.range.offset, 0}); other != sources_.end();
             ++other) {
            const auto& [where, offset, end] = other->first;
            if (where != cache.id || offset >= source.range.end()) break;
            read.push_back({offset, end - offset});
        }
    }
    read.push_back({source.range.end(), 0});
    uint64_t at = source.range.offset;
    const auto fetch = [&](uint64_t offset, uint64_t size) {
        std::memcpy(cache.payload->data() + offset, cache.staging->data() + offset, size);
    };
    for (const Range& other : read) {
        if (other.offset > at) fetch(at, other.offset - at);
        // What another put reads is written only where the client has changed it since: it puts that, then.
        // Or the other one has ended, which is told a little later, and its place is another local range's.
        const uint64_t from = std::max(at, other.offset), to = std::min(other.end(), source.range.end());
        if (from < to &&
            std::memcmp(cache.payload->data() + from, cache.staging->data() + from, to - from) != 0)
            fetch(from, to - from);
        at = std::max(at, other.end());
    }
}

void IpcSession::forget_source(const Source& source) {
    const auto found = sources_.find(source);
    if (--found->second == 0) sources_.erase(found);
}

void IpcSession::begin(uint64_t number, Operation operation) {
    Attached& cache = attached(cache_of(operation));
    std::shared_ptr<MemoryRegion> staging;
    if (auto* put = std::get_if<op::Put>(&operation)) {
        put->source.base = cache.payload->data();
        server_.check_room(*put);
        fetch_written(cache, put->source);
    } else if (auto* release = std::get_if<op::Release>(&operation)) {
        release->local.base = cache.payload->data();
    } else if (auto* constant = std::get_if<op::GetConst>(&operation)) {
        constant->prefer_direct = false;
    } else if (auto* copy = std::get_if<op::GetMutable>(&operation)) {
        copy->prefer_direct = false;
        staging = cache.staging;
    } else if (std::holds_alternative<op::GetExclusive>(operation)) {
        staging = cache.staging;
    }
    // Both are mapped as long as it is under way, whatever becomes of the cache.
    const std::shared_ptr<MemoryRegion> payload = cache.payload;
    const auto state = std::make_shared<OperationState>();
    const auto* const put = std::get_if<op::Put>(&operation);
    const bool gives_back =
        std::holds_alternative<op::Release>(operation) || (put != nullptr && put->release);
    std::optional<Source> source;
    if (put != nullptr) source = {cache.id, put->source.range.offset, put->source.range.end()};
    state->when_done = [self = shared_from_this(), number, staging, payload, gives_back,
                        source](OperationState::Outcome outcome) {
        if (source) {
            const std::scoped_lock lock(self->mutex_);
            self->forget_source(*source);
        }
        if (gives_back && std::holds_alternative<OperationResult>(outcome)) {
            const std::scoped_lock lock(self->mutex_);
            --self->held_;
        }
        self->ended(number, staging, std::move(outcome));
    };
    {
        const std::scoped_lock lock(mutex_);
        if (running_.size() >= kMostRunning) limit("operations", kMostRunning);
        if (held_ >= kMostHeld && !gives_back) limit("local ranges", kMostHeld);
        if (number != 0 && !running_.emplace(number, state).second)
            throw Error(ErrorCode::kInvalidArgument, fmt::format("request {} is there twice", number));
        if (source) ++sources_[*source];
    }
    try {
        server_.execute(client_, operation, state);
    } catch (...) {
        state->when_done = nullptr;
        const std::scoped_lock lock(mutex_);
        running_.erase(number);
        if (source) forget_source(*source);
        throw;
    }
}

void IpcSession::ended(uint64_t number, std::shared_ptr<MemoryRegion> staging,
                       OperationState::Outcome outcome) {
    const auto* const result = std::get_if<OperationResult>(&outcome);
    const LocalRange* const local = result == nullptr ? nullptr : local_of(*result);
    {
        const std::scoped_lock lock(mutex_);
        running_.erase(number);
        if (local != nullptr) ++held_;
        if (closed_) return;
    }
    if (const auto* error = std::get_if<MemoryError>(&outcome)) {
        reply(number, ipc::failure_of(*error));
    } else if (const auto* other = std::get_if<std::exception_ptr>(&outcome)) {
        try {
            std::rethrow_exception(*other);
        } catch (const std::exception& known) {
            reply(number, ipc::failure_of(known));
        }
    } else if (local == nullptr) {
        reply(number, ipc::Done{});
    } else {
        if (staging)
            std::memcpy(staging->data() + local->range.offset, local->base + local->range.offset,
                        local->range.size);
        reply(number, ipc::Got{*local, std::holds_alternative<MutableLocalRange>(*result)});
    }
}

void IpcSession::give_up(uint64_t number) {
    std::shared_ptr<OperationState> state;
    {
        const std::scoped_lock lock(mutex_);
        const auto found = running_.find(number);
        if (found == running_.end()) return;
        state = found->second;
    }
    server_.give_up(client_, {state});
}

void IpcSession::change(uint64_t number, ipc::Request request) {
    {
        const std::scoped_lock lock(mutex_);
        if (changes_ >= kMostChanges) limit("changes and questions to all ranks", kMostChanges);
        ++changes_;
    }
    host_.do_later([self = shared_from_this(), number, request = std::move(request)] {
        ServerState& server = self->server_;
        ipc::Reply answer = ipc::Done{};
        Regions regions;
        std::function<void()> undo = [] {};
        try {
            if (const auto* segment = std::get_if<ipc::CreateSegment>(&request)) {
                const SegmentId id = server.create_segment(segment->size, segment->description);
                undo = [&server, id] { server.delete_segment(id); };
                answer = ipc::Created{id.value};
            } else if (const auto* gone = std::get_if<ipc::DeleteSegment>(&request)) {
                server.delete_segment(gone->segment);
            } else if (const auto* data = std::get_if<ipc::AllocateData>(&request)) {
                const DataId id = server.allocate(data->size, data->segment, data->placement);
                undo = [&server, id] { server.free(id); };
                answer = ipc::Created{id.value};
            } else if (const auto* freed = std::get_if<ipc::FreeData>(&request)) {
                server.free(freed->data);
            } else if (const auto* versions = std::get_if<ipc::ReserveVersions>(&request)) {
                server.reserve_versions(versions->data, versions->count);
            } else if (const auto* priced = std::get_if<ipc::AskCosts>(&request)) {
                answer = ipc::CostsAre{server.transfer_costs(priced->transfers)};
            } else if (const auto* placed = std::get_if<ipc::AskLocality>(&request)) {
                regions = {region_of(text_of(server.data_locality(placed->ranges)))};
                answer = ipc::TextIs{regions.front()->size()};
            }
        } catch (const std::exception& error) {
            answer = ipc::failure_of(error);
        }
        {
            const std::scoped_lock lock(self->mutex_);
            --self->changes_;
        }
        // What nobody can ever know of is not to stay.
        const auto untold = [undo = std::move(undo)] {
            try {
                undo();
            } catch (const std::exception&) {
                // A rank is gone, and what it had is of no use.
            }
        };
        if (!self->reply(number, answer, std::move(regions), untold)) untold();
    });
}

bool IpcSession::reply(uint64_t number, const ipc::Reply& content, Regions regions,
                       std::function<void()> untold) {
    // Under the lock: after close() there may be no host any more.
    const std::scoped_lock lock(mutex_);
    if (closed_) return false;
    if (number != 0) host_.reply(id_, ipc::packet_of(number, content), std::move(regions), std::move(untold));
    return true;
}

void IpcSession::close() {
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
    }
    // Not in this thread, which all clients wait for: functions of others' bunches may wait for one of them.
    if (client_ != 0) server_.drop_client(client_, !leaves_in_order_, ServerState::Functions::kByMover);
    for (const auto& [cache, attached] : caches_) server_.detach_cache(cache, *attached.pins);
    caches_.clear();
}

}  // namespace heddle::memory
