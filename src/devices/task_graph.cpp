// The graph of tasks: who follows whom, who is let go, who fails with whom, and who goes ahead. All of it
// with graph_mutex.
//
// A device does what it has in flight in the order that it is told. So a task that no other device may run
// goes ahead: it is launched behind those in flight there, when it waits for nothing else and the scheduler
// has nothing that is ready. It stays in the graph as one that waits, and ends after those that it waits for.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "devices/buffer_state.hpp"
#include "devices/device_state.hpp"

namespace heddle::devices {

TaskState::Writes TaskState::coming() const {
    Writes all;
    for (const auto& weak : predecessors)
        if (const auto task = weak.lock(); task != nullptr && !ended(task->status))
            all.insert(all.end(), task->writes_.begin(), task->writes_.end());
    return all;
}

void TaskState::follow(const std::shared_ptr<TaskState>& predecessor, bool needs_result) {
    if (predecessor == nullptr || predecessor.get() == this || predecessor->left_) return;
    predecessor->successors_.push_back({shared_from_this(), needs_result});
    ++waits_for;
    if (predecessor->lets_ahead(*this)) ++waits_in_flight_;
    predecessors.push_back(predecessor);
}

void TaskState::enter_graph() {
    // A kernel reads before it writes, in whatever order its arguments are.
    for (const Kernel& kernel : kernels)
        for (const bool reading : {true, false})
            for (const KernelArgument& argument : kernel.arguments_)
                if (const Access* const access = std::get_if<Access>(&argument);
                    access != nullptr && (access->mode != AccessMode::kOut) == reading)
                    use(*access);
}

void TaskState::use(const Access& access) {
    const bool reads = access.mode != AccessMode::kOut;
    const bool writes = access.mode != AccessMode::kIn;
    if (writes) writes_.emplace_back(access.buffer.get(), access.range);
    RangeMap<RangeUse>& uses = BufferState::of(*access.buffer).uses();
    uses.visit(access.range.offset, access.range.size, [&](size_t, size_t, RangeUse& use) {
        std::erase_if(use.readers, [](const auto& reader) { return reader->left_; });
        if (use.writer != nullptr && use.writer->failure_is_untold()) {
            if (reads && failure == nullptr) failure = use.writer->failure;
        } else if (use.writer != nullptr && use.writer->left_) {
            use.writer = nullptr;
        }
        follow(use.writer, reads);
        if (writes) {
            for (const auto& reader : use.readers) follow(reader, false);
            use.readers.clear();
            use.writer = shared_from_this();
        } else if (use.writer.get() != this && (use.readers.empty() || use.readers.back().get() != this)) {
            use.readers.push_back(shared_from_this());
        }
    });
    uses.join(access.range.offset, access.range.size);
}

void TaskState::settle(TaskStatus how, const std::exception_ptr& why, Tasks& settled) {
    std::shared_ptr<Failure> reason;
    if (how == TaskStatus::kFailed && why != nullptr)
        reason = failure != nullptr ? failure : std::make_shared<Failure>(Failure{why});
    const auto end = [&](TaskState& task) {
        task.status = how;
        task.error = why;
        task.failure = reason;
        ++task.waits_for;
        settled.push_back(task.shared_from_this());
    };
    const size_t first = settled.size();
    end(*this);
    if (how == TaskStatus::kDone) return;
    // Beside those that end, those that were withdrawn before: they stand for what they wait for, and who
    // follows one may read what that was to write.
    std::vector<const TaskState*> reached{this};
    std::unordered_set<const TaskState*> passed;
    const auto reads_of_ended = [&](const TaskState& task) {
        return std::any_of(settled.begin() + static_cast<ptrdiff_t>(first), settled.end(),
                           [&](const auto& writer) { return task.bytes_read_of(*writer) > 0; });
    };
    for (size_t at = 0; at < reached.size(); ++at) {
        const bool is_passed = passed.contains(reached[at]);
        for (const Successor& next : reached[at]->successors_) {
            TaskState& task = *next.task;
            if (ended(task.status)) {
                if (task.withdrawn() && !task.left_ && passed.insert(&task).second) reached.push_back(&task);
            } else if (next.needs_result && (!is_passed || reads_of_ended(task))) {
                if (task.is_ahead && task.status == TaskStatus::kRunning) {
                    if (task.failure == nullptr)
                        task.failure = reason;  // it ends so when its device has done it
                    continue;
                }
                end(task);
                reached.push_back(&task);
            }
        }
    }
}

void TaskState::let_go(Tasks& ready, Tasks& left) {
    size_t at = left.size();
    const auto one_less = [&](TaskState& task) {
        if (--task.waits_for > 0) return;
        if (ended(task.status)) {
            left.push_back(task.shared_from_this());
        } else if (!task.is_ahead) {
            task.status = TaskStatus::kReady;
            ready.push_back(task.shared_from_this());
        }
    };
    for (one_less(*this); at < left.size(); ++at) {
        TaskState& task = *left[at];
        task.left_ = true;
        task.predecessors.clear();
        for (const Successor& next : std::exchange(task.successors_, {})) {
            if (task.lets_ahead(*next.task)) --next.task->waits_in_flight_;
            one_less(*next.task);
        }
    }
}

bool TaskState::lets_ahead(const TaskState& successor) const {
    return lets_ahead_ && successor.runtime == runtime && successor.sole_device == ran_on;
}

bool TaskState::may_go_ahead() const {
    return status == TaskStatus::kWaiting && waits_for == waits_in_flight_ && waits_in_flight_ > 0 &&
           !runs_alone && !is_ahead && failure == nullptr;
}

void TaskState::enter_flight(std::deque<std::shared_ptr<TaskState>>& followers) {
    if (finish) return;  // it is to see what this one has left
    lets_ahead_ = true;
    while (!followers.empty() && !followers.front()->may_go_ahead()) followers.pop_front();
    for (const Successor& next : successors_) {
        if (!lets_ahead(*next.task)) continue;
        ++next.task->waits_in_flight_;
        if (next.task->may_go_ahead()) followers.push_back(next.task);
    }
}

void TaskState::leave_flight() {
    for (const Successor& next : successors_)
        if (lets_ahead(*next.task)) --next.task->waits_in_flight_;
    lets_ahead_ = false;
}

}  // namespace heddle::devices
