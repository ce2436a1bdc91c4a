#include "cores/component_cpus.hpp"

#include <utility>

namespace heddle {

ComponentCpus::ComponentCpus(Exchange& exchange, std::string name, CpuSet owned, CpuSet among,
                             std::function<WorkCounts()> work)
    : exchange_(exchange),
      name_(std::move(name)),
      owned_(std::move(owned)),
      work_(std::move(work)),
      among_(std::move(among)) {}

void ComponentCpus::start(std::function<void()> changed) {
    component_.emplace(exchange_, name_, owned_);
    demand_ = 0;
    (void)component_->on_enable_cpu([this, changed](int cpu) {
        changed();
        // It was asked for before the pool was confined to others.
        if (const CpuSet only = among(); !only.empty() && !(only | owned_).contains(cpu))
            (void)component_->lend_cpu(cpu);
    });
    (void)component_->on_disable_cpu([changed](int) { changed(); });
    (void)component_->on_count(work_);
    changed_ = std::move(changed);
}

void ComponentCpus::stop() {
    // Waits for a callback that another thread is in, which may still ask for what is usable.
    (void)component_->detach();
    component_.reset();
}

CpuSet ComponentCpus::among() const {
    const std::lock_guard guard(mutex_);
    return among_;
}

CpuSet ComponentCpus::usable() const {
    const CpuSet usable = component_->usable(), among = this->among();
    return among.empty() ? usable : usable & (among | owned_);
}

void ComponentCpus::set_demand(int cpus) {
    demand_ = cpus;
    ask();
}

void ComponentCpus::returned(const CpuSet& cpus) {
    // What it may stay on after all, or has lent itself, is nothing to return: no update, no permission.
    for (const int cpu : cpus) (void)component_->return_cpu(cpu);
    // Those that it was confined away from are its still, and for others to use.
    if (const CpuSet beyond = (component_->usable() & cpus) - usable(); !beyond.empty())
        (void)component_->lend_cpu_mask(beyond);
    ask();
}

void ComponentCpus::give_back(const CpuSet& cpus) {
    (void)component_->lend_cpu_mask(cpus);
    if (usable().count() < demand_) ask();
}

void ComponentCpus::confine(const CpuSet& among) {
    {
        const std::lock_guard guard(mutex_);
        among_ = among;
    }
    // The pool leaves those that are gone, and says so by returned().
    changed_();
    ask();
}

/// By one thread at a time, which asks again where another wanted to meanwhile.
void ComponentCpus::ask() {
    if (asking_.fetch_add(1) > 0) return;
    int seen;
    do {
        seen = asking_.load();
        try {
            ask_once();
        } catch (...) {
            asking_.store(0);  // or nobody would ask again
            throw;
        }
    } while (!asking_.compare_exchange_strong(seen, 0));
}

void ComponentCpus::ask_once() {
    // Requests that wait are replaced, not added to. None is made of a single CPU: its queue has room for a
    // few only, and who was turned away would have to ask again.
    (void)component_->acquire_cpus(0);
    const CpuSet usable = this->usable(), among = this->among();
    const int lack = demand_ - usable.count();
    if (lack <= 0) return;
    if (among.empty())
        (void)component_->acquire_cpus(lack);
    else
        (void)component_->acquire_cpus(lack, (among | owned_) - usable);
}

}  // namespace heddle
