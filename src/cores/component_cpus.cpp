#include "cores/component_cpus.hpp"

#include <utility>

namespace heddle {

ComponentCpus::ComponentCpus(Exchange& exchange, std::string name, CpuSet owned, CpuSet among)
    : exchange_(exchange), name_(std::move(name)), owned_(std::move(owned)), among_(std::move(among)) {}

void ComponentCpus::start(std::function<void()> changed) {
    component_.emplace(exchange_, name_, owned_);
    demand_ = 0;
    (void)component_->on_enable_cpu([changed](int) { changed(); });
    (void)component_->on_disable_cpu([changed](int) { changed(); });
}

void ComponentCpus::stop() {
    // Waits for a callback that another thread is in, which may still ask for what is usable.
    (void)component_->detach();
    component_.reset();
}

CpuSet ComponentCpus::usable() const {
    return component_->usable();
}

void ComponentCpus::set_demand(int cpus) {
    demand_ = cpus;
    ask();
}

void ComponentCpus::returned(const CpuSet& cpus) {
    // What it may stay on after all, or has lent itself, is nothing to return: no update, no permission.
    for (const int cpu : cpus) (void)component_->return_cpu(cpu);
    ask();
}

void ComponentCpus::give_back(const CpuSet& cpus) {
    (void)component_->lend_cpu_mask(cpus);
    if (component_->usable().count() < demand_) ask();
}

void ComponentCpus::ask() {
    // Requests that wait are replaced, not added to. Where too many wait already, those that come later in
    // the program's life ask again with the next change of demand.
    (void)component_->acquire_cpus(0);
    const CpuSet usable = component_->usable();
    const int lack = demand_ - usable.count();
    if (lack <= 0) return;
    if (among_.empty())
        (void)component_->acquire_cpus(lack);
    else
        (void)component_->acquire_cpu_mask(exchange_.ask([&](const Ledger& ledger) {
            return ledger.machine().nearest(usable, (among_ | owned_) - usable, lack);
        }));
}

}  // namespace heddle
