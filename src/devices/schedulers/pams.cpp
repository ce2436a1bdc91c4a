// pams: performance-aware scheduling (Andrade et al., "Efficient execution of microscopy image analysis on
// CPU, GPU, and MIC equipped cluster systems", SBAC-PAD 2014): an idle device takes the task that it runs
// best in comparison with the other devices, of those alike the longest. Near the end of the work it leaves a
// task alone that the others would have ended before it.
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <vector>

#include "devices/schedulers/queue_scheduler.hpp"
#include "devices/schedulers/schedulers.hpp"

namespace heddle::devices {
namespace {

class Pams final : public QueueScheduler {
  public:
    void submitted(std::span<const TaskPointer>, std::span<const Device* const> devices) override {
        const std::lock_guard guard(mutex_);
        devices_.assign(devices.begin(), devices.end());
        lists_.resize(devices_.size());
        elsewhere_us_.resize(devices_.size(), 0);
    }

  private:
    struct Entry {
        TaskPointer task;
        std::vector<double> cost_us;       // by device; infinite where it does not run
        std::vector<double> elsewhere_us;  // by device: the least cost on another one, or infinite
        uint64_t number;
    };
    /// Best first: the priority, the advantage here, the cost here; then as they came.
    struct Rank {
        int priority;
        double advantage, cost_us;
        uint64_t number;
        const Entry* entry;
        bool operator<(const Rank& other) const {
            if (priority != other.priority) return priority > other.priority;
            if (advantage != other.advantage) return advantage > other.advantage;
            if (cost_us != other.cost_us) return cost_us > other.cost_us;
            return number < other.number;
        }
    };

    [[nodiscard]] static Rank rank(const Entry& entry, size_t device) {
        // Advantages that differ by less than a tenth of a percent are alike.
        constexpr double kSteps = 1000;
        const double advantage = std::round(kSteps * entry.elsewhere_us[device] / entry.cost_us[device]);
        return {entry.task->priority(), advantage, entry.cost_us[device], entry.number, &entry};
    }

    void enqueue(TaskPointer task) override {
        constexpr double kNever = std::numeric_limits<double>::infinity();
        Entry entry{task, {}, {}, ++last_number_};
        for (const Device* const device : devices_)
            entry.cost_us.push_back(task->runs_on(*device) ? task->estimate_us(*device) : kNever);
        for (size_t i = 0; i < devices_.size(); ++i) {
            double least = kNever;
            for (size_t k = 0; k < devices_.size(); ++k)
                if (k != i) least = std::min(least, entry.cost_us[k]);
            entry.elsewhere_us.push_back(least);
        }
        const Entry& kept = entries_.emplace(task.get(), std::move(entry)).first->second;
        for (size_t i = 0; i < devices_.size(); ++i) {
            if (std::isfinite(kept.cost_us[i])) lists_[i].insert(rank(kept, i));
            if (std::isfinite(kept.elsewhere_us[i])) elsewhere_us_[i] += kept.elsewhere_us[i];
        }
    }

    bool remove(const TaskPointer& task) override {
        const auto found = entries_.find(task.get());
        if (found == entries_.end()) return false;
        for (size_t i = 0; i < devices_.size(); ++i) {
            if (std::isfinite(found->second.cost_us[i])) lists_[i].erase(rank(found->second, i));
            if (std::isfinite(found->second.elsewhere_us[i]))
                elsewhere_us_[i] -= found->second.elsewhere_us[i];
        }
        entries_.erase(found);
        return true;
    }

    [[nodiscard]] TaskPointer choose(const Device& device) override {
        const double others_us = others_end_us(device), begins_us = device.busy_us();
        for (const Rank& candidate : lists_[device.index()]) {
            const double ends_us = begins_us + candidate.cost_us;
            if (ends_us > std::max(others_us, ends_elsewhere_us(*candidate.entry, device))) continue;
            TaskPointer task = candidate.entry->task;
            remove(task);
            return task;
        }
        return nullptr;
    }

    /// When the others had done all that is here, if they shared it evenly.
    [[nodiscard]] double others_end_us(const Device& device) const {
        double sum = elsewhere_us_[device.index()];
        size_t count = 0;
        for (const Device* const other : devices_) {
            if (other->index() == device.index() || !other->alive()) continue;
            sum += other->busy_us();
            ++count;
        }
        return count == 0 ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(count);
    }

    [[nodiscard]] double ends_elsewhere_us(const Entry& entry, const Device& device) const {
        double first = std::numeric_limits<double>::infinity();
        for (const Device* const other : devices_)
            if (other->index() != device.index() && other->alive())
                first = std::min(first, other->busy_us() + entry.cost_us[other->index()]);
        return first;
    }

    std::vector<const Device*> devices_;
    std::unordered_map<const DeviceTask*, Entry> entries_;  // their addresses stay
    std::vector<std::set<Rank>> lists_;                     // by device
    std::vector<double> elsewhere_us_;                      // by device: the sum over all entries
    uint64_t last_number_ = 0;
};

}  // namespace

std::shared_ptr<Scheduler> make_pams() {
    return std::make_shared<Pams>();
}

}  // namespace heddle::devices
