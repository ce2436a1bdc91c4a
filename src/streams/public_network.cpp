// The networks of heddle/streams.hpp, which run what a Net describes.
#include <fmt/format.h>

#include <atomic>

#include "streams/composition.hpp"
#include "streams/one_at_a_time.hpp"
#include "streams/output_queue.hpp"
#include "streams/parts.hpp"
#include "streams/pushers_beside.hpp"

namespace heddle::snet {
namespace {

Record to_public(streams::Record&& record) {
    Record made;
    auto& parts = *static_cast<streams::Record*>(made.parts());
    parts = std::move(record);
    parts.turn = {};
    parts.aside = {};
    parts.turns_back = 0;
    return made;
}

/// Where records leave to a function.
class Leaving final : public streams::Inlet {
  public:
    /// The plant may be made after it.
    Leaving(std::function<void(Record)> output, streams::Plant& plant)
        : output_(std::move(output)), plant_(plant) {}
    void take(streams::Record&& record, streams::Flow& flow) override {
        Record made;
        *static_cast<streams::Record*>(made.parts()) = std::move(record);
        const auto before_wait = [&flow] {
            flow.let_go();
            (void)flow.count();
        };
        if (!output_.call(plant_.pressure, before_wait, std::move(made))) plant_.note_dropped(1);
    }

  private:
    streams::OneAtATime<Record> output_;
    streams::Plant& plant_;
};

}  // namespace

namespace detail {

struct NetworkState {
    NetworkState(const Net& net, NetworkOptions its_options)
        : parts(net.parts()),
          options(std::move(its_options)),
          program(parts.program()),
          leaving(options.output, plant),
          queue(options.output_bound),
          plant(*program, network_options()),
          inlet(plant.build(program->main(), options.output ? static_cast<streams::Inlet&>(leaving) : queue,
                            plant.path(nullptr, ""))) {
        queue.attach(plant.pressure);
        plant.pressure.on_quiet = [this] {
            if (closed || plant.stopped()) queue.wake_all();
        };
    }
    streams::NetworkOptions network_options() {
        streams::NetworkOptions made;
        made.workers = options.workers;
        made.queue_bound = std::max<size_t>(options.queue_bound, 1);
        made.stack_bytes = options.stack_bytes;
        made.most_stages = options.most_stages;
        made.boxes = [this](const streams::BoxDefinition& box) -> streams::BoxFunction {
            return
                [function = parts.boxes.at(box.name)](streams::BoxCall& call) { function->function(call); };
        };
        made.calls = [this](const streams::BoxDefinition& box) {
            const BoxOptions& asked = parts.boxes.at(box.name)->options;
            return streams::BoxCalls{asked.calls, asked.ordered};
        };
        if (options.dead_letter)
            made.dead_letter = [this](streams::Record record, const std::string& why) {
                options.dead_letter(to_public(std::move(record)), why);
            };
        return made;
    }
    /// Who sits is not counted: where it has failed, those that wait for a record are told here.
    void leave(streams::PushSeat::Seat& seat) {
        plant.seat.leave(seat);
        if (plant.stopped()) look_whether_quiet();
    }
    void push_sitting(streams::Record&& record, streams::PushSeat::Seat& seat);
    /// By one who has begun; `budget` as in Flow.
    void push_beside(streams::Record&& record, uintptr_t who, uint32_t budget);
    /// Tells of quiet that is there already.
    void look_whether_quiet() {
        plant.pressure.begin();
        plant.pressure.end();
    }

    const NetParts parts;
    const NetworkOptions options;
    const std::unique_ptr<streams::Program> program;
    Leaving leaving;
    streams::OutputQueue queue;
    std::atomic<bool> closed{false};
    streams::PushersBeside beside;
    streams::Plant plant;  // gone first: it waits for what may still come to the others
    streams::Inlet& inlet;
};

}  // namespace detail

Network::Network(const Net& net, NetworkOptions options) {
    if (!options.unchecked)
        if (const std::vector<std::string> findings = net.check(); !findings.empty()) {
            std::string all;
            for (const std::string& finding : findings) all += (all.empty() ? "" : "\n") + finding;
            throw Error(ErrorCode::kBadInput, all);
        }
    state_ = std::make_unique<detail::NetworkState>(net, std::move(options));
}

Network::~Network() {
    cancel();
}

void Network::push(Record record) {
    detail::NetworkState& state = *state_;
    streams::Plant& plant = state.plant;
    if (state.closed)
        throw Error(ErrorCode::kInvalidArgument, "a record is pushed into a network that was closed");
    plant.rethrow();
    if (plant.stopped()) return;
    auto& parts = *static_cast<streams::Record*>(record.parts());
    parts.turns_back = 0;
    const uintptr_t who = streams::own_number();
    if (!state.options.output) state.queue.pushing(who);
    const bool own_task = plant.is_own_task();
    if (plant.is_overfull() && !own_task && !plant.seat.counts(who) && !state.beside.contains(who))
        plant.wait_for_room();
    streams::PushSeat::Seat* seat = own_task ? nullptr : plant.seat.enter(who);
    if (seat == nullptr && (own_task || plant.seat.counts(who) || state.beside.contains(who))) {
        // A box does, or one of the functions for what leaves: its flow is counted, and on its stack.
        state.push_beside(std::move(parts), who, 0);
    } else if (seat != nullptr || (seat = plant.seat.sit_down(who)) != nullptr) {
        state.push_sitting(std::move(parts), *seat);
    } else {
        plant.pressure.begin();
        try {
            state.push_beside(std::move(parts), who, streams::Flow::kBudget);
        } catch (...) {
            plant.pressure.end();
            throw;
        }
        plant.pressure.end();
    }
    plant.rethrow();
}

void detail::NetworkState::push_sitting(streams::Record&& record, streams::PushSeat::Seat& seat) {
    seat.flow.budget = streams::Flow::kBudget;
    try {
        seat.flow.run(inlet, std::move(record));
    } catch (...) {
        seat.flow.let_go();
        leave(seat);
        throw;
    }
    leave(seat);
}

void detail::NetworkState::push_beside(streams::Record&& record, uintptr_t who, uint32_t budget) {
    streams::PushersBeside::Pusher pusher(beside, who);
    pusher.flow().budget = budget;
    pusher.flow().run(inlet, std::move(record));
}

void Network::close() {
    state_->closed = true;
    (void)state_->plant.seat.ask(streams::PushSeat::For::kGood);
    state_->look_whether_quiet();
}

std::optional<Record> Network::pull() {
    detail::NetworkState& state = *state_;
    if (state.options.output)
        throw Error(ErrorCode::kInvalidArgument, "the records of this network leave to its output function");
    std::optional<streams::Record> record = state.queue.pull(
        [&] { return (state.closed || state.plant.stopped()) && state.plant.pressure.quiet(); });
    if (!record) {
        state.plant.rethrow();
        return std::nullopt;
    }
    Record made;
    *static_cast<streams::Record*>(made.parts()) = std::move(*record);
    return made;
}

std::optional<Record> Network::try_pull() {
    std::optional<streams::Record> record = state_->queue.try_pull();
    if (!record) {
        state_->plant.rethrow();
        return std::nullopt;
    }
    Record made;
    *static_cast<streams::Record*>(made.parts()) = std::move(*record);
    return made;
}

void Network::settle() {
    detail::NetworkState& state = *state_;
    state.queue.grow_freely();
    state.plant.pressure.wait_until_quiet();
    state.plant.rethrow();
}

void Network::cancel() {
    state_->plant.stop();
    state_->queue.drop();
    state_->look_whether_quiet();
}

std::vector<std::string> Network::remarks() const {
    return state_->plant.remarks();
}

}  // namespace heddle::snet
