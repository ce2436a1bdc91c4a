// Networks of streams, composed in C++: S-Net's combinators (docs/STREAMS.md) over boxes that are functions.
//
//     using namespace heddle::snet;
//     using Line = Field<"line", std::string>;
//     using Word = Field<"word", std::string>;
//     using Size = Tag<"size">;
//     const Net net = box<In<Line>, Out<Word>>("split", [](Emit<Out<Word>>& emit, const std::string& line) {
//                         for (...) emit(word);
//                     }) >>
//                     box<In<Word>, Out<Word, Size>>("measure", [](std::string word) {
//                         const int size = static_cast<int>(word.size());
//                         return std::tuple(std::move(word), size);
//                     });
//     Network network(net);
//     network.push(record<Line>("the first line"));
//     network.close();
//     while (std::optional<Record> out = network.pull()) out->get<Word>();
//
// A Net is a value, a description; a Network is one that runs, on the native engine's workers. What a net
// says is what S-Net says of the same words: text() is the program. Guards and filters are S-Net's own, so
// that they are checked, drawn and told as those of programs are.
//
// A box's function is called for several records at once, by any thread, where BoxOptions say so, or where a
// network has several of the box: one that a net names twice, or that is inside of a star or a split. Else
// for one at a time. It takes fields by const reference, by std::shared_ptr<const T>, or by value: that is
// moved where no other record has it, else copied; by T&& it is not moved before the function does so, and a
// record that fails has it as the function left it. It returns its one record (a value, a tuple of them, or
// an optional one), or sends any number through an Emit.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/streams_box.hpp"

namespace heddle::snet {

/// How a box is called.
struct BoxOptions {
    /// So many records at once, at most, in each place of the network that has the box.
    int calls = 1;
    /// What comes of a record leaves before what comes of the next. Costs nothing with one call at once.
    bool ordered = true;
};

/// Records that have these labels and of which the guard holds.
class HEDDLE_API Pattern {
  public:
    explicit Pattern(std::string text) : text_(std::move(text)) {}
    /// As S-Net writes it: "{a, <n>} if <n > 0>".
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};
/// `guard` is an expression of the tags among the labels, as "n > 0 && n % 2 == 1"; empty: it always holds.
template <class... Labels>
[[nodiscard]] Pattern when(std::string_view guard = {}) {
    std::string text = "{";
    [[maybe_unused]] const char* between = "";
    ((text += between, text += Labels::text(), between = ", "), ...);
    text += "}";
    if (!guard.empty()) ((text += " if <") += guard) += ">";
    return Pattern(text);
}

namespace detail {
struct NetParts;
struct NetworkState;
}  // namespace detail

/// A part of a network, or all of it. Immutable; copies are cheap; any thread may read.
class HEDDLE_API Net {
  public:
    explicit Net(std::shared_ptr<const detail::NetParts> parts) : parts_(std::move(parts)) {}
    /// The program: boxes, nets, and what they are composed to.
    [[nodiscard]] std::string text() const;
    /// What would go wrong with it, as `heddle snet check` tells it. Empty: nothing was found.
    [[nodiscard]] std::vector<std::string> check() const;
    [[nodiscard]] const detail::NetParts& parts() const { return *parts_; }

  private:
    std::shared_ptr<const detail::NetParts> parts_;
};

namespace detail {
HEDDLE_API Net make_box(std::string name, std::string signature, std::vector<LabelType> types,
                        std::function<void(BoxCall&)> function, BoxOptions options);
HEDDLE_API Net make_net(std::string name, std::string signature, const Net& body);
HEDDLE_API Net make_split(const Net& net, const std::string& tag, bool ordered);
}  // namespace detail

// All that follows throws kInvalidArgument where parts do not belong together: two boxes or nets of one name,
// a field that two boxes take to hold different types; kBadInput for a filter or guard that is none, with a
// caret below the place.

/// In<...>, then an Out<...> for each kind of record that it sends.
template <class Input, class... Outputs, class Function>
[[nodiscard]] Net box(std::string name, Function function, BoxOptions options = {}) {
    std::string text = "(";
    std::vector<detail::LabelType> types;
    detail::add_set(text, types, Input());
    text += " -> ";
    [[maybe_unused]] const char* between = "";
    ((text += between, detail::add_set(text, types, Outputs()), between = " | "), ...);
    text += ")";
    return detail::make_box(std::move(name), std::move(text), std::move(types),
                            detail::BoxClosure<Function, Input, Outputs...>{std::move(function)}, options);
}
/// `text` without its brackets: "{<n>} -> if <n > 0> then {<n = n - 1>} else {}".
[[nodiscard]] HEDDLE_API Net filter(std::string_view text);
/// Passes all on.
[[nodiscard]] HEDDLE_API Net identity();
/// Once each pattern has a record, one leaves: all of the first one's, and what the patterns name of the
/// others'. Then it passes all on.
[[nodiscard]] HEDDLE_API Net synchronize(const std::vector<Pattern>& patterns);
/// A net with a signature of its own: labels that it does not name are not seen inside, and come back behind
/// it.
template <class Input, class... Outputs>
[[nodiscard]] Net net(std::string name, const Net& body) {
    std::string text = "(";
    std::vector<detail::LabelType> types;
    const auto braces = [&](auto set) {
        const size_t begin = text.size();
        detail::add_set(text, types, set);
        text[begin] = '{';
        text.back() = '}';
    };
    braces(Input());
    text += " -> ";
    [[maybe_unused]] const char* between = "";
    ((text += between, braces(Outputs()), between = " | "), ...);
    text += ")";
    return detail::make_net(std::move(name), std::move(text), body);
}

/// Serial: what leaves the first enters the second.
[[nodiscard]] HEDDLE_API Net operator>>(const Net& first, const Net& second);
/// Choice: each record goes where it fits best.
[[nodiscard]] HEDDLE_API Net operator|(const Net& first, const Net& second);
/// The same, and what comes of one record leaves before what comes of the next.
[[nodiscard]] HEDDLE_API Net operator||(const Net& first, const Net& second);
/// Replicas one behind the other, made as they are needed: what matches leaves before the next one.
[[nodiscard]] HEDDLE_API Net star(const Net& net, const std::vector<Pattern>& exits);
[[nodiscard]] HEDDLE_API Net ordered_star(const Net& net, const std::vector<Pattern>& exits);
/// What leaves it and matches enters it again.
[[nodiscard]] HEDDLE_API Net feedback(const Net& net, const std::vector<Pattern>& back);
/// A replica for each value of a tag, made for the first record that has it.
template <class Label>
[[nodiscard]] Net split(const Net& net) {
    return detail::make_split(net, Label::text(), false);
}
template <class Label>
[[nodiscard]] Net ordered_split(const Net& net) {
    return detail::make_split(net, Label::text(), true);
}

struct NetworkOptions {
    int workers = 0;           ///< at most; 0: as many as CPUs
    size_t queue_bound = 512;  ///< records that may wait before a box, beside those in its calls
    /// That boxes run on: a power of two from 16 KiB to 1 GiB, of which only what is used takes memory.
    size_t stack_bytes = size_t{1} << 20;
    size_t output_bound = 4096;      ///< records that may wait to be pulled
    size_t most_stages = 1'000'000;  ///< of one star, and replicas of one split
    /// Called for each record that leaves, one call at a time, by any thread; nothing can be pulled then.
    /// Must not throw.
    std::function<void(Record)> output;
    /// Called for each record that fails, with where and why, one call at a time: the others go on. Nobody
    /// else has the record then; a value that a box had taken out of it is back, if the box left it. Unset:
    /// the first one stops the network. Must not throw.
    std::function<void(Record, const std::string& why)> dead_letter;
    /// Also a net of which check() finds something.
    bool unchecked = false;
};

/// Records go in by push() and come out by pull(), each by any thread or task, several at once: a task that
/// waits in them is paused; where there is no memory for that they throw kLimit. What is pushed by one, and
/// pulled by one, keeps its order where the net does.
class HEDDLE_API Network {
  public:
    /// Throws kBadInput with what check() finds, kInvalidArgument for a stack that cannot be.
    explicit Network(const Net& net, NetworkOptions options = {});
    /// Cancels.
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// May call boxes whose calls take no longer than to hand the record over would (they are measured), and
    /// the output function. Waits while the network is full, but not for records to be pulled by one who
    /// pushes or waits to push: then more are kept. Who pulled last is counted on to pull again; where each
    /// of several pushes all that it has before it pulls, let `output_bound` be SIZE_MAX. Throws the first
    /// failure, once; kInvalidArgument when it is closed. What is pushed into a network that failed or was
    /// cancelled is dropped.
    void push(Record record);
    /// No record is pushed any more.
    void close();
    /// The next record that leaves; waits for it. Nothing: it is closed and all has left, or it was
    /// cancelled. Throws the first failure, once.
    [[nodiscard]] std::optional<Record> pull();
    /// One that is there.
    [[nodiscard]] std::optional<Record> try_pull();
    /// Until all that was pushed has left, lies in a synchrocell, or waits to be pulled. More may be pushed.
    /// Throws the first failure, once.
    void settle();
    /// Drops what is under way, when the calls of boxes that run have returned. Any thread.
    void cancel();
    /// What is left in synchrocells, and queues that had to grow: for people, a line each.
    [[nodiscard]] std::vector<std::string> remarks() const;

  private:
    std::unique_ptr<detail::NetworkState> state_;
};

}  // namespace heddle::snet
