#include "support/explorer.hpp"

#include <fmt/format.h>
#include <sys/single_threaded.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

namespace heddle::test {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr long kMostSteps = 50'000;    // of a run: more, and it never ends
constexpr long kMostStepsAlone = 200;  // of a thread: then it waits for something, and others go on
constexpr uintptr_t kThreadLocalBytes = 65'536;
constexpr size_t kTraceShown = 120;

bool acquires(int order) {
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}
bool releases(int order) {
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}
template <class Clock>
void join_clocks(Clock& into, const Clock& from) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}
uint64_t memory(uintptr_t address, unsigned size) {
    uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(address), size);  // x86, ARM: little-endian
    return value;
}

}  // namespace

/// Where the explorer itself runs: what it calls may be instrumented too.
class Explorer::Busy {
  public:
    Busy() : before_(busy_) { busy_ = true; }
    ~Busy() { busy_ = before_; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

  private:
    bool before_;
};

struct Explorer::Fiber {
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    bool done = true;
    bool blocked = false, timed = false, timed_out = false;
    uintptr_t waits_on = 0, or_on = 0;
    Clock clock{}, acquired{}, released{};  // its own; by relaxed loads, for a fence; as of its last fence
    uintptr_t last_load = 0;
    uint64_t last_value = 0;
};

Explorer::Explorer(Bounds bounds, Fault fault) : bounds_(bounds), fault_(fault) {
    for (int i = 0; i < kMostThreads; ++i) fibers_.push_back(std::make_unique<Fiber>());
    __libc_single_threaded = 0;  // shared pointers count with atomics where this says so
}
Explorer::~Explorer() = default;

Explorer::Clock& Explorer::clock() {
    return fibers_[static_cast<size_t>(running_)]->clock;
}

Explored Explorer::explore(const std::function<void(Explorer&)>& scenario) {
    Explored explored;
    choices_.clear();
    do {
        run_once(scenario);
        ++explored.runs;
        if (!problem_.empty()) {
            explored.problem = problem_;
            return explored;
        }
    } while (next_branch() && explored.runs < bounds_.runs);
    explored.complete = choices_.empty();
    return explored;
}

void Explorer::run_once(const std::function<void(Explorer&)>& scenario) {
    {
        const Busy busy;
        locations_.clear();
        shadows_.clear();
        gone_.clear();
        mutexes_.clear();
        trace_.clear();
        sequential_ = {};
        next_choice_ = 0;
        preemptions_ = stale_reads_ = 0;
        steps_ = 0;
        running_ = threads_ = 0;
        for (auto& fiber : fibers_) {
            fiber->done = true;
            fiber->blocked = false;
            fiber->clock = fiber->acquired = fiber->released = {};
            fiber->last_load = 0;
        }
        fibers_[0]->clock[0] = 1;
    }
    exploring_ = this;
    scenario(*this);
    schedule(Why::kCannotGoOn);  // until all are done, or something went wrong
    if (problem_.empty()) {
        for (auto& fiber : fibers_) join_clocks(fibers_[0]->clock, fiber->clock);
        if (check_) check_();
    }
    {
        const Busy busy;
        // What the fibers of an unfinished run hold is in use for ever.
        for (auto& fiber : fibers_) {
            if (!problem_.empty()) (void)new std::function<void()>(std::move(fiber->body));
            fiber->body = nullptr;
        }
        check_ = nullptr;
    }
    exploring_ = nullptr;
}

int Explorer::thread(std::function<void()> body) {
    const Busy busy;
    const int number = ++threads_;
    if (number >= kMostThreads) {
        stop_run("the scenario has too many threads");
        return 0;
    }
    Fiber& fiber = *fibers_[static_cast<size_t>(number)];
    fiber.body = std::move(body);
    fiber.done = fiber.blocked = false;
    fiber.clock = clock();
    ++clock()[static_cast<size_t>(running_)];
    fiber.clock[static_cast<size_t>(number)] = 1;
    if (fiber.stack == nullptr) fiber.stack = std::make_unique<char[]>(kStackBytes);
    ::getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    ::makecontext(&fiber.context, &Explorer::enter, 0);
    return number;
}

void Explorer::enter() {
    Explorer& self = *exploring_;
    Fiber& fiber = *self.fibers_[static_cast<size_t>(self.running_)];
    busy_ = false;
    fiber.body();
    fiber.done = true;
    for (auto& other : self.fibers_)
        if (other->waits_on == reinterpret_cast<uintptr_t>(&fiber)) other->blocked = false;
    self.schedule(Why::kCannotGoOn);
}

void Explorer::join(int thread) {
    Fiber& other = *fibers_[static_cast<size_t>(thread)];
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    if (!other.done) {
        self.blocked = true;
        self.timed = false;
        self.waits_on = self.or_on = reinterpret_cast<uintptr_t>(&other);
        schedule(Why::kCannotGoOn);
    }
    join_clocks(self.clock, other.clock);
}

/// Depth first: the last choice that has another option takes it.
bool Explorer::next_branch() {
    while (!choices_.empty() && choices_.back().first + 1 >= choices_.back().second) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().first;
    return true;
}

int Explorer::choose(int options) {
    if (options <= 1) return 0;
    if (next_choice_ == choices_.size()) choices_.emplace_back(0, options);
    return choices_[next_choice_++].first;
}

void Explorer::schedule(Why why) {
    const Busy busy;
    std::vector<int> others;
    int unfinished = 0;
    for (int i = 1; i <= threads_; ++i) {
        const Fiber& fiber = *fibers_[static_cast<size_t>(i)];
        unfinished += !fiber.done;
        if (!fiber.done && !fiber.blocked && i != running_) others.push_back(i);
    }
    if (why != Why::kCannotGoOn && running_ == 0) return;  // the scenario sets up, or checks
    if (++steps_ > kMostSteps) return stop_run("it never ends");
    if (++steps_alone_ > kMostStepsAlone && why == Why::kMayPreempt) why = Why::kYields;
    if (why == Why::kMayPreempt) {
        const bool may = preemptions_ < bounds_.preemptions;
        const int chosen = choose(may ? 1 + static_cast<int>(others.size()) : 1);
        if (chosen == 0) return;
        ++preemptions_;
        return switch_to(others[static_cast<size_t>(chosen - 1)]);
    }
    if (!others.empty()) {
        // Who yields may all the same go on at once.
        const bool may = why == Why::kYields && preemptions_ < bounds_.preemptions;
        const auto chosen = static_cast<size_t>(choose(static_cast<int>(others.size()) + may));
        preemptions_ += chosen == others.size();
        return chosen == others.size() ? void() : switch_to(others[chosen]);
    }
    if (why == Why::kYields) return;
    for (int i = 1; i <= threads_; ++i) {  // nothing happens any more: timeouts do
        Fiber& fiber = *fibers_[static_cast<size_t>(i)];
        if (fiber.done || !fiber.blocked || !fiber.timed) continue;
        fiber.blocked = false;
        fiber.timed_out = true;
        return i == running_ ? void() : switch_to(i);
    }
    if (unfinished > 0 && problem_.empty()) return stop_run("threads sleep for ever");
    if (running_ != 0) switch_to(0);
}

void Explorer::switch_to(int thread) {
    const int from = running_;
    running_ = thread;
    steps_alone_ = 0;
    const bool was_busy = busy_;
    ::swapcontext(&fibers_[static_cast<size_t>(from)]->context,
                  &fibers_[static_cast<size_t>(thread)]->context);
    busy_ = was_busy;
}

void Explorer::fail(const std::string& what) {
    stop_run(what);
}

void Explorer::stop_run(const std::string& problem) {
    const Busy busy;
    if (!problem_.empty()) return;
    problem_ = problem;
    const size_t first = trace_.size() > kTraceShown ? trace_.size() - kTraceShown : 0;
    for (size_t i = first; i < trace_.size(); ++i)
        problem_ +=
            fmt::format("\n  {:{}}thread {} {} {:#x} {:#x}", "", 24 * (trace_[i].thread - 1),
                        trace_[i].thread, trace_[i].what, trace_[i].address & 0xffff, trace_[i].value);
    if (running_ != 0) switch_to(0);
}

void Explorer::note(const char* what, uintptr_t address, uint64_t value) {
    const Busy busy;
    if (running_ != 0) trace_.push_back({running_, what, address, value});
}

int Explorer::weakened(int order) const {
    if (fault_ == Fault::kNotSequential && order == __ATOMIC_SEQ_CST) order = __ATOMIC_ACQ_REL;
    if (fault_ == Fault::kRelaxedLoads && acquires(order))
        return releases(order) ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
    if (fault_ == Fault::kRelaxedStores && releases(order))
        return acquires(order) ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
    return order;
}

Explorer::Location& Explorer::location(uintptr_t address, unsigned size) {
    const Busy busy;
    Location& at = locations_[address];
    if (at.stores.empty()) at.stores.push_back({memory(address, size), 0, 0, {}});
    return at;
}

uint64_t Explorer::read(Location& at, size_t index, int order) {
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    const Store& store = at.stores[index];
    join_clocks(acquires(order) ? self.clock : self.acquired, store.released);
    at.seen[static_cast<size_t>(running_)] = std::max(at.seen[static_cast<size_t>(running_)], index);
    return store.value;
}

/// `before`: what an acquire of the value before would see, which a read-modify-write passes on.
void Explorer::put(Location& at, uintptr_t address, unsigned size, uint64_t value, int order,
                   const Clock& before) {
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    Store store{value, running_, self.clock[static_cast<size_t>(running_)], before};
    join_clocks(store.released, releases(order) ? self.clock : self.released);
    ++self.clock[static_cast<size_t>(running_)];  // what comes now is after what was released
    at.stores.push_back(store);
    at.seen[static_cast<size_t>(running_)] = at.stores.size() - 1;
    if (order == __ATOMIC_SEQ_CST) at.sequential = at.stores.size() - 1;
    std::memcpy(reinterpret_cast<void*>(address), &value, size);
}

uint64_t Explorer::load(uintptr_t address, unsigned size, int order) {
    order = weakened(order);
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    access(address, size, Access::kAtomic);
    // Who reads the same again waits for it: let others change it, and see the change.
    const bool again =
        self.last_load == address && location(address, size).stores.back().value == self.last_value;
    schedule(again ? Why::kYields : Why::kMayPreempt);
    const Busy busy;
    Location& at = location(address, size);
    size_t oldest = at.seen[static_cast<size_t>(running_)];
    if (order == __ATOMIC_SEQ_CST) oldest = std::max(oldest, at.sequential);
    for (size_t i = at.stores.size() - 1; i > oldest; --i)
        if (at.stores[i].time <= self.clock[static_cast<size_t>(at.stores[i].thread)]) oldest = i;
    size_t index = at.stores.size() - 1;
    if (running_ != 0 && stale_reads_ < bounds_.stale_reads && self.last_load != address && oldest < index) {
        const int older = choose(static_cast<int>(index - oldest) + 1);
        stale_reads_ += older > 0;
        index -= static_cast<size_t>(older);
    }
    const uint64_t value = read(at, index, order);
    self.last_load = address;
    self.last_value = value;
    note("loads", address, value);
    return value;
}

void Explorer::store(uintptr_t address, unsigned size, uint64_t value, int order) {
    order = weakened(order);
    schedule(Why::kMayPreempt);
    access(address, size, Access::kAtomic);
    const Busy busy;
    fibers_[static_cast<size_t>(running_)]->last_load = 0;
    put(location(address, size), address, size, value, order, {});
    note("stores", address, value);
}

uint64_t Explorer::modify(uintptr_t address, unsigned size, int order, uint64_t (*change)(uint64_t, uint64_t),
                          uint64_t operand) {
    order = weakened(order);
    schedule(Why::kMayPreempt);
    access(address, size, Access::kAtomic);
    Location* at = &location(address, size);
    const uint64_t before = read(*at, at->stores.size() - 1, order);
    const Clock released = at->stores.back().released;
    if (fault_ == Fault::kPlainReadModifyWrite) schedule(Why::kMayPreempt);
    const Busy busy;
    fibers_[static_cast<size_t>(running_)]->last_load = 0;
    at = &location(address, size);
    put(*at, address, size, change(before, operand), order, released);
    note("modifies", address, change(before, operand));
    return before;
}

bool Explorer::compare_exchange(uintptr_t address, unsigned size, uint64_t& expected, uint64_t desired,
                                int order, int failure_order) {
    order = weakened(order);
    schedule(Why::kMayPreempt);
    access(address, size, Access::kAtomic);
    Location* at = &location(address, size);
    const Store newest = at->stores.back();
    const bool same = newest.value == expected;
    expected = read(*at, at->stores.size() - 1, same ? order : weakened(failure_order));
    fibers_[static_cast<size_t>(running_)]->last_load = 0;
    note(same ? "swaps" : "does not swap", address, same ? desired : expected);
    if (!same) return false;
    if (fault_ == Fault::kPlainCompareExchange) schedule(Why::kMayPreempt);
    const Busy busy;
    put(location(address, size), address, size, desired, order, newest.released);
    return true;
}

void Explorer::fence(int order) {
    if (fault_ == Fault::kNoFences) return;
    pass_fence(running_, weakened(order));
}

void Explorer::fence_everywhere() {
    schedule(Why::kMayPreempt);
    if (fault_ == Fault::kNoFences) return;
    const Busy busy;
    pass_fence(running_, __ATOMIC_SEQ_CST);
    const Clock before = fibers_[static_cast<size_t>(running_)]->released;
    for (int i = 1; i <= threads_; ++i) {
        if (i == running_) continue;
        // What the other did before that comes before what this one does after, and the other way round; two
        // others are not ordered by it.
        Fiber& other = *fibers_[static_cast<size_t>(i)];
        join_clocks(clock(), other.clock);
        join_clocks(other.clock, before);
        pass_fence(i, __ATOMIC_ACQ_REL);
    }
}

void Explorer::pass_fence(int thread, int order) {
    const Busy busy;
    Fiber& self = *fibers_[static_cast<size_t>(thread)];
    if (acquires(order)) join_clocks(self.clock, self.acquired);
    if (order == __ATOMIC_SEQ_CST) {
        join_clocks(self.clock, sequential_);
        join_clocks(sequential_, self.clock);
    }
    if (!releases(order)) return;
    self.released = self.clock;
    ++self.clock[static_cast<size_t>(thread)];
}

void Explorer::access(uintptr_t address, unsigned size, Access kind) {
    const Busy busy;
    const auto self = static_cast<size_t>(running_);
    const Clock& now = fibers_[self]->clock;
    // Fibers share what is thread-local, errno above all. Their stacks may lie right beside it.
    const auto thread_local_end = reinterpret_cast<uintptr_t>(__builtin_thread_pointer()) + 4096;
    const bool on_a_stack = std::ranges::any_of(fibers_, [&](const auto& fiber) {
        const auto stack = reinterpret_cast<uintptr_t>(fiber->stack.get());
        return stack != 0 && address >= stack && address < stack + kStackBytes;
    });
    if (!on_a_stack && address < thread_local_end && address + kThreadLocalBytes >= thread_local_end) return;
    for (const auto& [from, to] : gone_)
        if (address < to && address + size > from)
            return stop_run(fmt::format("thread {} uses {:#x}, which is gone", running_, address & 0xffff));
    for (uintptr_t part = address & ~uintptr_t{3}; part < address + size; part += 4) {
        const uintptr_t first = std::max(part, address), end = std::min(part + 4, address + size);
        const auto bytes = static_cast<uint8_t>(((1U << (end - first)) - 1) << (first - part));
        Shadow& shadow = shadows_[part];
        bool race = (shadow.written & bytes) != 0 && shadow.writer != running_ &&
                    shadow.write_time > now[static_cast<size_t>(shadow.writer)];
        for (size_t i = 0; i < kMostThreads && kind == Access::kWrite; ++i)
            race |= i != self && (shadow.read[i] & bytes) != 0 && shadow.read_time[i] > now[i];
        if (race)
            return stop_run(fmt::format("thread {} {} {:#x}, and nothing orders that after another's access",
                                        running_, kind == Access::kWrite ? "writes" : "reads",
                                        address & 0xffff));
        if (kind == Access::kWrite) {
            shadow = {bytes, running_, now[self], {}, {}};
        } else if (kind == Access::kRead) {
            shadow.read[self] |= bytes;
            shadow.read_time[self] = now[self];
        }
    }
    if (kind == Access::kWrite) locations_.erase(address);
}

void Explorer::forget(uintptr_t address, size_t size) {
    const Busy busy;
    const uintptr_t end = address + size;
    std::erase_if(gone_, [&](const auto& range) { return range.first < end && range.second > address; });
    const auto inside = [&](const auto& entry) {
        return entry.first >= (address & ~uintptr_t{3}) && entry.first < end;
    };
    if (size > shadows_.size() + locations_.size()) {  // fewer than the range has places
        std::erase_if(shadows_, inside);
        std::erase_if(locations_, inside);
        return;
    }
    for (uintptr_t part = address & ~uintptr_t{3}; part < end; part += 4) {
        shadows_.erase(part);
        for (uintptr_t at = part; at < part + 4; ++at) locations_.erase(at);
    }
}

void Explorer::gone(uintptr_t address, size_t size) {
    const Busy busy;
    gone_.emplace_back(address, address + size);
}

void Explorer::lock(uintptr_t mutex) {
    schedule(Why::kMayPreempt);
    if (fault_ == Fault::kNoLocks) return;
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    self.last_load = 0;
    const auto owned = [&] {
        const Busy busy;
        return mutexes_[mutex].owner >= 0;
    };
    while (owned()) {
        self.blocked = true;
        self.timed = false;
        self.waits_on = self.or_on = mutex;
        schedule(Why::kCannotGoOn);
    }
    const Busy busy;
    Mutex& taken = mutexes_[mutex];
    taken.owner = running_;
    join_clocks(self.clock, taken.released);
    note("locks", mutex, 0);
}

bool Explorer::try_lock(uintptr_t mutex) {
    schedule(Why::kMayPreempt);
    if (fault_ == Fault::kNoLocks) return true;
    const Busy busy;
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    self.last_load = 0;
    Mutex& taken = mutexes_[mutex];
    note("tries to lock", mutex, taken.owner < 0 ? 1 : 0);
    if (taken.owner >= 0) return false;
    taken.owner = running_;
    join_clocks(self.clock, taken.released);
    return true;
}

void Explorer::unlock(uintptr_t mutex) {
    if (fault_ == Fault::kNoLocks) return;
    const Busy busy;
    Mutex& given = mutexes_[mutex];
    given.owner = -1;
    given.released = clock();
    ++clock()[static_cast<size_t>(running_)];
    for (auto& fiber : fibers_)
        if (fiber->blocked && fiber->waits_on == mutex) fiber->blocked = false;
    note("unlocks", mutex, 0);
}

bool Explorer::sleep(Word one, Word other, bool timed) {
    schedule(Why::kMayPreempt);
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    self.last_load = 0;
    for (const Word& word : {one, other})
        if (location(word.address, 4).stores.back().value != word.value) return false;
    return sleep_at_once(one.address, other.address, timed);
}

bool Explorer::sleep_at_once(uintptr_t one, uintptr_t other, bool timed) {
    Fiber& self = *fibers_[static_cast<size_t>(running_)];
    note("sleeps on", one, 0);
    self.blocked = true;
    self.timed = timed;
    self.timed_out = false;
    self.waits_on = one;
    self.or_on = other;
    schedule(Why::kCannotGoOn);
    return !self.timed_out;
}

void Explorer::wake(uintptr_t address, int count) {
    schedule(Why::kMayPreempt);
    note("wakes", address, 0);
    if (fault_ == Fault::kLostWakes) return;
    for (auto& fiber : fibers_)
        if (!fiber->done && fiber->blocked && (fiber->waits_on == address || fiber->or_on == address) &&
            count-- > 0)
            fiber->blocked = false;
}

void Explorer::yield() {
    schedule(Why::kYields);
}

}  // namespace heddle::test
