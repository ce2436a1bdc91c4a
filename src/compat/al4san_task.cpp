// AL4SAN_Insert_Task and AL4SAN_Unpack_Arg: a list of flags and what follows each, read into a Call; a Call
// made a task; a task's arguments given back.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstring>
#include <utility>

#include "compat/al4san.hpp"
#include "tasks/frame.hpp"
#include "tasks/task.hpp"

// The functions themselves, which the header covers with macros that add the end of the list.
#undef AL4SAN_Insert_Task
#undef AL4SAN_Unpack_Arg

namespace heddle::al4san {
namespace {

using detail::BodyAction;

constexpr size_t kAlignment = 16;
constexpr int kIsOption = 0x1000000;
constexpr int kHow = 0xf;
constexpr int kModifiers = 0x3ffff0;

size_t aligned(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// What lies in a task's record; its arguments follow it, then the values.
struct Closure {
    void (*function)(AL4SAN_arg_list*);
    SequenceObject* sequence;
    size_t count, scratch_bytes;
    std::byte* values;
    std::byte* scratch;  ///< while it runs
    int rank = -1;       ///< the same; -1: it waits, or there was none

    [[nodiscard]] Argument* arguments() { return reinterpret_cast<Argument*>(this + 1); }
};

/// Which tasks run: their ranks, the lowest that is free for each.
class Ranks {
  public:
    int take() noexcept {
        for (size_t word = 0; word < taken_.size(); ++word) {
            uint64_t seen = taken_[word].load(std::memory_order_relaxed);
            while (~seen != 0) {
                const int bit = __builtin_ctzll(~seen);
                // acquire: what the last task of this rank wrote to its workspace is seen.
                if (taken_[word].compare_exchange_weak(seen, seen | uint64_t{1} << bit,
                                                       std::memory_order_acquire, std::memory_order_relaxed))
                    return static_cast<int>(word * 64) + bit;
            }
        }
        return -1;
    }
    void give_back(int rank) noexcept {
        if (rank < 0) return;
        taken_[static_cast<size_t>(rank) / 64].fetch_and(~(uint64_t{1} << (rank % 64)),
                                                         std::memory_order_release);
    }

  private:
    std::array<std::atomic<uint64_t>, 16> taken_{};
};
Ranks ranks;

class Ranked {
  public:
    explicit Ranked(Closure& task) noexcept : task_(task) { task.rank = ranks.take(); }
    ~Ranked() { ranks.give_back(task_.rank); }
    Ranked(const Ranked&) = delete;
    Ranked& operator=(const Ranked&) = delete;

  private:
    Closure& task_;
};

void body(void* self, BodyAction action) {
    if (action != BodyAction::kRun) return;
    Closure& closure = *static_cast<Closure*>(self);
    if (status_of(*closure.sequence) != AL4SAN_SUCCESS) return;
    std::unique_ptr<std::byte[]> scratch;
    if (closure.scratch_bytes > 0)
        scratch = std::make_unique_for_overwrite<std::byte[]>(closure.scratch_bytes);
    closure.scratch = scratch.get();
    const Ranked ranked(closure);
    AL4SAN_arg_list arguments{&closure, &closure, &closure, &closure};
    closure.function(&arguments);
}

/// Of the task that runs here, in whichever thread it began; null outside of tasks of AL4SAN.
int* rank_here() noexcept {
    const TaskFrame* const frame = current_frame();
    if (frame == nullptr || frame->over || frame->task->body != &body) return nullptr;
    return &static_cast<Closure*>(frame->task->closure())->rank;
}

class Reader {
  public:
    Reader(Context& context, Call& call, va_list& list) : context_(context), call_(call), list_(list) {}

    void read() {
        while (const int flag = va_arg(list_, int)) {
            if ((flag & kIsOption) != 0)
                option(flag);
            else
                argument(flag);
        }
    }

  private:
    [[nodiscard]] size_t size() {
        const int bytes = va_arg(list_, int);
        if (bytes < 0) refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("{}: a size is negative", place()));
        return static_cast<size_t>(bytes);
    }
    [[nodiscard]] std::string place() const {
        return fmt::format("argument {} of the task", call_.arguments.size());
    }

    void argument(int flag) {
        if ((flag & ~(kHow | kModifiers)) != 0 || (flag & kHow) == 0 || (flag & kHow) > AL4SAN_REDUX)
            refuse(AL4SAN_ERR_ILLEGAL_VALUE,
                   fmt::format("{}: {:#x} is no flag of AL4SAN. Is an argument before it too long or too "
                               "short, or its descriptor destroyed?",
                               place(), flag));
        void* const address = va_arg(list_, void*);
        switch (flag & kHow) {
            case AL4SAN_VALUE:
                return value(address, size());
            case AL4SAN_SCRATCH:
                return scratch(address, size());
            case AL4SAN_NODEP:
                (void)size();
                return add({Argument::Kind::kAddress, 0, 0, address});
            default:
                return datum(flag, address);
        }
    }

    void add(const Argument& argument) { call_.arguments.push_back(argument); }

    void value(const void* from, size_t bytes) {
        if (from == nullptr || bytes == 0)
            refuse(AL4SAN_ERR_ILLEGAL_VALUE, place() + " is a value and has no pointer, or no bytes");
        const size_t offset = call_.values.size();
        call_.values.resize(offset + aligned(bytes));
        std::memcpy(call_.values.data() + offset, from, bytes);
        add({Argument::Kind::kValue, bytes, offset, nullptr});
    }

    /// Memory that the program gives is used as it is.
    void scratch(void* given, size_t bytes) {
        if (given != nullptr) return add({Argument::Kind::kAddress, 0, 0, given});
        add({Argument::Kind::kScratch, bytes, call_.scratch_bytes, nullptr});
        call_.scratch_bytes += aligned(bytes);
    }

    /// AL4SAN_ADDR() puts the descriptor's schedopt behind the address; a plain address has none.
    void datum(int flag, void* address) {
        const auto next = va_arg(list_, size_t);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the list has no types
        if (next != AL4SAN_DEP && context_.is_descriptor(reinterpret_cast<const void*>(next)))
            (void)va_arg(list_, int);
        if (address == nullptr)
            refuse(AL4SAN_ERR_ILLEGAL_VALUE, place() + " has no address; AL4SAN_NODEP may have none");
        add({Argument::Kind::kAddress, 0, 0, address});
        if ((flag & AL4SAN_DONT_TRACK) != 0) return;
        call_.data.push_back(context_.datum_at(address));
        call_.modes.push_back(mode(flag));
    }

    /// What tasks add to in any order, they do one after the other here.
    static AccessMode mode(int flag) {
        const int how = flag & kHow;
        if (how == AL4SAN_INPUT) return AccessMode::kIn;
        const bool together = (flag & (AL4SAN_COMMUTE | AL4SAN_ACCUMULATOR | AL4SAN_GATHERV)) != 0;
        return how == AL4SAN_OUTPUT && !together ? AccessMode::kOut : AccessMode::kInOut;
    }

    void option(int flag) {
        switch (flag) {
            case AL4SAN_PRIORITY:
                call_.options.priority = va_arg(list_, int);
                break;
            case AL4SAN_LABEL:
                call_.options.name = context_.label(va_arg(list_, const char*));
                break;
            case AL4SAN_FLOPS:
                (void)va_arg(list_, double);
                break;
            case AL4SAN_EXECUTE_ON_NODE:
                only(0, "AL4SAN_EXECUTE_ON_NODE: there is one process, with rank 0");
                break;
            case AL4SAN_SCHED_CTX:
                only(0, "AL4SAN_SCHED_CTX: there is one scheduling context, 0");
                break;
            case AL4SAN_THREAD_COUNT:
                only(1, "AL4SAN_THREAD_COUNT: a task has one thread; insert as many tasks as threads");
                break;
            // Nothing that one process and its engines could do better by them.
            case AL4SAN_COLOR:
            case AL4SAN_TAG:
            case AL4SAN_TAG_ONLY:
            case AL4SAN_HYPERVISOR_TAG:
            case AL4SAN_NODE_SELECTION_POLICY:
            case AL4SAN_CUDA_FLG:
            case AL4SAN_CUDA_ASYNC_FLG:
            case AL4SAN_POSSIBLY_PARALLEL:
            case AL4SAN_EXECUTE_ON_DATA:
                (void)va_arg(list_, void*);
                break;
            default:
                refuse(AL4SAN_ERR_NOT_SUPPORTED,
                       fmt::format("{}: heddle does not do what the flag {:#x} asks for (docs/AL4SAN.md)",
                                   place(), flag));
        }
        (void)va_arg(list_, int);
    }

    void only(int possible, const char* why) {
        if (va_arg(list_, int) != possible) refuse(AL4SAN_ERR_NOT_SUPPORTED, why);
    }

    Context& context_;
    Call& call_;
    va_list& list_;
};

void insert(const heddle_al4san_task_t* task, const AL4SAN_option_t* options, va_list& list) {
    Context& context = Context::here();
    if (options == nullptr || options->sequence == nullptr)
        refuse(AL4SAN_ERR_UNALLOCATED, "a task is inserted into no sequence");
    auto& sequence = *static_cast<SequenceObject*>(options->sequence);
    if (const int status = status_of(sequence); status != AL4SAN_SUCCESS)
        refuse(AL4SAN_ERR_SEQUENCE_FLUSHED,
               fmt::format("the sequence has failed with {} or was flushed: make another", status));
    const int code = answer([&] {
        if (task == nullptr) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "a task is inserted that is none");
        if (task->function == nullptr)
            refuse(AL4SAN_ERR_NOT_SUPPORTED,
                   fmt::format("task {} has a function for GPUs alone; give it one for CPUs", task->name));
        Call call;
        call.function = task->function;
        call.sequence = &sequence;
        call.options = {options->priority, task->name};
        Reader(context, call, list).read();
        context.insert(std::move(call));
    });
    if (code == AL4SAN_SUCCESS) return;
    const std::string failure = heddle_task_error_message();
    fail(sequence, code, failure.c_str());
    refuse(code, failure);
}

void unpack(AL4SAN_arg_list* list, va_list& places) {
    if (list == nullptr || list->Quark_arg_list == nullptr)
        refuse(AL4SAN_ERR_ILLEGAL_VALUE, "there are no arguments: they are for a task's function");
    Closure& closure = *static_cast<Closure*>(list->Quark_arg_list);
    size_t index = 0;
    for (; index < closure.count; ++index) {
        void* const to = va_arg(places, void*);
        if (to == nullptr) break;
        const Argument& argument = closure.arguments()[index];
        if (argument.kind == Argument::Kind::kValue) {
            std::memcpy(to, closure.values + argument.offset, argument.bytes);
        } else {
            void* const address = argument.kind == Argument::Kind::kScratch
                                      ? closure.scratch + argument.offset
                                      : argument.address;
            std::memcpy(to, &address, sizeof address);
        }
    }
    if (index == closure.count && va_arg(places, void*) == nullptr) return;
    const std::string failure =
        fmt::format("a task has {} arguments, and its function unpacks {}", closure.count,
                    index < closure.count ? std::to_string(index) : "more");
    fail(*closure.sequence, AL4SAN_ERR_ILLEGAL_VALUE, failure.c_str());
    refuse(AL4SAN_ERR_ILLEGAL_VALUE, failure);
}

}  // namespace

WithoutRank::WithoutRank() noexcept : rank_(rank_here()) {
    if (rank_ != nullptr) ranks.give_back(std::exchange(*rank_, -1));
}

WithoutRank::~WithoutRank() {
    if (rank_ != nullptr) *rank_ = ranks.take();
}

void Call::insert() const {
    const size_t values_at = aligned(sizeof(Closure) + arguments.size() * sizeof(Argument));
    detail::Insertion insertion(sequence->tasks->state(),
                                {&body, values_at + values.size(), static_cast<uint32_t>(data.size()), true});
    auto& closure = *new (insertion.closure())
                        Closure{function, sequence, arguments.size(), scratch_bytes, nullptr, nullptr};
    closure.values = static_cast<std::byte*>(insertion.closure()) + values_at;
    std::uninitialized_copy(arguments.begin(), arguments.end(), closure.arguments());
    if (!values.empty()) std::memcpy(closure.values, values.data(), values.size());
    insertion.commit(data.data(), modes.data(), &options);
}

}  // namespace heddle::al4san

using namespace heddle::al4san;

int AL4SAN_Insert_Task(AL4SAN_codelet quark, AL4SAN_codelet, AL4SAN_codelet, AL4SAN_codelet,
                       const AL4SAN_option_t* options, ...) {
    va_list list;
    va_start(list, options);
    const int code = answer([&] { insert(static_cast<const heddle_al4san_task_t*>(quark), options, list); });
    va_end(list);
    return code;
}

int AL4SAN_Unpack_Arg(AL4SAN_arg_list* arguments, ...) {
    va_list places;
    va_start(places, arguments);
    const int code = answer([&] { unpack(arguments, places); });
    va_end(places);
    return code;
}

int AL4SAN_Thread_Rank(void) {
    const int* const rank = rank_here();
    return rank == nullptr ? -1 : *rank;
}
