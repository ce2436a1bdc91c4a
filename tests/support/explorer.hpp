// Explorer: runs real code of heddle through the interleavings of a few threads, and through what C++'s
// memory model lets them read.
//
// The code is compiled with -fsanitize=thread, but linked with explorer_hooks.cpp in place of that
// sanitizer's library: each atomic access, lock and futex then asks here who goes on, and what a load may
// still read of older stores. Plain accesses that nothing orders are races, as the sanitizer defines them.
// Threads are fibers of the calling thread; a scenario is run again and again, each time along another
// branch, depth first, until all are done within the bounds: so many switches away from a thread that could
// go on, and so many loads of something older than the newest.
//
// What it simplifies: thread-local variables are those of the one thread that there is; seq_cst fences
// synchronise with each other (C++ promises a little less), and a compare-and-exchange never fails for
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle::test {

/// A rule that every access breaks: what the code relies on, and a test must miss.
enum class Fault {
    kNone,
    kRelaxedLoads,          ///< acquire is relaxed
    kRelaxedStores,         ///< release is relaxed
    kNoFences,              ///< fences do nothing
    kNotSequential,         ///< seq_cst is acquire and release
    kPlainCompareExchange,  ///< compare, and store in a second step
    kPlainReadModifyWrite,  ///< exchange, fetch_add: read, and store in a second step
    kLostWakes,             ///< futexes and condition variables wake nobody
    kNoLocks,               ///< pthread mutexes let everybody in
};

struct Bounds {
    int preemptions = 2;
    int stale_reads = 1;
    long runs = 200'000;
};

struct Explored {
    std::string problem;  ///< what went wrong, and the accesses that led to it; "" where nothing did
    long runs = 0;
    bool complete = false;  ///< nothing within the bounds was left out
};

class Explorer {
  public:
    explicit Explorer(Bounds bounds, Fault fault = Fault::kNone);
    ~Explorer();
    Explorer(const Explorer&) = delete;
    Explorer& operator=(const Explorer&) = delete;

    /// `scenario` sets up one run: it adds threads, and what is to be checked after them.
    Explored explore(const std::function<void(Explorer&)>& scenario);
    /// Adds a thread, also from within one; returns its number, for join().
    int thread(std::function<void()> body);
    void join(int thread);
    void finally(std::function<void()> check) { check_ = std::move(check); }
    /// For what a scenario itself finds wrong.
    void fail(const std::string& what);

    /// The one that explores now, or null; also null while a hook is at work.
    [[nodiscard]] static Explorer* current() { return busy_ ? nullptr : exploring_; }
    [[nodiscard]] int self() const { return running_; }

    // For the hooks. Orders are those of __ATOMIC_SEQ_CST and its like. Values are of `size` bytes.
    uint64_t load(uintptr_t address, unsigned size, int order);
    void store(uintptr_t address, unsigned size, uint64_t value, int order);
    uint64_t modify(uintptr_t address, unsigned size, int order, uint64_t (*change)(uint64_t, uint64_t),
                    uint64_t operand);
    /// True where it was `expected`, which then is what was read.
    bool compare_exchange(uintptr_t address, unsigned size, uint64_t& expected, uint64_t desired, int order,
                          int failure_order);
    void fence(int order);
    /// membarrier(2): everybody passes a full fence now.
    void fence_everywhere();
    void plain(uintptr_t address, unsigned size, bool write) {
        access(address, size, write ? Access::kWrite : Access::kRead);
    }
    void forget(uintptr_t address, size_t size);
    /// What is there is unmapped, or destroyed: an access is a fault, until forget().
    void gone(uintptr_t address, size_t size);
    void lock(uintptr_t mutex);
    bool try_lock(uintptr_t mutex);
    void unlock(uintptr_t mutex);
    /// A word to sleep on, while it has this value.
    struct Word {
        uintptr_t address;
        uint32_t value;
    };
    /// Sleeps while both words have their values, until one of them is woken. False: it did not sleep, or its
    /// time was over.
    bool sleep(Word one, Word other, bool timed);
    bool sleep(Word word, bool timed) { return sleep(word, word, timed); }
    /// The same in one step with what came before: a condition variable's wait after its unlock.
    bool sleep_at_once(uintptr_t address, bool timed) { return sleep_at_once(address, address, timed); }
    void wake(uintptr_t address, int count);
    void yield();

  private:
    static constexpr int kMostThreads = 8;
    using Clock = std::array<uint32_t, kMostThreads>;
    struct Fiber;
    struct Store {
        uint64_t value = 0;
        int thread = 0;
        uint32_t time = 0;  // of that thread
        Clock released{};   // what an acquire load that reads it sees
    };
    struct Location {
        std::vector<Store> stores;
        std::array<size_t, kMostThreads> seen{};  // a thread does not read what is older than it has read
        size_t sequential = 0;                    // the newest seq_cst store
    };
    struct Shadow {  // of four bytes: a bit each
        uint8_t written = 0;
        int writer = 0;
        uint32_t write_time = 0;
        std::array<uint8_t, kMostThreads> read{};
        Clock read_time{};
    };
    enum class Access { kRead, kWrite, kAtomic };
    enum class Why { kMayPreempt, kYields, kCannotGoOn };

    class Busy;
    static void enter();
    void access(uintptr_t address, unsigned size, Access kind);
    bool sleep_at_once(uintptr_t one, uintptr_t other, bool timed);
    void pass_fence(int thread, int order);
    void run_once(const std::function<void(Explorer&)>& scenario);
    int choose(int options);
    bool next_branch();
    void schedule(Why why);
    void switch_to(int thread);
    void stop_run(const std::string& problem);
    void note(const char* what, uintptr_t address, uint64_t value);
    Location& location(uintptr_t address, unsigned size);
    void put(Location& at, uintptr_t address, unsigned size, uint64_t value, int order, const Clock& before);
    uint64_t read(Location& at, size_t index, int order);
    [[nodiscard]] int weakened(int order) const;
    Clock& clock();

    Bounds bounds_;
    Fault fault_;
    std::function<void()> check_;
    std::vector<std::unique_ptr<Fiber>> fibers_;  // 0: the scenario itself
    int running_ = 0, threads_ = 0;
    std::unordered_map<uintptr_t, Location> locations_;
    std::unordered_map<uintptr_t, Shadow> shadows_;
    std::vector<std::pair<uintptr_t, uintptr_t>> gone_;  // from, to
    struct Mutex {
        int owner = -1;
        Clock released{};
    };
    std::unordered_map<uintptr_t, Mutex> mutexes_;
    Clock sequential_{};
    std::vector<std::pair<int, int>> choices_;  // taken, of how many
    size_t next_choice_ = 0;
    int preemptions_ = 0, stale_reads_ = 0;
    long steps_ = 0, steps_alone_ = 0;
    struct Step {
        int thread;
        const char* what;
        uintptr_t address;
        uint64_t value;
    };
    std::vector<Step> trace_;
    std::string problem_;
    static inline Explorer* exploring_ = nullptr;
    static inline bool busy_ = false;
};

}  // namespace heddle::test
