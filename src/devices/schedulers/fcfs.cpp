// fcfs: an idle device takes the first task that it can run, of those with the highest priority.
#include <map>

#include "devices/schedulers/queue_scheduler.hpp"
#include "devices/schedulers/schedulers.hpp"

namespace heddle::devices {
namespace {

class FirstComeFirstServed final : public QueueScheduler {
    void enqueue(TaskPointer task) override {
        const int priority = task->priority();
        queues_[-priority].push_back(std::move(task));
    }

    [[nodiscard]] TaskPointer choose(const Device& device) override {
        for (auto& [priority, queue] : queues_)
            for (auto at = queue.begin(); at != queue.end(); ++at) {
                if (!(*at)->runs_on(device)) continue;
                TaskPointer task = std::move(*at);
                queue.erase(at);
                return task;
            }
        return nullptr;
    }

    bool remove(const TaskPointer& task) override {
        for (auto& [priority, queue] : queues_)
            if (std::erase(queue, task) > 0) return true;
        return false;
    }

    std::map<int, std::list<TaskPointer>> queues_;
};

}  // namespace

std::shared_ptr<Scheduler> make_fcfs() {
    return std::make_shared<FirstComeFirstServed>();
}

}  // namespace heddle::devices
