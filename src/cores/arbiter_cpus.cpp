#include "cores/arbiter_cpus.hpp"

#include <utility>

namespace heddle {

ArbiterCpus::ArbiterCpus(Machine machine, ArbiterClientOptions options, std::string name)
    : ArbiterCpus(
          machine,
          [machine, options](ArbiterLink::Callbacks callbacks) mutable {
              options.in_children = false;  // a pool is not for use there
              if (options.allowed.empty()) options.allowed = allowance(machine).usable;
              return std::make_unique<ArbiterClient>(options, std::move(callbacks));
          },
          std::move(name)) {}

ArbiterCpus::ArbiterCpus(Machine machine, Connect connect, std::string name)
    : machine_(std::move(machine)), connect_(std::move(connect)), name_(std::move(name)) {}

void ArbiterCpus::start(std::function<void()> changed) {
    changed_ = std::move(changed);
    // What the link says before it is here waits for the mutex.
    const std::lock_guard guard(mutex_);
    demand_ = 0;
    link_ = connect_(
        {[this](const CpuSet& cpus) { gained(cpus); }, [this](const CpuSet& cpus) { asked_back(cpus); },
         [this](heddle_client_page* page) { components_.show_on(page); }, [this] { components_.abandon(); }});
    usable_ = link_->held();
    show();
}

void ArbiterCpus::stop() {
    std::unique_ptr<ArbiterLink> ending;
    {
        const std::lock_guard guard(mutex_);
        ending = std::move(link_);
        usable_ = lent_ = leaving_ = {};
        show();
    }
    ending.reset();  // waits for its callbacks, which want the mutex
    changed_ = nullptr;
}

CpuSet ArbiterCpus::usable() const {
    const std::lock_guard guard(mutex_);
    return usable_;
}

bool ArbiterCpus::managed() const {
    const std::lock_guard guard(mutex_);
    return link_ != nullptr && link_->managed();
}

std::string ArbiterCpus::problem() const {
    const std::lock_guard guard(mutex_);
    return link_ == nullptr ? "" : link_->problem();
}

void ArbiterCpus::set_demand(int cpus) {
    bool more = false;
    {
        const std::lock_guard guard(mutex_);
        demand_ = cpus;
        link_->set_demand(cpus);
        more = take_back();
        show();
    }
    if (more) changed_();
}

void ArbiterCpus::returned(const CpuSet& cpus) {
    const std::lock_guard guard(mutex_);
    for (const int cpu : cpus& leaving_) release(cpu);
}

CpuSet ArbiterCpus::to_return() const {
    const std::lock_guard guard(mutex_);
    return leaving_;
}

void ArbiterCpus::give_back(const CpuSet& cpus) {
    bool more = false;
    {
        const std::lock_guard guard(mutex_);
        for (const int cpu : cpus& leaving_) release(cpu);
        for (const int cpu : cpus& usable_) lend(cpu);
        more = take_back();
        show();
    }
    if (more) changed_();
}

void ArbiterCpus::gained(const CpuSet& cpus) {
    {
        const std::lock_guard guard(mutex_);
        if (link_ == nullptr) return;
        // On those that leave the pool still is, and on those that start() found it may be.
        CpuSet spare = cpus - leaving_ - usable_;
        leaving_ -= cpus;
        lent_ -= cpus;
        usable_ |= cpus;
        // CPUs that nobody wants are given to whoever is there: the pool need not wake up for them.
        for (; usable_.count() > demand_ && !spare.empty(); spare.erase(spare.last())) lend(spare.last());
        show();
        if (!usable_.intersects(cpus)) return;
    }
    changed_();
}

void ArbiterCpus::asked_back(const CpuSet& cpus) {
    {
        const std::lock_guard guard(mutex_);
        if (link_ == nullptr) return;
        leaving_ |= cpus & usable_;
        for (const int cpu : cpus - usable_) release(cpu);  // the pool gave it back a moment ago
        lent_ -= cpus;
        usable_ -= cpus;
        (void)take_back();
        show();
    }
    changed_();
}

/// Under mutex_.
void ArbiterCpus::release(int cpu) {
    leaving_.erase(cpu);
    link_->released(cpu);
}

/// Under mutex_. One that is not held any more is about to be asked back.
void ArbiterCpus::lend(int cpu) {
    usable_.erase(cpu);
    if (link_->lend(cpu) == ArbiterLink::Lent::kLent) lent_.insert(cpu);
}

/// Under mutex_. True where it made some usable.
bool ArbiterCpus::take_back() {
    bool more = false;
    while (usable_.count() < demand_ && !lent_.empty()) {
        const CpuSet nearest = machine_.nearest(usable_, lent_, 1);
        const int cpu = nearest.empty() ? lent_.first() : nearest.first();
        lent_.erase(cpu);
        if (!link_->reclaim(cpu)) continue;
        usable_.insert(cpu);
        more = true;
    }
    return more;
}

/// Under mutex_, after each change of usable_.
void ArbiterCpus::show() {
    if (name_.empty()) return;
    for (const int cpu : usable_ - shown_) components_.set(cpu, 1, name_);
    for (const int cpu : shown_ - usable_) components_.set(cpu, 0, {});
    shown_ = usable_;
}

}  // namespace heddle
