// heft: plans the tasks that were submitted and have not begun, those that must wait included, each time
// that a batch was submitted, a device died, or costs that nobody knew may be known (heft_plan.hpp). A device
// takes what was planned for it, in the plan's order, as far as it is ready. Of many that come one by one it
// plans some together, as long as each device has something to do.
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/schedulers/heft_plan.hpp"
#include "devices/schedulers/queue_scheduler.hpp"
#include "devices/schedulers/schedulers.hpp"

namespace heddle::devices {
namespace {

class Heft final : public QueueScheduler {
  public:
    void submitted(std::span<const TaskPointer> batch, std::span<const Device* const> devices) override {
        const std::lock_guard guard(mutex_);
        devices_.assign(devices.begin(), devices.end());
        for (const TaskPointer& task : batch) add(task);
    }

  private:
    struct Entry {
        TaskPointer task;
        bool ready = false, planned = false;
        size_t device = 0;
        double start_us = 0;
    };

    Entry& add(const TaskPointer& task) {
        const auto [at, fresh] = index_.try_emplace(task.get());
        if (!fresh) return *at->second;
        at->second = unbegun_.insert(unbegun_.end(), Entry{task});
        ++unplanned_;
        return *at->second;
    }

    void enqueue(TaskPointer task) override {
        Entry& entry = add(task);
        entry.ready = true;
        unplanned_is_ready_ |= !entry.planned;
    }

    bool remove(const TaskPointer& task) override {
        const auto found = index_.find(task.get());
        if (found == index_.end()) return false;
        const bool was_ready = found->second->ready;
        if (found->second->planned) std::erase(planned_[found->second->device], &*found->second);
        unbegun_.erase(found->second);
        index_.erase(found);
        return was_ready;
    }

    [[nodiscard]] TaskPointer choose(const Device& device) override {
        const auto alive = static_cast<size_t>(
            std::count_if(devices_.begin(), devices_.end(), [](const Device* one) { return one->alive(); }));
        const uint64_t ended = has_unknown_ ? tasks_run() : 0;
        const auto next = [&] {
            std::vector<Entry*>& own = planned_[device.index()];
            return std::find_if(own.begin(), own.end(), [](const Entry* entry) { return entry->ready; });
        };
        constexpr size_t kPart = 16;  // of all that has not begun
        if (alive != planned_for_ || kPart * unplanned_ > unbegun_.size() ||
            (has_unknown_ && ended != planned_after_) ||
            (unplanned_is_ready_ && next() == planned_[device.index()].end()))
            plan(alive);
        std::vector<Entry*>& own = planned_[device.index()];
        const auto found = next();
        if (found == own.end() || !(*found)->task->runs_on(device)) return nullptr;
        // What it does now may be what tells where this one is better off.
        if (has_unknown_ && device.busy() && runs_elsewhere(*(*found)->task, device)) return nullptr;
        TaskPointer task = (*found)->task;
        own.erase(found);
        const auto entry = index_.find(task.get());
        unbegun_.erase(entry->second);
        index_.erase(entry);
        return task;
    }

    [[nodiscard]] bool runs_elsewhere(const DeviceTask& task, const Device& here) const {
        return std::any_of(devices_.begin(), devices_.end(), [&](const Device* one) {
            return one->index() != here.index() && one->alive() && task.runs_on(*one);
        });
    }

    void plan(size_t alive) {
        unplanned_ = 0;
        unplanned_is_ready_ = false;
        planned_for_ = alive;
        planned_after_ = tasks_run();
        tried_.clear();
        has_unknown_ = false;
        planned_.assign(devices_.size(), {});
        std::vector<Entry*> entries;
        std::vector<PlanTask> tasks;
        std::unordered_map<const DeviceTask*, size_t> places;
        for (Entry& entry : unbegun_) {
            PlanTask task = to_plan(entry, places);
            entry.planned = !task.cost_us.empty();
            if (!entry.planned) continue;
            places.emplace(entry.task.get(), entries.size());
            entries.push_back(&entry);
            tasks.push_back(std::move(task));
        }
        std::vector<double> free_us;
        for (const Device* const device : devices_) free_us.push_back(device->busy_us());
        // The paper's mean is far from what a task costs where it will run when devices differ by much: then
        // the best cost gives the shorter plan.
        std::vector<Placement> best = heft_plan(tasks, free_us, RankWeight::kMean);
        std::vector<Placement> other = heft_plan(tasks, free_us, RankWeight::kBest);
        if (makespan(other) < makespan(best)) best = std::move(other);
        for (size_t i = 0; i < entries.size(); ++i) {
            entries[i]->device = best[i].device;
            entries[i]->start_us = best[i].start_us;
            planned_[best[i].device].push_back(entries[i]);
        }
        for (std::vector<Entry*>& own : planned_)
            std::stable_sort(own.begin(), own.end(),
                             [](const Entry* a, const Entry* b) { return a->start_us < b->start_us; });
    }

    /// No costs where no device can run it any more.
    [[nodiscard]] PlanTask to_plan(const Entry& entry,
                                   const std::unordered_map<const DeviceTask*, size_t>& places) {
        PlanTask task;
        task.priority = entry.task->priority();
        bool anywhere = false;
        const std::vector<TaskPointer> predecessors = entry.task->follows();
        for (size_t i = 0; i < devices_.size(); ++i) {
            const bool here = entry.task->runs_on(*devices_[i]);
            anywhere |= here;
            task.cost_us.push_back(here ? entry.task->estimate_us(*devices_[i]) : kCannotRun);
            task.transfer_us.push_back(here ? entry.task->transfer_us(*devices_[i]) : 0);
        }
        if (!anywhere) return {};
        try_where_unknown(entry, task);
        for (const TaskPointer& predecessor : predecessors) {
            const auto found = places.find(predecessor.get());
            if (found == places.end()) {
                add_running(*predecessor, entry, task);
                continue;
            }
            PlannedEdge edge{found->second, {}};
            for (const Device* const from : devices_)
                for (const Device* const to : devices_)
                    edge.exchange_us.push_back(entry.task->exchange_us(*predecessor, *from, *to));
            task.after.push_back(std::move(edge));
        }
        return task;
    }

    void add_running(const DeviceTask& predecessor, const Entry& entry, PlanTask& task) const {
        task.arrives_us.resize(devices_.size(), 0);
        for (size_t i = 0; i < devices_.size(); ++i)
            task.arrives_us[i] =
                std::max(task.arrives_us[i], entry.task->arrives_in_us(predecessor, *devices_[i]));
    }

    /// One task of each signature runs on each device that nobody knows its cost on; the others go where it
    /// is known, as if it took there what it takes elsewhere.
    void try_where_unknown(const Entry& entry, PlanTask& task) {
        double known_us = 0;
        std::vector<size_t> unknown;
        for (size_t i = 0; i < devices_.size(); ++i) {
            if (task.cost_us[i] == kCannotRun) continue;
            if (entry.task->unknown_on(*devices_[i]))
                unknown.push_back(i);
            else
                known_us = std::max(known_us, task.cost_us[i]);
        }
        if (unknown.empty()) return;
        has_unknown_ = true;
        for (const size_t device : unknown) {
            if (!tried_.emplace(entry.task->signature(), device).second) continue;
            for (size_t i = 0; i < devices_.size(); ++i)
                if (i != device) task.cost_us[i] = kCannotRun;
            return;
        }
        if (known_us == 0) return;
        for (const size_t device : unknown) task.cost_us[device] = known_us;
    }

    [[nodiscard]] uint64_t tasks_run() const {
        uint64_t sum = 0;
        for (const Device* const device : devices_) sum += device->tasks_run();
        return sum;
    }

    std::vector<const Device*> devices_;
    std::set<std::pair<uint64_t, size_t>> tried_;  // signature and device, in this plan
    bool has_unknown_ = false;
    uint64_t planned_after_ = 0;  // so many tasks had run
    std::list<Entry> unbegun_;    // in the order of submission
    std::unordered_map<const DeviceTask*, std::list<Entry>::iterator> index_;
    std::vector<std::vector<Entry*>> planned_;  // by device, in the order of their start
    size_t planned_for_ = 0;                    // so many devices
    size_t unplanned_ = 0;                      // that came since
    bool unplanned_is_ready_ = false;
};

}  // namespace

std::shared_ptr<Scheduler> make_heft() {
    return std::make_shared<Heft>();
}

}  // namespace heddle::devices
