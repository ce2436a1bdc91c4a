// The C interface: recordings.
#include "heddle/recording.h"

#include "tasks/c_closure.hpp"
#include "tasks/c_interface.hpp"
#include "tasks/recording.hpp"

namespace heddle::c {
namespace {

struct RecordingObject {
    explicit RecordingObject(RuntimeObject& runtime)
        : dependent(runtime), recording(std::make_shared<detail::RecordingState>(runtime.runtime)) {}
    ~RecordingObject() { recording->wait_for_replays(); }
    RecordingObject(const RecordingObject&) = delete;
    RecordingObject& operator=(const RecordingObject&) = delete;
    Dependent dependent;  // before the recording: counted until that is gone
    const std::shared_ptr<detail::RecordingState> recording;
};

detail::RecordingState& recording_of(const heddle_recording_t* recording) {
    return *object_of<RecordingObject>(recording, "recording").recording;
}

}  // namespace
}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_recording_t* heddle_recording_create(heddle_runtime_t* runtime) {
    return made<heddle_recording_t>([&] { return std::make_unique<RecordingObject>(c::object(runtime)); });
}

heddle_task_ret_t heddle_record(heddle_recording_t* recording, heddle_function_t function,
                                const heddle_argument_t* arguments, size_t count,
                                const heddle_task_options_t* options) {
    return guarded([&] {
        detail::RecordingState& tasks = recording_of(recording);
        c::insert({*tasks.tasks, &tasks}, function, arguments, count, options);
    });
}

heddle_task_ret_t heddle_replay(heddle_recording_t* recording, heddle_sequence_t* sequence) {
    return guarded([&] {
        detail::RecordingState& tasks = recording_of(recording);
        tasks.replay(c::object(sequence).sequence.state());
    });
}

size_t heddle_recording_size(const heddle_recording_t* recording) {
    size_t size = 0;
    (void)guarded([&] { size = recording_of(recording).size(); });
    return size;
}

heddle_task_ret_t heddle_recording_destroy(heddle_recording_t* recording) {
    return guarded([&] {
        if (recording_of(recording).runs_caller())
            refuse("a task cannot destroy the recording that it is of: it would wait for its own end");
        taken<RecordingObject>(recording).reset();
    });
}
