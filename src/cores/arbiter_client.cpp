// The calls of ArbiterClient; its link thread is in arbiter_client_link.cpp.
#include "cores/arbiter_client.hpp"

#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <exception>
#include <string>

#include "base/failpoint.h"
#include "base/spin_pause.hpp"
#include "cores/arbiter_client_reader.hpp"
#include "cores/arbiter_path.h"
#include "cores/arbiter_start.hpp"
#include "cores/client_settings.hpp"
#include "cores/futex.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// Looks of an actively waiting thread between two system calls that let others on its core run: some 7 us,
/// of which the call is not much.
constexpr unsigned kLooks = 192;

/// On the very CPU that it waits for, a thread that looks again keeps the holder from releasing it.
unsigned looks_for(int cpu) noexcept {
    return ::sched_getcpu() == cpu ? 1 : kLooks;
}

/// Clients of this process, for fork(2)'s handlers.
struct Registry {
    std::mutex mutex;
    std::vector<ArbiterClient*> clients;
};
Registry& registry() {
    static Registry& all = *new Registry;
    return all;
}

void handle_forks() {
    static const int installed = ::pthread_atfork(
        [] {
            registry().mutex.lock();
            for (ArbiterClient* client : registry().clients) client->before_fork();
        },
        [] {
            for (ArbiterClient* client : registry().clients) client->after_fork_in_parent();
            registry().mutex.unlock();
        },
        [] {
            for (ArbiterClient* client : registry().clients) client->after_fork_in_child();
            registry().mutex.unlock();
        });
    if (installed != 0) throw Error(ErrorCode::kSystem, "no memory for fork handlers");
}

}  // namespace

ArbiterClient::ArbiterClient(ArbiterClientOptions options, Callbacks callbacks)
    : options_(with_settings(std::move(options))), callbacks_(std::move(callbacks)), path_(options_.path) {
    demand_.store(options_.demand);
    if (path_.empty()) {
        char path[HEDDLE_SOCKET_PATH_BYTES];
        char problem[HEDDLE_PROBLEM_BYTES];
        const auto place = heddle_arbiter_path(path, problem);
        if (place == HEDDLE_ARBITER_IMPOSSIBLE) problem_ = problem;
        if (place != HEDDLE_ARBITER_OFF && place != HEDDLE_ARBITER_IMPOSSIBLE) path_ = path;
        on_demand_ = place == HEDDLE_ARBITER_USER;
    }
    handle_forks();
    const std::lock_guard guard(registry().mutex);
    start();
    registry().clients.push_back(this);
}

ArbiterClient::~ArbiterClient() {
    {
        const std::lock_guard guard(registry().mutex);
        std::erase(registry().clients, this);
    }
    stopping_ = true;
    changed();
    if (thread_ != nullptr) {
        (void)::eventfd_write(stop_event_.get(), 1);
        thread_->join();
    }
    show_page(nullptr);
    while (waiters_.load(std::memory_order_acquire) != 0 || readers_.load() != 0) std::this_thread::yield();
    delete link_.load();
}

void ArbiterClient::start() {
    if (path_.empty()) return be_alone();
    try {
        stop_event_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
        if (!stop_event_.valid())
            throw Error(ErrorCode::kLimit, std::string("cannot watch the arbiter: ") + std::strerror(errno));
        Link* opened = connect().release();
        link_.store(opened);
        show_page(opened);
        obey(*opened);
        started_ = true;
        thread_ = std::make_unique<std::thread>([this] { run(); });
    } catch (const std::exception& error) {
        // Also where there can be no thread: a client that nobody speaks for would only be in others' way.
        problem_ = error.what();
        started_ = false;
        show_page(nullptr);
        delete link_.exchange(nullptr);
        be_alone();
    }
}

void ArbiterClient::be_alone() {
    for (const int cpu : options_.allowed)
        if (valid(cpu)) set_state(cpu, kHeld);
}

std::unique_ptr<ArbiterClient::Link> ArbiterClient::connect() {
    try {
        return std::make_unique<Link>(path_, describe());
    } catch (const Error& error) {
        if (!on_demand_ || error.code() != ErrorCode::kUnavailable) throw;
    }
    start_arbiter();
    return std::make_unique<Link>(path_, describe());
}

bool ArbiterClient::managed() const noexcept {
    return link_.load(std::memory_order_relaxed) != nullptr;
}

bool ArbiterClient::fenced() const noexcept {
    const Reader reader(*this);
    const Link* link = reader.link();
    return link != nullptr && link->connection.grant().fenced.load(std::memory_order_acquire) != 0;
}

std::string ArbiterClient::problem() const {
    const std::lock_guard guard(mutex_);
    return problem_;
}

CpuSet ArbiterClient::owned() const {
    const std::lock_guard guard(mutex_);
    const Link* link = link_.load(std::memory_order_relaxed);
    return link != nullptr && link->connection.has_owners() ? options_.owned : CpuSet{};
}

CpuSet ArbiterClient::held() const {
    CpuSet cpus;
    for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
        if (holds(cpu)) cpus.insert(cpu);
    return cpus;
}

bool ArbiterClient::others_wait() const noexcept {
    const Reader reader(*this);
    const Link* link = reader.link();
    return link != nullptr && link->connection.grant().contended.load(std::memory_order_relaxed) != 0;
}

ClientDescription ArbiterClient::describe() const {
    ClientDescription description{options_.name,   demand_.load(),   options_.min, options_.max,
                                  options_.weight, options_.allowed, {},           options_.owned};
    for (int cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
        if (const State now = state(cpu); now == kHeld || now == kTaken || now == kLeaving)
            description.held.insert(cpu);
    return description;
}

void ArbiterClient::set_demand(int cpus, bool soon) {
    demand_.store(std::clamp(cpus, 0, int{HEDDLE_MAX_CPUS}));
    show_demand(soon);
}

/// Others may set another one meanwhile: who shows last shows what holds.
void ArbiterClient::show_demand(bool soon) {
    const Reader reader(*this);
    const Link* link = reader.link();
    if (link == nullptr) return;
    heddle_client_page& page = link->connection.page();
    const heddle_grant_page& grant = link->connection.grant();
    auto shown = static_cast<uint32_t>(demand_.load());
    for (uint32_t before = shown + 1; before != shown; shown = static_cast<uint32_t>(demand_.load())) {
        before = shown;
        page.since_ns.store(
            static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
            std::memory_order_relaxed);
        // seq_cst with the arbiter's stores of `count` and `contended`: it sees our demand, or we see that
        // CPUs are gone or somebody waits.
        page.demand.store(shown);
        HEDDLE_FAILPOINT(client_showed_demand);
    }
    // Where nobody else was active the arbiter does not look, and others may hold what we want now.
    const bool lacks = shown > grant.count.load();
    if (grant.contended.load() == 0 && !lacks) return;
    const uint32_t noticed = grant.noticed.load(std::memory_order_relaxed);
    if (shown > noticed || (soon && shown < noticed)) link->connection.send(HEDDLE_DEMAND);
}

ArbiterClient::Lent ArbiterClient::lend(int cpu) {
    if (!valid(cpu)) return Lent::kNotHeld;
    const std::lock_guard guard(mutex_);
    Link* link = link_.load(std::memory_order_relaxed);
    const State before = state(cpu);
    if (before == kTaken && link != nullptr) {
        set_state(cpu, kPassing);
        link->connection.send(HEDDLE_RELEASED);
        return Lent::kLent;
    }
    if (before != kHeld) return Lent::kNotHeld;
    if (link != nullptr) return release(*link, cpu, kLent);
    set_state(cpu, kLent);
    return Lent::kLent;
}

void ArbiterClient::released(int cpu) {
    if (!valid(cpu)) return;
    const std::lock_guard guard(mutex_);
    Link* link = link_.load(std::memory_order_relaxed);
    if (state(cpu) != kLeaving) return;
    if (link == nullptr) return set_state(cpu, kAbsent);
    (void)release(*link, cpu, kAbsent);
    say_left(*link);
}

/// Under mutex_: the one place where a CPU leaves this process.
ArbiterClient::Lent ArbiterClient::release(Link& link, int cpu, State after_lending) {
    heddle_client_page& page = link.connection.page();
    const uint64_t named = link.connection.grant().successor[cpu].load(std::memory_order_acquire);
    const uint32_t generation = heddle_word_generation(named);
    const uint32_t successor = heddle_word_client(named);
    HEDDLE_FAILPOINT(client_releases);
    // The CPU is the successor's from here on: seq_cst with its and the arbiter's reads of the word.
    page.release[cpu].exchange(heddle_word(generation, successor != 0 ? successor : HEDDLE_LENT));
    HEDDLE_FAILPOINT(client_released);
    set_state(cpu, successor != 0 ? kAbsent : after_lending);
    if (successor == 0) {
        if (after_lending == kAbsent || link.connection.grant().contended.load() != 0)
            link.connection.send(HEDDLE_RELEASED);
        return Lent::kLent;
    }
    page.bell[cpu].fetch_add(1);
    HEDDLE_FAILPOINT(client_rang);
    const auto peer = std::ranges::find(link.peers, successor, [](const auto& p) { return p->client; });
    const heddle_client_page* theirs = peer == link.peers.end() ? nullptr : &(*peer)->words();
    // seq_cst with the sleeper's counting itself before it looks: it sees the word, or we see the sleeper.
    if (theirs == nullptr || theirs->sleepers.load() != 0) futex_wake(page.bell[cpu], INT_MAX);
    // A message would keep this core busy while somebody waits for it: the arbiter looks by itself soon.
    if (theirs == nullptr || theirs->watched.load(std::memory_order_relaxed) == 0)
        link.connection.send(HEDDLE_RELEASED);
    HEDDLE_FAILPOINT(client_handed_over);
    return Lent::kHandedOver;
}

bool ArbiterClient::reclaim(int cpu) {
    if (!valid(cpu)) return false;
    const std::lock_guard guard(mutex_);
    const Link* link = link_.load(std::memory_order_relaxed);
    if (state(cpu) == kPassing) {
        // Confirmed or taken away meanwhile: then it is on its way, and the link thread knows soon.
        if (link == nullptr || heddle_word_generation(link->connection.grant().lender[cpu].load()) !=
                                   taken_generation_[static_cast<size_t>(cpu)])
            return false;
        set_state(cpu, kTaken);
        return true;
    }
    if (state(cpu) != kLent) {
        if (withdrawn_.contains(cpu)) wanted_back_.insert(cpu);
        return false;
    }
    if (link != nullptr) {
        HEDDLE_FAILPOINT(client_reclaims);
        std::atomic<uint64_t>& word = link->connection.page().release[cpu];
        uint64_t lent = heddle_word(heddle_word_generation(word.load()), HEDDLE_LENT);
        // One compare-and-swap decides between us and the arbiter.
        if (!word.compare_exchange_strong(lent, heddle_word(heddle_word_generation(lent), HEDDLE_HELD))) {
            set_state(cpu, kAbsent);
            return false;
        }
        // Asked back meanwhile: what we do not know yet has priority.
        const std::optional<ArbiterConnection::Grant> granted = link->connection.read_grant();
        if (!granted || !granted->cpus.contains(cpu)) {
            word.store(heddle_word(heddle_word_generation(lent), HEDDLE_LENT));
            set_state(cpu, kAbsent);
            link->connection.send(HEDDLE_RELEASED);
            return false;
        }
    }
    HEDDLE_FAILPOINT(client_reclaimed);
    set_state(cpu, kHeld);
    return true;
}

/// The lender's word says that the CPU is ours. Its release word is read before our lender word: see
/// docs/HANDOVER.md, "A lender that was stopped".
bool ArbiterClient::handed(const Link& link, int cpu, uint64_t& lender) const noexcept {
    lender = link.connection.grant().lender[cpu].load(std::memory_order_relaxed);
    if (heddle_word_client(lender) == 0) return false;
    const Peer* peer = link.watched[static_cast<size_t>(cpu)].load();
    if (peer == nullptr || peer->client != heddle_word_client(lender)) return false;
    const uint32_t generation = heddle_word_generation(lender);
    const uint64_t mine = heddle_word(generation, link.connection.client());
    // A hand-over counts once: one that the arbiter has turned into a grant, which we may have released
    // since, is older than that grant.
    const uint64_t own = link.connection.grant().successor[cpu].load(std::memory_order_acquire);
    if (static_cast<int32_t>(generation - heddle_word_generation(own)) <= 0) return false;
    return peer->words().release[cpu].load() == mine && link.connection.grant().lender[cpu].load() == lender;
}

/// Writes also where the CPU is not ours: a thread that waits does this from time to time, and has all that
/// it takes on its core when the CPU comes. The link thread has used it, too, and may have done so on another
/// one.
bool ArbiterClient::take_from(Link& link, int cpu) {
    const std::lock_guard guard(mutex_);
    if (state(cpu) != kAbsent || link_.load(std::memory_order_relaxed) != &link) return false;
    uint64_t lender;
    const bool ours = handed(link, cpu, lender);
    if (ours) HEDDLE_FAILPOINT(client_takes);
    taken_generation_[static_cast<size_t>(cpu)] = heddle_word_generation(lender);
    set_state(cpu, ours ? kTaken : kAbsent);
    if (ours) HEDDLE_FAILPOINT(client_took);
    return ours;
}

bool ArbiterClient::take(int cpu) {
    if (!valid(cpu) || state(cpu) != kAbsent) return false;
    const Reader reader(*this);
    Link* link = reader.link();
    uint64_t lender;
    return link != nullptr && handed(*link, cpu, lender) && take_from(*link, cpu);
}

bool ArbiterClient::wait_for(int cpu, Nanoseconds active, Time until) {
    if (!valid(cpu)) return false;
    const Waiter waiter(*this);
    const auto now = [] {
        return std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now());
    };
    const Time asleep_from = active == Nanoseconds::max() ? Time::max() : now() + active;
    for (unsigned turn = 1;; ++turn) {
        const uint32_t rung = bell_.load();
        if (stopping_) return false;
        if (holds(cpu)) return true;
        const Reader reader(*this);
        Link* link = reader.link();
        if (link == nullptr) {
            if (now() >= until) return false;
            futex_wait(bell_, rung, until);
            continue;
        }
        heddle_client_page& page = link->connection.page();
        show_watched(page, true);
        if (active > Nanoseconds(0) && take_from(*link, cpu)) return true;
        uint64_t lender;
        bool seen = handed(*link, cpu, lender);
        const unsigned most = active > Nanoseconds(0) ? looks_for(cpu) : 1;
        for (unsigned looks = 1; looks < most && !seen; ++looks) {
            spin_pause();
            seen = handed(*link, cpu, lender);
        }
        if (seen && take_from(*link, cpu)) return true;
        const Time time = now();
        if (time >= until) {
            show_watched(page, false);
            return false;
        }
        if (time < asleep_from) {
            std::this_thread::yield();  // the lender may be on this very core
            continue;
        }
        const Peer* peer = link->watched[static_cast<size_t>(cpu)].load();
        if (peer == nullptr) {
            futex_wait(bell_, rung, until);
            continue;
        }
        std::atomic<uint32_t>& sleepers = page.sleepers;
        sleepers.fetch_add(1);  // before the look at the word, see release()
        const std::atomic<uint32_t>& bell = peer->words().bell[cpu];
        const uint32_t heard = bell.load();
        if (!handed(*link, cpu, lender)) futex_wait_either(bell, heard, bell_, rung, until);
        sleepers.fetch_sub(1);
    }
}

void ArbiterClient::changed() {
    bell_.fetch_add(1);
    futex_wake(bell_, INT_MAX);
}

}  // namespace heddle
