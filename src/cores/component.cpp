// The C++ interface: each call of a Component is one call of its Exchange.
#include <functional>
#include <optional>
#include <utility>

#include "cores/exchange.hpp"
#include "heddle/cores.hpp"

namespace heddle {
namespace {

Outcome on(Exchange* exchange, uint32_t member, auto call, auto... arguments) {
    if (exchange == nullptr) return Outcome::kPermission;
    return exchange->call([&](Ledger& ledger, Actions& actions) {
        return (ledger.*call)(MemberId{member}, arguments..., actions);
    });
}

/// A copy of the callback, made outside of the lock; empty where none is set.
template <class Argument>
std::function<void(Argument)> callback_of(const Exchange* exchange, uint32_t member,
                                          Callbacks::Shared<Argument> Callbacks::*which) {
    if (exchange == nullptr) return {};
    const std::optional<Callbacks> set = exchange->callbacks(MemberId{member});
    if (!set || (*set).*which == nullptr) return {};
    return *((*set).*which);
}

}  // namespace

Component::Component(std::string_view name, const CpuSet& owned)
    : Component(Exchange::process(), name, owned) {}

Component::Component(Exchange& exchange, std::string_view name, const CpuSet& owned)
    : exchange_(&exchange), member_(exchange.attach(name, owned).value) {}

Component::~Component() {
    try {
        (void)detach();
    } catch (...) {  // another component's callback threw; this one is detached all the same
    }
}

Component::Component(Component&& other) noexcept
    : exchange_(std::exchange(other.exchange_, nullptr)), member_(std::exchange(other.member_, 0)) {}

Component& Component::operator=(Component&& other) noexcept {
    if (this == &other) return *this;
    Component old(std::move(*this));
    exchange_ = std::exchange(other.exchange_, nullptr);
    member_ = std::exchange(other.member_, 0);
    return *this;
}

Outcome Component::detach() {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->detach(MemberId{member_});
}

Outcome Component::lend() {
    return on(exchange_, member_, &Ledger::lend);
}
Outcome Component::lend_cpu(int cpu) {
    return on(exchange_, member_, &Ledger::lend_cpu, cpu);
}
Outcome Component::lend_cpus(int count) {
    return on(exchange_, member_, &Ledger::lend_cpus, count);
}
Outcome Component::lend_cpu_mask(const CpuSet& cpus) {
    return on(exchange_, member_, &Ledger::lend_cpu_mask, std::cref(cpus));
}

Outcome Component::reclaim() {
    return on(exchange_, member_, &Ledger::reclaim);
}
Outcome Component::reclaim_cpu(int cpu) {
    return on(exchange_, member_, &Ledger::reclaim_cpu, cpu);
}
Outcome Component::reclaim_cpus(int count) {
    return on(exchange_, member_, &Ledger::reclaim_cpus, count);
}
Outcome Component::reclaim_cpu_mask(const CpuSet& cpus) {
    return on(exchange_, member_, &Ledger::reclaim_cpu_mask, std::cref(cpus));
}

Outcome Component::acquire() {
    return on(exchange_, member_, &Ledger::acquire);
}
Outcome Component::acquire_cpu(int cpu) {
    return on(exchange_, member_, &Ledger::acquire_cpu, cpu);
}
Outcome Component::acquire_cpus(int count, const CpuSet& among) {
    return on(exchange_, member_, &Ledger::acquire_cpus_in, count, among);
}
Outcome Component::acquire_cpus(int count) {
    return on(exchange_, member_, &Ledger::acquire_cpus, count);
}
Outcome Component::acquire_cpu_mask(const CpuSet& cpus) {
    return on(exchange_, member_, &Ledger::acquire_cpu_mask, std::cref(cpus));
}

Outcome Component::borrow() {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->borrow(MemberId{member_});
}
Outcome Component::borrow_cpu(int cpu) {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->borrow_cpu(MemberId{member_}, cpu);
}
Outcome Component::borrow_cpus(int count) {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->borrow_cpus(MemberId{member_}, count);
}
Outcome Component::borrow_cpu_mask(const CpuSet& cpus) {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->borrow_cpu_mask(MemberId{member_}, cpus);
}

Outcome Component::return_all() {
    return on(exchange_, member_, &Ledger::return_all);
}
Outcome Component::return_cpu(int cpu) {
    return on(exchange_, member_, &Ledger::return_cpu, cpu);
}
Outcome Component::return_cpus(int count) {
    return on(exchange_, member_, &Ledger::return_cpus, count);
}
Outcome Component::return_cpu_mask(const CpuSet& cpus) {
    return on(exchange_, member_, &Ledger::return_cpu_mask, std::cref(cpus));
}

Outcome Component::set_max_parallelism(int max) {
    return on(exchange_, member_, &Ledger::set_max_parallelism, max);
}
Outcome Component::enable() {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->set_enabled(MemberId{member_}, true);
}
Outcome Component::disable() {
    return exchange_ == nullptr ? Outcome::kPermission : exchange_->set_enabled(MemberId{member_}, false);
}

Outcome Component::check_cpu(int cpu) const {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->ask([&](const Ledger& ledger) { return ledger.check_cpu(MemberId{member_}, cpu); });
}
CpuSet Component::usable() const {
    if (exchange_ == nullptr) return {};
    return exchange_->ask([&](const Ledger& ledger) { return ledger.usable(MemberId{member_}); });
}
CpuSet Component::to_return() const {
    if (exchange_ == nullptr) return {};
    return exchange_->ask([&](const Ledger& ledger) { return ledger.to_return(MemberId{member_}); });
}
CpuSet Component::awaited() const {
    if (exchange_ == nullptr) return {};
    return exchange_->ask([&](const Ledger& ledger) { return ledger.awaited(MemberId{member_}); });
}

Outcome Component::on_enable_cpu(std::function<void(int cpu)> callback) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_callback(MemberId{member_}, &Callbacks::enable_cpu, std::move(callback));
}

Outcome Component::on_disable_cpu(std::function<void(int cpu)> callback) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_callback(MemberId{member_}, &Callbacks::disable_cpu, std::move(callback));
}

Outcome Component::on_set_num_threads(std::function<void(int count)> callback) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_callback(MemberId{member_}, &Callbacks::set_num_threads, std::move(callback));
}

Outcome Component::on_set_active_mask(std::function<void(const CpuSet& cpus)> callback) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_callback(MemberId{member_}, &Callbacks::set_active_mask, std::move(callback));
}

Outcome Component::on_add_active_mask(std::function<void(const CpuSet& cpus)> callback) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_callback(MemberId{member_}, &Callbacks::add_active_mask, std::move(callback));
}

std::function<void(int cpu)> Component::enable_cpu_callback() const {
    return callback_of(exchange_, member_, &Callbacks::enable_cpu);
}

std::function<void(int cpu)> Component::disable_cpu_callback() const {
    return callback_of(exchange_, member_, &Callbacks::disable_cpu);
}

std::function<void(int count)> Component::set_num_threads_callback() const {
    return callback_of(exchange_, member_, &Callbacks::set_num_threads);
}

std::function<void(const CpuSet& cpus)> Component::set_active_mask_callback() const {
    return callback_of(exchange_, member_, &Callbacks::set_active_mask);
}

std::function<void(const CpuSet& cpus)> Component::add_active_mask_callback() const {
    return callback_of(exchange_, member_, &Callbacks::add_active_mask);
}

Outcome Component::on_count(std::function<WorkCounts()> count) {
    if (exchange_ == nullptr) return Outcome::kPermission;
    return exchange_->set_work_source(MemberId{member_}, std::move(count));
}

}  // namespace heddle
