// Network: a program that runs.
//
// Records that are pushed flow through the program's last net on the native engine's workers, and out through
// a function. Parts come into being when the first record reaches them. Each box has a bounded queue; who
// fills it waits (pressure.hpp), in the end the one who pushes. push() and settle() are for one thread
// or task; the functions given are called by any, one call at a time each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "streams/box.hpp"
#include "streams/syntax.hpp"

namespace heddle::streams {

/// Is told of a record before a part takes it, or when it leaves it. What it throws fails the record.
using Observe = std::function<void(const Record&, bool before)>;

struct NetworkOptions {
    int workers = 0;                        ///< at most; 0: as many as CPUs
    size_t queue_bound = 512;               ///< records before a box
    size_t stack_bytes = size_t{1} << 20;   ///< that boxes run on, as RuntimeOptions has it
    size_t most_stages = 1'000'000;         ///< of one star, and replicas of one split
    size_t most_nested = 10'000;            ///< nets inside of each other, as of one that uses itself
    uint32_t most_turns = 100'000'000;      ///< that a record goes back in feedbacks, with all it comes of
    size_t most_waiting = size_t{1} << 22;  ///< records before a box whose queue has to grow, or in one flow
    BoxFinder boxes;
    /// Unset: one at a time.
    std::function<BoxCalls(const BoxDefinition&)> calls;
    std::function<void(Record)> output;
    /// A record that failed, where, and why: the rest goes on. Unset: the first one stops the network.
    std::function<void(Record, const std::string& why)> dead_letter;
    /// Called once, when the first failure stops the network, by the thread that has it. Must not throw.
    std::function<void()> on_failure;
    /// What is to be told of the records of a box or net that is at that place and whose metadata have the
    /// key "observer"; null: nothing. Unset: nothing is observed.
    std::function<Observe(const std::string& position, const Metadata& metadata)> observers;
};

class Network {
  public:
    /// `program` must outlive it. Throws what the box finder throws, and kBadInput for a net that was only
    /// declared.
    Network(const Program& program, NetworkOptions options);
    /// Waits for what is under way.
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// Calls it in a task of the network's, and returns when it has returned: what it pushes, and what comes
    /// of that at once, is its workers' work. Throws what it throws, and kLimit where there is no memory for
    /// it.
    void feed(const std::function<void()>& source);
    /// May wait until there is room. Throws the first failure, once.
    void push(Record record);
    /// Until all that was pushed has left, or lies in a synchrocell. More may be pushed. Throws the first
    /// failure, once.
    void settle();

    /// What is under way is dropped, when the calls of boxes that run have returned; so is what is pushed
    /// from now on. Any thread.
    void cancel();
    /// How many records cancel() or a failure has dropped so far. Any thread.
    [[nodiscard]] uint64_t dropped() const;

    /// What is left in synchrocells, and queues that had to grow: for people, a line each.
    [[nodiscard]] std::vector<std::string> remarks() const;
    /// Boxes, filters, cells and so on that were made so far, replicas counted each.
    [[nodiscard]] size_t part_count() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace heddle::streams
