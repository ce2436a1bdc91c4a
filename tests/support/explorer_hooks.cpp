// What code compiled with -fsanitize=thread calls, leading to the Explorer in place of ThreadSanitizer. While
// nothing is explored, each does what it stands for. The system's own calls come here by the linker's --wrap.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "support/explorer.hpp"

using heddle::test::Explorer;

namespace {

uintptr_t place(const volatile void* address) {
    return reinterpret_cast<uintptr_t>(address);
}

void plain(const volatile void* address, unsigned size, bool write) {
    if (Explorer* explorer = Explorer::current()) explorer->plain(place(address), size, write);
}

uint64_t replaced(uint64_t, uint64_t by) {
    return by;
}
uint64_t sum(uint64_t a, uint64_t b) {
    return a + b;
}
uint64_t difference(uint64_t a, uint64_t b) {
    return a - b;
}
uint64_t both(uint64_t a, uint64_t b) {
    return a & b;
}
uint64_t either(uint64_t a, uint64_t b) {
    return a | b;
}
uint64_t differing(uint64_t a, uint64_t b) {
    return a ^ b;
}

constexpr long kWaitEither = 449;  // futex_waitv, here of two words

}  // namespace

// NOLINTBEGIN: these names are the compiler's.
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define HEDDLE_PLAIN(size)                             \
    void __tsan_read##size(void* address) {            \
        plain(address, size, false);                   \
    }                                                  \
    void __tsan_write##size(void* address) {           \
        plain(address, size, true);                    \
    }                                                  \
    void __tsan_unaligned_read##size(void* address) {  \
        plain(address, size, false);                   \
    }                                                  \
    void __tsan_unaligned_write##size(void* address) { \
        plain(address, size, true);                    \
    }
HEDDLE_PLAIN(1)
HEDDLE_PLAIN(2)
HEDDLE_PLAIN(4)
HEDDLE_PLAIN(8)
HEDDLE_PLAIN(16)
void __tsan_read_range(void* address, unsigned long size) {
    plain(address, static_cast<unsigned>(size), false);
}
void __tsan_write_range(void* address, unsigned long size) {
    plain(address, static_cast<unsigned>(size), true);
}

#define HEDDLE_MODIFY(bits, name, change, builtin)                                                         \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* a, uint##bits##_t v, int order) { \
        if (Explorer* explorer = Explorer::current())                                                      \
            return static_cast<uint##bits##_t>(explorer->modify(place(a), bits / 8, order, change, v));    \
        return builtin(a, v, __ATOMIC_SEQ_CST);                                                            \
    }
#define HEDDLE_ATOMIC(bits)                                                                                  \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* a, int order) {                 \
        if (Explorer* explorer = Explorer::current())                                                        \
            return static_cast<uint##bits##_t>(explorer->load(place(a), bits / 8, order));                   \
        return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                         \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t* a, uint##bits##_t v, int order) {              \
        if (Explorer* explorer = Explorer::current()) return explorer->store(place(a), bits / 8, v, order);  \
        __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                            \
    }                                                                                                        \
    HEDDLE_MODIFY(bits, exchange, replaced, __atomic_exchange_n)                                             \
    HEDDLE_MODIFY(bits, fetch_add, sum, __atomic_fetch_add)                                                  \
    HEDDLE_MODIFY(bits, fetch_sub, difference, __atomic_fetch_sub)                                           \
    HEDDLE_MODIFY(bits, fetch_and, both, __atomic_fetch_and)                                                 \
    HEDDLE_MODIFY(bits, fetch_or, either, __atomic_fetch_or)                                                 \
    HEDDLE_MODIFY(bits, fetch_xor, differing, __atomic_fetch_xor)                                            \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t* a, uint##bits##_t* expected, \
                                                       uint##bits##_t v, int order, int failure) {           \
        Explorer* explorer = Explorer::current();                                                            \
        if (explorer == nullptr)                                                                             \
            return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
        uint64_t found = *expected;                                                                          \
        const bool same = explorer->compare_exchange(place(a), bits / 8, found, v, order, failure);          \
        *expected = static_cast<uint##bits##_t>(found);                                                      \
        return same;                                                                                         \
    }                                                                                                        \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile uint##bits##_t* a, uint##bits##_t* expected,   \
                                                     uint##bits##_t v, int order, int failure) {             \
        return __tsan_atomic##bits##_compare_exchange_strong(a, expected, v, order, failure);                \
    }                                                                                                        \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                               \
        volatile uint##bits##_t* a, uint##bits##_t expected, uint##bits##_t v, int order, int failure) {     \
        __tsan_atomic##bits##_compare_exchange_strong(a, &expected, v, order, failure);                      \
        return expected;                                                                                     \
    }
HEDDLE_ATOMIC(8)
HEDDLE_ATOMIC(16)
HEDDLE_ATOMIC(32)
HEDDLE_ATOMIC(64)

void __tsan_atomic_thread_fence(int order) {
    if (Explorer* explorer = Explorer::current()) return explorer->fence(order);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
void __tsan_atomic_signal_fence(int) {}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a[6];
    for (long& argument : a) argument = va_arg(arguments, long);
    va_end(arguments);
    Explorer* explorer = Explorer::current();
    if (explorer != nullptr && number == kWaitEither) {
        struct Waiter {  // struct futex_waitv
            uint64_t value, address, flags;
        };
        const auto* waiters = reinterpret_cast<const Waiter*>(a[0]);
        const Explorer::Word one{waiters[0].address, static_cast<uint32_t>(waiters[0].value)};
        const Explorer::Word other{waiters[1].address, static_cast<uint32_t>(waiters[1].value)};
        if (explorer->sleep(one, other, a[3] != 0)) return 0;
        errno = EAGAIN;
        return -1;
    }
    if (explorer != nullptr && number == SYS_membarrier) {
        explorer->fence_everywhere();
        return 0;
    }
    if (explorer == nullptr || number != SYS_futex)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const auto value = static_cast<uint32_t>(a[2]);
    const auto word = static_cast<uintptr_t>(a[0]);
    const long operation = a[1] & FUTEX_CMD_MASK;
    if (operation == FUTEX_WAKE) {
        explorer->wake(word, static_cast<int>(value));
        return 0;
    }
    if (explorer->sleep({word, value}, a[3] != 0)) return 0;
    errno = EAGAIN;
    return -1;
}

pthread_t __real_pthread_self();
pthread_t __wrap_pthread_self() {
    Explorer* explorer = Explorer::current();
    return explorer == nullptr || explorer->self() == 0 ? __real_pthread_self()
                                                        : static_cast<pthread_t>(explorer->self());
}
void* __real_malloc(size_t size);
void* __wrap_malloc(size_t size) {
    void* memory = __real_malloc(size);
    if (Explorer* explorer = Explorer::current()) explorer->forget(place(memory), size);
    return memory;
}
int __real_sched_yield();
int __wrap_sched_yield() {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_sched_yield();
    explorer->yield();
    return 0;
}
int __real_nanosleep(const timespec* time, timespec* rest);
int __wrap_nanosleep(const timespec* time, timespec* rest) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_nanosleep(time, rest);
    explorer->yield();
    return 0;
}
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_mutex_lock(mutex);
    explorer->lock(place(mutex));
    return 0;
}
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_mutex_trylock(mutex);
    return explorer->try_lock(place(mutex)) ? 0 : EBUSY;
}
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_mutex_unlock(mutex);
    explorer->unlock(place(mutex));
    return 0;
}
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* argument) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_create(thread, attributes, body, argument);
    *thread = static_cast<pthread_t>(explorer->thread([=] { body(argument); }));
    return 0;
}
int __real_pthread_join(pthread_t thread, void** result);
int __wrap_pthread_join(pthread_t thread, void** result) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_join(thread, result);
    explorer->join(static_cast<int>(thread));
    return 0;
}

// std::thread and std::condition_variable are in the C++ library, out of the linker's reach below these.
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, std::unique_ptr<std::thread::_State>* body, void (*depend)());
void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, std::unique_ptr<std::thread::_State>* body, void (*depend)()) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr)
        return __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
            self, body, depend);
    const std::shared_ptr<std::thread::_State> state(body->release());
    const auto number = static_cast<pthread_t>(explorer->thread([state] { state->_M_run(); }));
    std::memcpy(static_cast<void*>(self), &number, sizeof number);  // all that a std::thread is
}
void __real__ZNSt6thread4joinEv(std::thread* self);
void __wrap__ZNSt6thread4joinEv(std::thread* self) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real__ZNSt6thread4joinEv(self);
    explorer->join(static_cast<int>(self->native_handle()));
    std::memset(static_cast<void*>(self), 0, sizeof *self);
}
void __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* self,
                                                                      std::unique_lock<std::mutex>& lock);
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* self,
                                                                      std::unique_lock<std::mutex>& lock) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr)
        return __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(self, lock);
    explorer->unlock(place(lock.mutex()));
    (void)explorer->sleep_at_once(place(self), false);
    explorer->lock(place(lock.mutex()));
}
int __real_pthread_cond_clockwait(pthread_cond_t* self, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until);
int __wrap_pthread_cond_clockwait(pthread_cond_t* self, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real_pthread_cond_clockwait(self, mutex, clock, until);
    explorer->unlock(place(mutex));
    const bool woken = explorer->sleep_at_once(place(self), true);
    explorer->lock(place(mutex));
    return woken ? 0 : ETIMEDOUT;
}
void __real__ZNSt18condition_variable10notify_oneEv(std::condition_variable* self);
void __wrap__ZNSt18condition_variable10notify_oneEv(std::condition_variable* self) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real__ZNSt18condition_variable10notify_oneEv(self);
    explorer->wake(place(self), 1);
}
void __real__ZNSt18condition_variable10notify_allEv(std::condition_variable* self);
void __wrap__ZNSt18condition_variable10notify_allEv(std::condition_variable* self) {
    Explorer* explorer = Explorer::current();
    if (explorer == nullptr) return __real__ZNSt18condition_variable10notify_allEv(self);
    explorer->wake(place(self), INT32_MAX);
}

}  // extern "C"
// NOLINTEND

// Memory that is given anew carries no accesses of its last owner; who uses what was given back is found.
void* operator new(size_t size) {
    void* memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new(size_t size, std::align_val_t alignment) {
    const auto unit = static_cast<size_t>(alignment);
    const size_t whole = (size + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, whole);
    if (memory == nullptr) throw std::bad_alloc();
    if (Explorer* explorer = Explorer::current()) explorer->forget(place(memory), whole);
    return memory;
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t size) noexcept {
    if (Explorer* explorer = Explorer::current(); explorer != nullptr && memory != nullptr) {
        explorer->plain(place(memory), static_cast<unsigned>(size), true);
        explorer->gone(place(memory), size);
    }
    std::free(memory);
}
void operator delete(void* memory, size_t size, std::align_val_t) noexcept {
    operator delete(memory, size);
}
