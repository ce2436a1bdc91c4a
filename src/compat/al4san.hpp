// What stands behind compat/al4san.h: one context for a process, its sequences, and data by their addresses.
//
// AL4SAN orders tasks by addresses, so data are registered with the runtime when a task first names them, and
// forgotten when their descriptor, or the context, goes. The thread that made the context inserts, waits and
// switches; tasks may insert, too. No exception leaves a call: answer() turns it into a code.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heddle/compat/al4san.h"
#include "tasks/c_interface.hpp"

namespace heddle::al4san {

/// Ends a call with a code of AL4SAN's.
class Refusal : public Error {
  public:
    Refusal(int code, const std::string& message)
        : Error(ErrorCode::kInvalidArgument, message), code_(code) {}
    [[nodiscard]] int al4san_code() const noexcept { return code_; }

  private:
    int code_;
};

[[noreturn]] void refuse(int code, const std::string& message);
/// Called where an exception is being handled: keeps its message for the thread.
int note_code() noexcept;

template <class Call>
int answer(Call&& call) noexcept {
    try {
        call();
        return AL4SAN_SUCCESS;
    } catch (...) {
        return note_code();
    }
}

struct SequenceObject : AL4SAN_sequence_t {
    std::unique_ptr<Sequence> tasks;  ///< on the runtime of the context; null where that has gone
    AL4SAN_option_t options{};        ///< that name it and nothing else
    std::mutex mutex;                 ///< for the next one
    std::string failure;              ///< of which it has its status, in words
};

/// While one lives in a task its rank is another's. Afterwards the task has the lowest that is free.
class WithoutRank {
  public:
    WithoutRank() noexcept;
    ~WithoutRank();
    WithoutRank(const WithoutRank&) = delete;
    WithoutRank& operator=(const WithoutRank&) = delete;

  private:
    int* const rank_;
};

/// Any thread may read the status, tasks too; it is set once.
int status_of(const AL4SAN_sequence_t& sequence) noexcept;
void set_status(AL4SAN_sequence_t& sequence, int code) noexcept;
/// The same, with what was wrong; the first one counts.
void fail(SequenceObject& sequence, int code, const char* failure) noexcept;

struct Argument {
    enum class Kind : uint8_t { kValue, kAddress, kScratch };
    Kind kind;
    size_t bytes;
    size_t offset;  ///< of a value among the values, of scratch in a task's scratch memory
    void* address;
};

/// A call of AL4SAN_Insert_Task, read.
struct Call {
    void (*function)(AL4SAN_arg_list*) = nullptr;
    SequenceObject* sequence = nullptr;
    std::vector<Argument> arguments;
    std::vector<std::byte> values;
    size_t scratch_bytes = 0;
    std::vector<const detail::DataView*> data;
    std::vector<AccessMode> modes;
    TaskOptions options;

    void insert() const;
};

class Context : public AL4SAN_context_t {
  public:
    Context(const char* runtime, int workers);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    /// The process's; throws Refusal where there is none.
    [[nodiscard]] static Context& here();
    [[nodiscard]] static std::unique_ptr<Context>& of_process() noexcept;

    /// Waits for all tasks. Throws kInvalidArgument in one of them.
    void stop();
    void switch_to(const char* runtime, int workers);
    void pause();
    void resume();
    /// Throws Refusal while tasks are paused.
    void check_not_paused() const;
    void wait_all();
    void wait(SequenceObject& sequence);

    /// Inserts it, or keeps it where tasks are paused.
    void insert(Call&& call);
    [[nodiscard]] SequenceObject* make_sequence();
    void forget(SequenceObject& sequence) noexcept;

    /// Memory of options. It stays until they release it, and the sequence's tasks, which may use it, have
    /// been waited for.
    [[nodiscard]] void* new_workspace(const SequenceObject& sequence, size_t bytes);
    void release_workspace(const void* memory) noexcept;

    [[nodiscard]] const detail::DataView* datum_at(void* address);
    void add_descriptor(const AL4SAN_desc_t& desc);
    /// Is it the `schedopt` of a descriptor that lives?
    [[nodiscard]] bool is_descriptor(const void* schedopt);
    void wait_for_tiles(const AL4SAN_desc_t& desc);
    void forget_tiles(const AL4SAN_desc_t& desc);
    /// The same text, for as long as the process lives.
    [[nodiscard]] const char* label(const char* text);

  private:
    void start(const char* name, int workers);
    void note_failures();
    template <class Use>
    void for_each_tile(const AL4SAN_desc_t& desc, Use use);

    struct Workspace {
        std::unique_ptr<std::byte[]> memory;
        const SequenceObject* sequence;  ///< null where that has gone
        bool is_released = false;
    };
    void drop_released(const SequenceObject& sequence) noexcept;

    std::unique_ptr<Runtime> runtime_;
    std::mutex mutex_;  // for all below; never held while tasks are waited for
    std::unordered_map<const void*, std::unique_ptr<detail::DataHandle>> data_;
    std::unordered_set<const void*> descriptors_;
    std::unordered_set<SequenceObject*> sequences_;
    std::unordered_map<const void*, Workspace> workspaces_;
    bool paused_ = false;
    std::vector<Call> held_;  // in their order, while paused
};

}  // namespace heddle::al4san
