// What stands behind the handles of heddle/memory.h, and how its calls end.
//
// No exception leaves a C call: guarded() turns it into a code and keeps its message for the calling thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "heddle/memory.h"
#include "heddle/memory.hpp"
#include "tasks/c_handles.hpp"

namespace heddle::memory::c {

using heddle::taken;

struct ServerObject {
    explicit ServerObject(const ServerOptions& options) : server(options) {}
    ServerObject() = default;
    Server server;
    std::atomic<int> clients{0};
    std::mutex listening;
    std::optional<IpcServer> for_others;
};

/// Counts as one more until it goes, which is after what is declared behind it; null: nowhere.
class CountedIn {
  public:
    explicit CountedIn(std::atomic<int>* count) : count_(count) {
        if (count_ != nullptr) ++*count_;
    }
    ~CountedIn() {
        if (count_ != nullptr) --*count_;
    }
    CountedIn(const CountedIn&) = delete;
    CountedIn& operator=(const CountedIn&) = delete;

  private:
    std::atomic<int>* const count_;
};

struct ClientObject {
    explicit ClientObject(ServerObject& server) : counted(&server.clients), client(server.server) {}
    explicit ClientObject(const std::string& path) : counted(nullptr), client(path) {}
    const CountedIn counted;
    Client client;
    std::atomic<int> futures{0};
};

struct FutureObject {
    FutureObject(ClientObject& of, const Operation& operation)
        : counted(&of.futures), future(of.client.execute(operation)) {}
    const CountedIn counted;
    OperationFuture future;
};

[[nodiscard]] heddle_memory_ret_t code_of(const Error& error) noexcept;
/// Called where an exception is being handled: keeps what it says for the calling thread.
heddle_memory_ret_t note_error() noexcept;
/// Throws kInvalidArgument.
[[noreturn]] void refuse(const std::string& message);

template <class Call>
heddle_memory_ret_t guarded(Call&& call) noexcept {
    return ends_in(HEDDLE_MEMORY_SUCCESS, &note_error, call);
}

/// Of calls that give a handle: null where `make` throws.
template <class Handle, class Make>
Handle* made(Make&& make) noexcept {
    Handle* handle = nullptr;
    (void)guarded([&] { handle = handle_of<Handle>(make()); });
    return handle;
}

template <class Object>
Object& object_of(const void* handle, const char* kind) {
    Object* object = HandleTable<Object>::process().find(reinterpret_cast<uintptr_t>(handle));
    if (object == nullptr) refuse(std::string("this is no ") + kind + ", or it was destroyed");
    return *object;
}
inline ServerObject& object(heddle_memory_server_t* server) {
    return object_of<ServerObject>(server, "server");
}
inline ClientObject& object(heddle_memory_client_t* client) {
    return object_of<ClientObject>(client, "client");
}
inline FutureObject& object(heddle_memory_future_t* future) {
    return object_of<FutureObject>(future, "future");
}
/// Refuses null.
template <class T>
T& given(T* pointer, const char* what) {
    if (pointer == nullptr) refuse(std::string("there is nowhere to put ") + what + ": its pointer is null");
    return *pointer;
}

[[nodiscard]] SegmentDescription segment_description(const char* kind, const heddle_memory_option_t* options,
                                                     size_t count);
[[nodiscard]] DataDescription data_description(const char* distribution);

}  // namespace heddle::memory::c
