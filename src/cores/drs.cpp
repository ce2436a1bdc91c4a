// The C interface: a handle is a member's id, and each call is one call of the process's Exchange.
#include "heddle/drs.h"

#include <array>
#include <cerrno>
#include <new>
#include <optional>

#include "cores/exchange.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

MemberId member_of(const heddle_drs_t* drs) {
    const auto value = reinterpret_cast<uintptr_t>(drs);
    return value <= UINT32_MAX ? MemberId{static_cast<uint32_t>(value)} : kNobody;
}

heddle_drs_ret_t code_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kSuccess:
            return HEDDLE_DRS_SUCCESS;
        case Outcome::kNoted:
            return HEDDLE_DRS_NOTED;
        case Outcome::kNoUpdate:
            return HEDDLE_DRS_NOUPDT;
        case Outcome::kDisabled:
            return HEDDLE_DRS_DISBLD;
        case Outcome::kPermission:
            return HEDDLE_DRS_PERM;
        case Outcome::kTooManyRequests:
            return HEDDLE_DRS_REQST;
    }
    return HEDDLE_DRS_PERM;
}

/// No exception leaves: a C program can do nothing with one. What throws here is a lack of memory, or a C++
/// callback of another component, which has no way of telling, and undoes nothing.
template <class Call>
heddle_drs_ret_t guarded(Call&& call) noexcept {
    Exchange::decided_before_throw.reset();
    try {
        return code_of(call(Exchange::process()));
    } catch (...) {
        return code_of(Exchange::decided_before_throw.value_or(Outcome::kPermission));
    }
}

template <class... Parameters, class... Arguments>
heddle_drs_ret_t on(heddle_drs_t* drs, Outcome (Ledger::*call)(MemberId, Parameters...),
                    const Arguments&... arguments) {
    return guarded([&](Exchange& exchange) {
        return exchange.call([&](Ledger& ledger, Actions& actions) {
            return (ledger.*call)(member_of(drs), arguments..., actions);
        });
    });
}

heddle_drs_ret_t on_mask(heddle_drs_t* drs, Outcome (Ledger::*call)(MemberId, const CpuSet&, Actions&),
                         const cpu_set_t* cpus) {
    if (cpus == nullptr) return HEDDLE_DRS_PERM;
    return guarded([&](Exchange& exchange) {
        const CpuSet set = CpuSet::from_native(cpus, sizeof *cpus);
        return exchange.call(
            [&](Ledger& ledger, Actions& actions) { return (ledger.*call)(member_of(drs), set, actions); });
    });
}

cpu_set_t to_c(const CpuSet& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus)
        if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    return set;
}

/// What callback_set got, so that callback_get gives the very pointer; and the callback that calls it.
struct CountCallback {
    heddle_drs_callback_t pointer;
    void operator()(int value) const { reinterpret_cast<void (*)(int)>(pointer)(value); }
};
struct MaskCallback {
    heddle_drs_callback_t pointer;
    void operator()(const CpuSet& cpus) const {
        const cpu_set_t set = to_c(cpus);
        reinterpret_cast<void (*)(const cpu_set_t*)>(pointer)(&set);
    }
};

/// Calls `use` with the member of Callbacks for `which`; false where there is no such kind.
template <class Use>
bool with_kind(int which, Use&& use) {
    switch (which) {
        case HEDDLE_DRS_SET_NUM_THREADS:
            use(&Callbacks::set_num_threads);
            return true;
        case HEDDLE_DRS_SET_ACTIVE_MASK:
            use(&Callbacks::set_active_mask);
            return true;
        case HEDDLE_DRS_ADD_ACTIVE_MASK:
            use(&Callbacks::add_active_mask);
            return true;
        case HEDDLE_DRS_ENABLE_CPU:
            use(&Callbacks::enable_cpu);
            return true;
        case HEDDLE_DRS_DISABLE_CPU:
            use(&Callbacks::disable_cpu);
            return true;
    }
    return false;
}

template <class Argument>
struct Kind {
    using Target = CountCallback;
};
template <>
struct Kind<const CpuSet&> {
    using Target = MaskCallback;
};

int error_number(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kPermission:
            return EPERM;
        case ErrorCode::kLimit:
            return EAGAIN;
        case ErrorCode::kInvalidArgument:
        case ErrorCode::kBadInput:
            return EINVAL;
        default:
            return EIO;
    }
}

}  // namespace
}  // namespace heddle

using namespace heddle;

heddle_drs_t* heddle_drs_attach(const char* name, const cpu_set_t* owned) {
    if (name == nullptr) {
        errno = EINVAL;
        return nullptr;
    }
    try {
        const CpuSet cpus = owned == nullptr ? CpuSet{} : CpuSet::from_native(owned, sizeof *owned);
        const MemberId member = Exchange::process().attach(name, cpus);
        return reinterpret_cast<heddle_drs_t*>(static_cast<uintptr_t>(member.value));
    } catch (const Error& error) {
        errno = error_number(error);
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
    } catch (...) {
        errno = EIO;
    }
    return nullptr;
}

heddle_drs_ret_t heddle_drs_detach(heddle_drs_t* drs) {
    return guarded([&](Exchange& exchange) { return exchange.detach(member_of(drs)); });
}

heddle_drs_ret_t heddle_drs_enable(heddle_drs_t* drs) {
    return guarded([&](Exchange& exchange) { return exchange.set_enabled(member_of(drs), true); });
}

heddle_drs_ret_t heddle_drs_disable(heddle_drs_t* drs) {
    return guarded([&](Exchange& exchange) { return exchange.set_enabled(member_of(drs), false); });
}

heddle_drs_ret_t heddle_drs_set_max_parallelism(heddle_drs_t* drs, int max) {
    return on(drs, &Ledger::set_max_parallelism, max);
}

heddle_drs_ret_t heddle_drs_callback_set(heddle_drs_t* drs, int which, heddle_drs_callback_t callback) {
    return guarded([&](Exchange& exchange) {
        Outcome outcome = Outcome::kPermission;
        with_kind(which, [&]<class Argument>(Callbacks::Shared<Argument> Callbacks::*kind) {
            std::function<void(Argument)> function;
            if (callback != nullptr) function = typename Kind<Argument>::Target{callback};
            outcome = exchange.set_callback(member_of(drs), kind, std::move(function));
        });
        return outcome;
    });
}

heddle_drs_ret_t heddle_drs_callback_get(heddle_drs_t* drs, int which, heddle_drs_callback_t* callback) {
    if (callback == nullptr) return HEDDLE_DRS_PERM;
    return guarded([&](Exchange& exchange) {
        const std::optional<Callbacks> set = exchange.callbacks(member_of(drs));
        if (!set) return Outcome::kPermission;
        *callback = nullptr;
        const bool known =
            with_kind(which, [&]<class Argument>(Callbacks::Shared<Argument> Callbacks::*kind) {
                if ((*set).*kind == nullptr) return;
                if (const auto* target = ((*set).*kind)->template target<typename Kind<Argument>::Target>())
                    *callback = target->pointer;
            });
        return known ? Outcome::kSuccess : Outcome::kPermission;
    });
}

heddle_drs_ret_t heddle_drs_lend(heddle_drs_t* drs) {
    return on(drs, &Ledger::lend);
}

heddle_drs_ret_t heddle_drs_lend_cpu(heddle_drs_t* drs, int cpu) {
    return on(drs, &Ledger::lend_cpu, cpu);
}

heddle_drs_ret_t heddle_drs_lend_cpus(heddle_drs_t* drs, int count) {
    return on(drs, &Ledger::lend_cpus, count);
}

heddle_drs_ret_t heddle_drs_lend_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus) {
    return on_mask(drs, &Ledger::lend_cpu_mask, cpus);
}

heddle_drs_ret_t heddle_drs_reclaim(heddle_drs_t* drs) {
    return on(drs, &Ledger::reclaim);
}

heddle_drs_ret_t heddle_drs_reclaim_cpu(heddle_drs_t* drs, int cpu) {
    return on(drs, &Ledger::reclaim_cpu, cpu);
}

heddle_drs_ret_t heddle_drs_reclaim_cpus(heddle_drs_t* drs, int count) {
    return on(drs, &Ledger::reclaim_cpus, count);
}

heddle_drs_ret_t heddle_drs_reclaim_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus) {
    return on_mask(drs, &Ledger::reclaim_cpu_mask, cpus);
}

heddle_drs_ret_t heddle_drs_acquire(heddle_drs_t* drs) {
    return on(drs, &Ledger::acquire);
}

heddle_drs_ret_t heddle_drs_acquire_cpu(heddle_drs_t* drs, int cpu) {
    return on(drs, &Ledger::acquire_cpu, cpu);
}

heddle_drs_ret_t heddle_drs_acquire_cpus(heddle_drs_t* drs, int count) {
    return on(drs, &Ledger::acquire_cpus, count);
}

heddle_drs_ret_t heddle_drs_acquire_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus) {
    return on_mask(drs, &Ledger::acquire_cpu_mask, cpus);
}

heddle_drs_ret_t heddle_drs_borrow(heddle_drs_t* drs) {
    return guarded([&](Exchange& exchange) { return exchange.borrow(member_of(drs)); });
}

heddle_drs_ret_t heddle_drs_borrow_cpu(heddle_drs_t* drs, int cpu) {
    return guarded([&](Exchange& exchange) { return exchange.borrow_cpu(member_of(drs), cpu); });
}

heddle_drs_ret_t heddle_drs_borrow_cpus(heddle_drs_t* drs, int count) {
    return guarded([&](Exchange& exchange) { return exchange.borrow_cpus(member_of(drs), count); });
}

heddle_drs_ret_t heddle_drs_borrow_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus) {
    if (cpus == nullptr) return HEDDLE_DRS_PERM;
    return guarded([&](Exchange& exchange) {
        return exchange.borrow_cpu_mask(member_of(drs), CpuSet::from_native(cpus, sizeof *cpus));
    });
}

heddle_drs_ret_t heddle_drs_return_all(heddle_drs_t* drs) {
    return on(drs, &Ledger::return_all);
}

heddle_drs_ret_t heddle_drs_return_cpu(heddle_drs_t* drs, int cpu) {
    return on(drs, &Ledger::return_cpu, cpu);
}

heddle_drs_ret_t heddle_drs_return_cpus(heddle_drs_t* drs, int count) {
    return on(drs, &Ledger::return_cpus, count);
}

heddle_drs_ret_t heddle_drs_return_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus) {
    return on_mask(drs, &Ledger::return_cpu_mask, cpus);
}

heddle_drs_ret_t heddle_drs_check_cpu(heddle_drs_t* drs, int cpu) {
    return guarded([&](Exchange& exchange) {
        return exchange.ask([&](const Ledger& ledger) { return ledger.check_cpu(member_of(drs), cpu); });
    });
}

heddle_drs_ret_t heddle_drs_usable(heddle_drs_t* drs, cpu_set_t* cpus) {
    if (cpus == nullptr) return HEDDLE_DRS_PERM;
    return guarded([&](Exchange& exchange) {
        return exchange.ask([&](const Ledger& ledger) {
            if (!ledger.attached(member_of(drs))) return Outcome::kPermission;
            *cpus = to_c(ledger.usable(member_of(drs)));
            return Outcome::kSuccess;
        });
    });
}
