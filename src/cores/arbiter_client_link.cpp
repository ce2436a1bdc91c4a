// ArbiterClient's link thread: what the arbiter says, its death and return, and fork(2).
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/failpoint.h"
#include "cores/arbiter_client.hpp"
#include "cores/arbiter_client_reader.hpp"
#include "cores/arbiter_socket.hpp"
#include "cores/futex.hpp"
#include "heddle/error.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

/// Sleeps until the descriptor is readable (true) or the other one is.
bool readable_before(int fd, int other) {
    pollfd ready[2] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
    while (::poll(ready, 2, -1) < 0 && errno == EINTR) {
    }
    return ready[1].revents == 0;
}

/// Who listens and did not take us in may do so soon: it is stopped, on its way out, or full, or what it
/// refuses us for (limits of its own, CPUs that somebody else owns) has gone.
constexpr int kAgainMs = 100, kAgainWhenRefusedMs = 1000;

int again_after(const Error& error, int otherwise) {
    if (dynamic_cast<const NobodyListens*>(&error) != nullptr) return otherwise;
    if (error.code() == ErrorCode::kLimit || error.code() == ErrorCode::kPermission)
        return kAgainWhenRefusedMs;
    return error.code() == ErrorCode::kUnavailable ? kAgainMs : otherwise;
}

/// Whether the calling thread may run on all of these. It may not where its maker was bound.
bool may_run_on(const CpuSet& cpus) noexcept {
    try {
        return thread_affinity().contains(cpus);
    } catch (...) {
        return false;
    }
}

}  // namespace

void ArbiterClient::run() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // signals belong to the program's own threads
    const bool is_witness = !options_.allowed.empty() && may_run_on(options_.allowed);
    while (!stopping_) {
        if (is_witness)
            link_.load()->connection.page().witness.store(static_cast<uint32_t>(::gettid()),
                                                          std::memory_order_relaxed);
        listen(*link_.load());
        if (!stopping_) reregister();
    }
}

/// Until the arbiter is gone, or the client is being destroyed.
void ArbiterClient::listen(Link& link) {
    ArbiterConnection::Message message;
    while (readable_before(link.connection.descriptor(), stop_event_.get())) {
        if (!link.connection.receive(message)) return;
        switch (message.type) {
            case HEDDLE_CHANGED:
                obey(link);
                break;
            case HEDDLE_PEER: {
                auto peer =
                    std::make_unique<Peer>(Peer{message.client, PageMapping(message.page.get(), false)});
                message.page = Descriptor();
                if (!peer->page.valid()) break;
                const std::lock_guard guard(mutex_);
                link.peers.push_back(std::move(peer));
                HEDDLE_FAILPOINT(client_knows_a_peer);
                watch_lenders(link);
                break;
            }
            case HEDDLE_COUNT:
                if (callbacks_.count) callbacks_.count();
                break;
            case HEDDLE_PEER_GONE:
                forget_peer(link, message.client);
                break;
            default:
                break;
        }
        free_retired();
    }
}

/// Makes states_ what the grant says, and tells the process.
void ArbiterClient::obey(Link& link) {
    HEDDLE_FAILPOINT(client_obeys);
    CpuSet gained, asked_back;
    bool left_already = false;
    {
        const std::lock_guard guard(mutex_);
        const heddle_grant_page& grant = link.connection.grant();
        // The lenders first: the arbiter shows the grant before it takes the lender away.
        CpuSet denied;
        for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
            if (const State now = state(cpu);
                (now == kTaken || now == kPassing) && heddle_word_generation(grant.lender[cpu].load()) !=
                                                          taken_generation_[static_cast<size_t>(cpu)])
                denied.insert(cpu);
        const std::optional<ArbiterConnection::Grant> granted = link.connection.read_grant();
        if (!granted) return;
        for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu) {
            const State before = state(cpu);
            std::atomic<uint64_t>& word = link.connection.page().release[cpu];
            const uint32_t generation = heddle_word_generation(grant.successor[cpu].load());
            // Released under this very grant: the arbiter has not heard of it yet.
            const uint64_t shown = word.load();
            const bool released =
                heddle_word_client(shown) != HEDDLE_HELD && heddle_word_generation(shown) == generation;
            if (granted->cpus.contains(cpu)) {
                if (before == kHeld) continue;
                // Left as it was asked back, and given again before we looked: it counts as lent by us, and
                // would for ever. As with reclaim(), one compare-and-swap decides.
                uint64_t lent = heddle_word(generation, HEDDLE_LENT);
                const bool left_too_late =
                    before == kAbsent &&
                    word.compare_exchange_strong(lent, heddle_word(generation, HEDDLE_HELD));
                if (released && !left_too_late) continue;
                if (before == kPassing) {
                    (void)release(link, cpu, kLent);
                    continue;
                }
                if (before != kTaken) gained.insert(cpu);
                set_state(cpu, kHeld);
            } else if (before == kHeld || (before == kTaken && denied.contains(cpu))) {
                set_state(cpu, kLeaving);
                asked_back.insert(cpu);
            } else if (before == kLent || (before == kPassing && denied.contains(cpu))) {
                set_state(cpu, kAbsent);
                left_already = true;
            }
        }
        link.obeyed = granted->epoch;
        // Whoever took a CPU does not say that it waits no more: its lender reads that at this very moment.
        show_watched(link.connection.page(), false);
        say_left(link);
        watch_lenders(link);
    }
    HEDDLE_FAILPOINT(client_obeyed);
    if (left_already) link.connection.send(HEDDLE_RELEASED);
    changed();
    announce(gained, asked_back);
}

/// Under mutex_. Where CPUs were granted and asked back before we looked, no release word tells that we are
/// off them. While a CPU that was handed to us is not confirmed, it may be the one that is meant, also where
/// we pass it on: it may still be taken back.
void ArbiterClient::say_left(Link& link) {
    // A fence ends the waiting for it by force, and is undone when it is said all the same.
    const heddle_grant_page& grant = link.connection.grant();
    if (grant.leaving.load(std::memory_order_relaxed) == 0 &&
        grant.fenced.load(std::memory_order_relaxed) == 0)
        return;
    const bool on_some = std::ranges::any_of(states_, [](const auto& is) {
        const auto state = is.load(std::memory_order_relaxed);
        return state == kLeaving || state == kTaken || state == kPassing;
    });
    if (!on_some) link.connection.send_left(link.obeyed);
}

/// Under mutex_.
void ArbiterClient::watch_lenders(Link& link) {
    for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu) {
        const uint32_t lender =
            heddle_word_client(link.connection.grant().lender[cpu].load(std::memory_order_relaxed));
        const Peer* watched = nullptr;
        if (lender != 0) {
            const auto peer = std::ranges::find(link.peers, lender, [](const auto& p) { return p->client; });
            if (peer != link.peers.end()) watched = peer->get();
        }
        link.watched[static_cast<size_t>(cpu)].store(watched);
    }
}

void ArbiterClient::announce(const CpuSet& gained, const CpuSet& asked_back) {
    if (!started_) return;
    if (!asked_back.empty() && callbacks_.asked_back) callbacks_.asked_back(asked_back);
    if (!gained.empty() && callbacks_.gained) callbacks_.gained(gained);
}

void ArbiterClient::show_page(const Link* link) {
    if (callbacks_.page) callbacks_.page(link == nullptr ? nullptr : &link->connection.page());
}

void ArbiterClient::forget_peer(Link& link, uint32_t client) {
    const std::lock_guard guard(mutex_);
    const auto gone = std::ranges::find(link.peers, client, [](const auto& p) { return p->client; });
    if (gone == link.peers.end()) return;
    for (auto& watched : link.watched)
        if (watched.load(std::memory_order_relaxed) == gone->get()) watched.store(nullptr);
    HEDDLE_FAILPOINT(client_forgets_a_peer);
    retired_peers_.push_back(std::move(*gone));
    link.peers.erase(gone);
    changed();  // who sleeps on its words wakes up and looks elsewhere
}

void ArbiterClient::free_retired() {
    const std::lock_guard guard(mutex_);
    if (readers_.load() != 0) return;  // later: whoever came after the removal does not find them
    retired_peers_.clear();
    retired_links_.clear();
}

/// Under mutex_, with the pages of an arbiter that is gone: what was taken is ours, and what was lent too
/// where nobody has taken it. What the arbiter ended by force, or took, is another's by now. Returns what of
/// that the process uses.
CpuSet ArbiterClient::let_go(const Link& link) {
    CpuSet lost;
    for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu) {
        const State now = state(cpu);
        if (now == kAbsent) continue;
        const bool unconfirmed = now == kTaken || now == kPassing;
        const uint64_t own = link.connection.grant().successor[cpu].load();
        const uint32_t since = unconfirmed ? taken_generation_[static_cast<size_t>(cpu)] : 0;
        const auto newer = static_cast<int32_t>(heddle_word_generation(own) - since);
        const bool ended = heddle_word_client(own) == HEDDLE_TAKEN && (!unconfirmed || newer > 0);
        const uint64_t word = link.connection.page().release[cpu].load();
        const bool taken = now == kLent && heddle_word_client(word) != HEDDLE_LENT;
        if (ended || taken) {
            if (now == kHeld || now == kTaken) lost.insert(cpu);
            set_state(cpu, kAbsent);
        } else if (unconfirmed) {
            set_state(cpu, now == kTaken ? kHeld : kLent);
        }
    }
    return lost;
}

/// The arbiter is gone: what is held stays held until there is one again. The old pages are let go of first:
/// what moved by them after we said what we hold would have two users.
void ArbiterClient::reregister() {
    CpuSet lost;
    {
        const std::lock_guard guard(mutex_);
        retired_links_.emplace_back(link_.exchange(nullptr));
        lost = let_go(*retired_links_.back());
    }
    changed();
    show_page(nullptr);
    announce({}, lost);
    const std::string folder = path_.substr(0, path_.rfind('/'));
    const Descriptor watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    HEDDLE_FAILPOINT(client_lost_its_arbiter);
    while (!stopping_) {
        // Each time, as the folder may have gone, and another may have come.
        const bool watching = watch.valid() && ::inotify_add_watch(watch.get(), folder.c_str(),
                                                                   IN_CREATE | IN_MOVED_TO | IN_ATTRIB) >= 0;
        int again_in_ms = watching ? -1 : 1000;
        try {
            ClientDescription description;
            {
                const std::lock_guard guard(mutex_);
                description = describe();
                for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
                    if (state(cpu) == kLent) {
                        withdrawn_.insert(cpu);
                        set_state(cpu, kAbsent);
                    }
            }
            auto opened = std::make_unique<Link>(path_, description);
            {
                const std::lock_guard guard(mutex_);
                // What was lent meanwhile was described as held: the grant says whose it is.
                for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
                    if (state(cpu) == kLent) set_state(cpu, kAbsent);
                link_.store(opened.release());
                withdrawn_ = wanted_back_ = {};
                problem_.clear();
            }
            HEDDLE_FAILPOINT(client_is_back);
            show_page(link_.load());
            obey(*link_.load());
            if (demand_.load() != description.demand) show_demand(false);
            return;
        } catch (const Error& error) {
            CpuSet back;
            {
                const std::lock_guard guard(mutex_);
                for (const int cpu : withdrawn_)
                    if (state(cpu) == kAbsent) set_state(cpu, wanted_back_.contains(cpu) ? kHeld : kLent);
                // Who wanted one back meanwhile was told that it is gone.
                back = wanted_back_ & withdrawn_;
                withdrawn_ = wanted_back_ = {};
                problem_ = error.what();
                again_in_ms = again_after(error, again_in_ms);
            }
            if (!back.empty()) changed();
            announce(back, {});
        }
        // Where nobody listens, nothing wakes us until something is made in the arbiter's folder; without
        // inotify, a second.
        pollfd ready[2] = {{stop_event_.get(), POLLIN, 0}, {watch.get(), POLLIN, 0}};
        (void)::poll(ready, watching ? 2 : 1, again_in_ms);
        std::array<char, 4096> events;
        while (watching && ::read(watch.get(), events.data(), events.size()) > 0) {
        }
        (void)::poll(ready, 1, 2);  // a socket that was just made may not listen yet
    }
}

void ArbiterClient::before_fork() {
    mutex_.lock();
}

void ArbiterClient::after_fork_in_parent() {
    mutex_.unlock();
}

void ArbiterClient::after_fork_in_child() {
    mutex_.unlock();
    if (callbacks_.forked) callbacks_.forked();
    callbacks_.page = nullptr;  // components, unlike clients, are the parent's alone
    // The thread and the pages are the parent's: neither joined nor unmapped, only forgotten.
    (void)thread_.release();
    started_ = false;
    if (Link* link = link_.exchange(nullptr); link != nullptr) link->connection.abandon();
    for (auto& peer : retired_peers_) (void)peer.release();
    for (auto& link : retired_links_) (void)link.release();
    retired_peers_.clear();
    retired_links_.clear();
    readers_ = 0;
    waiters_ = 0;
    problem_.clear();
    for (auto& is : states_) is.store(kAbsent);
    if (options_.in_children) start();
}

}  // namespace heddle
