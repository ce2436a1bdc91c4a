#include "streams/network.hpp"

#include "heddle/pause.hpp"
#include "streams/parts.hpp"

namespace heddle::streams {
namespace {

/// Where records leave the network.
class Outlet final : public Inlet {
  public:
    /// The plant may be made after it.
    Outlet(std::function<void(Record)> output, Plant& plant) : output_(std::move(output)), plant_(plant) {}
    /// Where they cannot leave, none is of use: it is no failure of that record.
    void take(Record&& record, Flow&) override {
        const std::lock_guard guard(mutex_);
        try {
            output_(std::move(record));
        } catch (...) {
            plant_.give_up(std::current_exception());
        }
    }

  private:
    const std::function<void(Record)> output_;
    Plant& plant_;
    std::mutex mutex_;
};

}  // namespace

struct Network::State {
    State(const Program& program, NetworkOptions options)
        : outlet(options.output, plant),
          plant(program, std::move(options)),
          inlet(plant.build(program.main(), outlet, plant.path(nullptr, ""))) {}
    Outlet outlet;
    Plant plant;  // waits for what may still come to the outlet
    Inlet& inlet;
    Flow flow;
};

Network::Network(const Program& program, NetworkOptions options)
    : state_(std::make_unique<State>(program, std::move(options))) {}

Network::~Network() = default;

void Network::feed(const std::function<void()>& source) {
    BlockCondition ended;
    std::exception_ptr failure;
    state_->plant.schedule("input", [&] {
        try {
            source();
        } catch (...) {
            failure = std::current_exception();
        }
        ended.signal();
    });
    ended.block();
    if (failure) std::rethrow_exception(failure);
}

void Network::push(Record record) {
    Plant& plant = state_->plant;
    plant.rethrow();
    if (plant.drops(record)) return;
    record.turns_back = 0;
    if (plant.is_overfull()) plant.wait_for_room();
    plant.pressure.begin();
    try {
        state_->flow.run(state_->inlet, std::move(record));
    } catch (...) {
        plant.pressure.end();
        throw;
    }
    plant.pressure.end();
    plant.rethrow();
}

void Network::settle() {
    state_->plant.wait();
    state_->plant.rethrow();
}

void Network::cancel() {
    state_->plant.stop();
}

uint64_t Network::dropped() const {
    return state_->plant.dropped();
}

std::vector<std::string> Network::remarks() const {
    return state_->plant.remarks();
}

size_t Network::part_count() const {
    return state_->plant.part_count();
}

}  // namespace heddle::streams
