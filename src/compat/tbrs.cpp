// The names of seed 000 for native offload and for pausing (compat/tbrs.h).
#include <strings.h>

#include <cerrno>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "heddle/compat/tbrs.h"
#include "heddle/offload.hpp"
#include "tasks/c_interface.hpp"

namespace {

using namespace heddle;

/// Engines that were initialised, the first one first; for the process, and never destroyed.
class Initialised {
  public:
    static Initialised& process() {
        static auto* all = new Initialised;
        return *all;
    }

    void add_service(const char* name, tbrs_polling_t function, void* data) {
        std::shared_ptr<Service> service;  // outlives the offload, which calls it
        std::shared_ptr<Offload> offload;
        {
            const std::lock_guard guard(mutex_);
            if (entries_.empty()) c::refuse("polling services need an engine: call tbrs_initialize() first");
            if (function == nullptr) c::refuse("a polling service needs a function");
            for (const auto& one : services_)
                if (one->function == function && one->data == data) {
                    // Its call may be its last one, after which it would be gone.
                    if (!one->is_called || one->again)
                        c::refuse("the polling service is registered with these data already");
                    one->again = true;
                    return;
                }
            offload = entries_.front().offload;
            service = services_.emplace_back(std::make_shared<Service>(function, data, offload));
        }
        try {
            offload->register_polling_service(name == nullptr ? "" : name, poll, service.get());
        } catch (...) {
            forget(service.get());
            throw;
        }
    }
    void remove_service(tbrs_polling_t function, void* data) {
        std::shared_ptr<Service> found;
        std::shared_ptr<Offload> offload;
        {
            const std::lock_guard guard(mutex_);
            for (const auto& one : services_)
                if (one->function == function && one->data == data) found = one;
            if (found != nullptr) offload = found->offload;
        }
        if (found == nullptr)
            c::refuse(
                "the polling service is not registered with these data: it has done its work, or never was");
        offload->unregister_polling_service(poll, found.get());
        forget(found.get());
    }

    void start(const char* name) {
        if (is_used_again(name)) return;
        const auto made = std::make_shared<Offload>(name);
        const std::lock_guard guard(mutex_);
        if (Entry* const entry = find(name); entry != nullptr)
            ++entry->users;
        else
            entries_.push_back({made, 1});
    }
    void stop(const char* name) {
        const std::shared_ptr<Offload> last = on(name);
        last->wait();
        Services services;
        while (!leave(name, last, services)) last->drain();
        for (const auto& service : services) {
            try {
                last->unregister_polling_service(poll, service.get());
            } catch (const Error&) {
                // It has done its work meanwhile.
            }
        }
    }
    [[nodiscard]] std::shared_ptr<Offload> on(const char* name) {
        const std::lock_guard guard(mutex_);
        Entry* const entry = find(name);
        if (entry == nullptr) refuse_unknown(name);
        return entry->offload;
    }

  private:
    struct Service {
        Service(tbrs_polling_t its_function, void* its_data, std::shared_ptr<Offload> its_offload)
            : function(its_function), data(its_data), offload(std::move(its_offload)) {}
        tbrs_polling_t function;
        void* data;
        std::shared_ptr<Offload> offload;
        // With the mutex.
        bool is_called = false;
        bool again = false;  // registered once more during that
    };
    using Services = std::list<std::shared_ptr<Service>>;

    bool is_used_again(const char* name) {
        const std::lock_guard guard(mutex_);
        Entry* const entry = find(name);
        if (entry != nullptr) ++entry->users;
        return entry != nullptr;
    }
    /// The last user takes the engine's services with him. False: he has kernels to wait for, which may spawn
    /// others, and need services.
    bool leave(const char* name, const std::shared_ptr<Offload>& offload, Services& services) {
        const std::lock_guard guard(mutex_);
        Entry* const entry = find(name);
        if (entry == nullptr || entry->offload != offload) return true;
        if (entry->users == 1 && !offload->idle()) return false;
        if (--entry->users > 0) return true;
        entries_.remove_if([entry](const Entry& one) { return &one == entry; });
        for (auto one = services_.begin(); one != services_.end();) {
            const auto next = std::next(one);
            if ((*one)->offload == offload) {
                (*one)->offload = nullptr;
                services.splice(services.end(), services_, one);
            }
            one = next;
        }
        return true;
    }
    static bool poll(void* service) {
        auto* const it = static_cast<Service*>(service);
        Initialised& all = process();
        {
            const std::lock_guard guard(all.mutex_);
            it->is_called = true;
        }
        const bool is_done = it->function(it->data) != 0;
        Services gone;
        const std::lock_guard guard(all.mutex_);
        it->is_called = false;
        if (std::exchange(it->again, false) || !is_done) return false;
        all.take(it, gone);
        return true;
    }
    void forget(const Service* service) {
        Services gone;
        const std::lock_guard guard(mutex_);
        take(service, gone);
    }
    /// With the mutex.
    void take(const Service* service, Services& gone) {
        for (auto one = services_.begin(); one != services_.end(); ++one)
            if (one->get() == service) {
                // Here its entry has one, too. Later it might be the last, and of a worker of its own.
                (*one)->offload = nullptr;
                gone.splice(gone.end(), services_, one);
                return;
            }
    }

    struct Entry {
        std::shared_ptr<Offload> offload;
        int users;
    };
    Entry* find(const char* name) {
        for (Entry& entry : entries_)
            if (strcasecmp(entry.offload->engine().c_str(), name) == 0) return &entry;
        return nullptr;
    }
    [[noreturn]] static void refuse_unknown(const char* name) {
        c::refuse(std::string("the engine ") + name + " was not initialised: call tbrs_initialize() first");
    }

    std::mutex mutex_;  // for what follows; not held while engines are called, which call back components
    std::list<Entry> entries_;
    Services services_;
};

const char* name_of(const void* data) {
    return data == nullptr ? "native" : static_cast<const char*>(data);
}

/// A task may go on in another thread, while the compiler takes the place of errno for the same all along.
[[gnu::noinline]] int errno_here() noexcept {
    return errno;
}
[[gnu::noinline]] void tell(int number) noexcept {
    errno = number;
}

/// Results go into errno, which a success leaves as it is.
template <class Call>
void telling(Call&& call) noexcept {
    const int before = errno_here();
    switch (c::guarded(call)) {
        case HEDDLE_TASK_SUCCESS:
            return tell(before);
        case HEDDLE_TASK_INVALID:
            return tell(EINVAL);
        case HEDDLE_TASK_UNAVAILABLE:
            return tell(ENOENT);
        case HEDDLE_TASK_LIMIT:
            return tell(EAGAIN);
        default:
            return tell(EIO);
    }
}

heddle_condition_t* condition_in(const tbrs_block_cond_t* cond) {
    if (cond == nullptr) c::refuse("the block condition is NULL");
    return static_cast<heddle_condition_t*>(*cond);
}

/// The C interface's own result, once more as an exception: its message is kept already.
void expect_success(heddle_task_ret_t result) {
    if (result == HEDDLE_TASK_SUCCESS) return;
    const std::string message = heddle_task_error_message();
    throw Error(result == HEDDLE_TASK_LIMIT ? ErrorCode::kLimit : ErrorCode::kInvalidArgument, message);
}

}  // namespace

void tbrs_initialize(void* data) {
    telling([&] { Initialised::process().start(name_of(data)); });
}

void tbrs_shutdown(void* data) {
    telling([&] { Initialised::process().stop(name_of(data)); });
}

void tbrs_spawn_kernel_on_cpus(void* data, void (*function)(void*), void* args, cpu_set_t* cpu_set) {
    telling([&] {
        if (function == nullptr) c::refuse("a kernel needs a function to run");
        const auto offload = Initialised::process().on(name_of(data));
        const auto body = [function, args] { function(args); };
        if (cpu_set == nullptr)
            (void)offload->spawn(body);
        else
            (void)offload->spawn(body, CpuSet::from_native(cpu_set, sizeof *cpu_set));
    });
}

void tbrs_create_block_condition(tbrs_block_cond_t* cond) {
    telling([&] {
        if (cond == nullptr) c::refuse("there is no place for the block condition");
        heddle_condition_t* const made = heddle_condition_create();
        if (made == nullptr) expect_success(heddle_task_error());
        *cond = made;
    });
}

void tbrs_block_current_task(tbrs_block_cond_t* cond) {
    telling([&] {
        heddle_condition_t* const condition = condition_in(cond);
        expect_success(heddle_condition_block(condition));
        *cond = nullptr;
        expect_success(heddle_condition_destroy(condition));
    });
}

void tbrs_signal_block_condition(tbrs_block_cond_t* cond) {
    telling([&] { expect_success(heddle_condition_signal(condition_in(cond))); });
}

void tbrs_register_polling_service(char const* service_name, tbrs_polling_t function, void* data) {
    telling([&] { Initialised::process().add_service(service_name, function, data); });
}

void tbrs_unregister_polling_service(char const*, tbrs_polling_t function, void* data) {
    telling([&] { Initialised::process().remove_service(function, data); });
}
