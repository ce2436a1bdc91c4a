// The C interface: errors, runtimes, conditions and polling services.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/thread_message.hpp"
#include "tasks/c_interface.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::c {
namespace {

thread_local heddle_task_ret_t last_code = HEDDLE_TASK_SUCCESS;
thread_local int last_result = 0;
ThreadMessage last_message;

heddle_task_ret_t keep(heddle_task_ret_t code, const char* message, int result = 0) noexcept {
    last_code = code;
    last_result = result;
    last_message.keep(message);
    return code;
}

heddle_task_ret_t code_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
        case ErrorCode::kBadInput:
            return HEDDLE_TASK_INVALID;
        case ErrorCode::kUnavailable:
        case ErrorCode::kVersionMismatch:
            return HEDDLE_TASK_UNAVAILABLE;
        case ErrorCode::kLimit:
            return HEDDLE_TASK_LIMIT;
        case ErrorCode::kPermission:
        case ErrorCode::kSystem:
            return HEDDLE_TASK_SYSTEM;
    }
    return HEDDLE_TASK_SYSTEM;
}

BlockCondition& condition_of(heddle_condition_t* condition) {
    return object_of<BlockCondition>(condition, "condition");
}

}  // namespace

heddle_task_ret_t note_error() noexcept {
    try {
        throw;
    } catch (const TaskFailure& failure) {
        return keep(HEDDLE_TASK_FAILED, failure.what(), failure.result());
    } catch (const Error& error) {
        return keep(code_of(error.code()), error.what());
    } catch (const std::bad_alloc&) {
        return keep(HEDDLE_TASK_LIMIT, "there is no memory");
    } catch (const std::exception& error) {
        return keep(HEDDLE_TASK_FAILED, error.what());
    } catch (...) {
        return keep(HEDDLE_TASK_FAILED, "a task has thrown something that says nothing");
    }
}

void refuse(const std::string& message) {
    throw Error(ErrorCode::kInvalidArgument, message);
}

void refuse_handle(const char* kind) {
    const bool an = std::strchr("aeio", *kind) != nullptr;
    refuse(std::string("this is not ") + (an ? "an " : "a ") + kind +
           ": it is NULL, was destroyed, or was never made");
}

}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_task_ret_t heddle_task_error(void) {
    return last_code;
}

const char* heddle_task_error_message(void) {
    return last_code == HEDDLE_TASK_SUCCESS ? "" : last_message.text();
}

int heddle_task_error_result(void) {
    return last_result;
}

size_t heddle_engines(heddle_engine_t* engines, size_t room) {
    thread_local std::vector<EngineInfo> known;
    const auto result = guarded([&] { known = Runtime::engines(); });
    if (result != HEDDLE_TASK_SUCCESS) return 0;
    for (size_t i = 0; engines != nullptr && i < std::min(room, known.size()); ++i)
        engines[i] = {known[i].name.c_str(), known[i].available, known[i].version.c_str(),
                      known[i].reason.c_str()};
    return known.size();
}

heddle_runtime_t* heddle_runtime_create(const char* engine, const cpu_set_t* cpus, int workers) {
    return made<heddle_runtime_t>([&] {
        RuntimeOptions options;
        if (engine != nullptr) options.engine = engine;
        if (cpus != nullptr) {
            options.cpus = CpuSet::from_native(cpus, sizeof *cpus);
            if (options.cpus.empty()) refuse("a runtime cannot run on no CPU: NULL stands for all");
        }
        options.workers = workers;
        return std::make_unique<RuntimeObject>(std::move(options));
    });
}

heddle_task_ret_t heddle_runtime_destroy(heddle_runtime_t* runtime) {
    return guarded([&] {
        if (const int left = c::object(runtime).dependents; left > 0)
            refuse("a runtime cannot go before what belongs to it: " + std::to_string(left) +
                   " sequences, data, futures or recordings are left");
        if (c::object(runtime).runtime.state().is_in_task())
            refuse("a task cannot destroy the runtime that runs it");
        taken<RuntimeObject>(runtime).reset();
    });
}

const char* heddle_runtime_engine(heddle_runtime_t* runtime) {
    thread_local std::string name;
    const auto result = guarded([&] { name = c::object(runtime).runtime.engine(); });
    return result == HEDDLE_TASK_SUCCESS ? name.c_str() : nullptr;
}

heddle_task_ret_t heddle_runtime_cpus(heddle_runtime_t* runtime, cpu_set_t* cpus) {
    return guarded([&] {
        if (cpus == nullptr) refuse("there is no place for the CPUs of the runtime");
        const CpuSet all = c::object(runtime).runtime.cpus();
        if (all.last() >= CPU_SETSIZE)
            throw Error(ErrorCode::kLimit, "the runtime has CPUs " + all.to_list() +
                                               ", and a cpu_set_t ends before " +
                                               std::to_string(CPU_SETSIZE));
        CPU_ZERO(cpus);
        for (const int cpu : all) CPU_SET(static_cast<size_t>(cpu), cpus);
    });
}

heddle_task_ret_t heddle_runtime_wait(heddle_runtime_t* runtime) {
    return guarded([&] { c::object(runtime).runtime.wait(); });
}

heddle_task_ret_t heddle_switch_engine(heddle_runtime_t* runtime, const char* engine) {
    return guarded([&] {
        if (engine == nullptr) refuse("the engine to switch to has no name");
        c::object(runtime).runtime.switch_engine(engine);
    });
}

heddle_condition_t* heddle_condition_create(void) {
    return made<heddle_condition_t>([] { return std::make_unique<BlockCondition>(); });
}

heddle_task_ret_t heddle_condition_destroy(heddle_condition_t* condition) {
    return guarded([&] {
        if (taken<BlockCondition>(condition) == nullptr) refuse_handle("condition");
    });
}

heddle_task_ret_t heddle_condition_block(heddle_condition_t* condition) {
    return guarded([&] { condition_of(condition).block(); });
}

heddle_task_ret_t heddle_condition_signal(heddle_condition_t* condition) {
    return guarded([&] { condition_of(condition).signal(); });
}

heddle_task_ret_t heddle_register_polling_service(heddle_runtime_t* runtime, const char* name,
                                                  heddle_polling_service_t service, void* data) {
    return guarded([&] {
        if (service == nullptr) refuse("a polling service has no function");
        register_polling_service(c::object(runtime).runtime, name == nullptr ? "" : name, service, data);
    });
}

heddle_task_ret_t heddle_unregister_polling_service(heddle_runtime_t* runtime,
                                                    heddle_polling_service_t service, void* data) {
    return guarded([&] { unregister_polling_service(c::object(runtime).runtime, service, data); });
}
