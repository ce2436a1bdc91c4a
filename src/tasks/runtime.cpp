#include "heddle/task.hpp"

#include <utility>

#include "heddle/error.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {

Runtime::Runtime(RuntimeOptions options) : state_(std::make_unique<detail::RuntimeState>(options)) {}

Runtime::Runtime(std::unique_ptr<detail::RuntimeState> state) : state_(std::move(state)) {}

Runtime::~Runtime() = default;

std::string Runtime::engine() const {
    return state_->factory->name;
}

CpuSet Runtime::cpus() const {
    return state_->cpus;
}

void Runtime::switch_engine(std::string_view engine) {
    state_->switch_engine(engine);
}

void Runtime::wait() {
    if (state_->is_in_task())
        throw Error(
            ErrorCode::kInvalidArgument,
            "a task cannot wait for its runtime: it would wait for itself. Give what it is to wait for "
            "a sequence of its own");
    state_->wait_all();
}

std::vector<EngineInfo> Runtime::engines() {
    return list_engines();
}

}  // namespace heddle
