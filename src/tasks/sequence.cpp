#include "tasks/runtime_state.hpp"

namespace heddle {

using detail::RuntimeState;
using detail::SequenceState;

Sequence::Sequence(Runtime& runtime)
    : state_(std::make_shared<SequenceState>(runtime.state(), runtime.state().domain_here())) {
    runtime.state().enter(state_);
}

Sequence::~Sequence() {
    state_->runtime.end(state_);
}

void Sequence::wait() {
    RuntimeState& runtime = state_->runtime;
    try {
        runtime.wait(*state_);
    } catch (...) {
        runtime.kept.try_to_bring_all_home();
        throw;
    }
    runtime.kept.bring_all_home();
}

}  // namespace heddle
