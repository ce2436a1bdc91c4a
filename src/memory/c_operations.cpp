// The C interface (heddle/memory.h): operations on ranges.
#include <algorithm>
#include <utility>

#include "memory/c_interface.hpp"

namespace heddle::memory::c {
namespace {

LocalRange local_of(const heddle_memory_local_t& local) {
    return {{local.cache}, local.id, reinterpret_cast<std::byte*>(local.base), {local.offset, local.size}};
}

heddle_memory_local_t local_of(const OperationResult& result) {
    const bool writable = std::holds_alternative<MutableLocalRange>(result);
    if (!writable && !std::holds_alternative<ConstLocalRange>(result)) return {};
    const LocalRange& local = writable ? static_cast<const LocalRange&>(std::get<MutableLocalRange>(result))
                                       : std::get<ConstLocalRange>(result);
    return {local.cache.value,  local.id,         reinterpret_cast<char*>(local.base),
            local.range.offset, local.range.size, writable};
}

Operation operation_of(const heddle_memory_operation_t& asked) {
    const GlobalRange global{{asked.global.data}, {asked.global.offset, asked.global.size}};
    const CacheId cache{asked.cache};
    const std::optional<Tag> tag = asked.has_tag ? std::optional<Tag>(asked.tag) : std::nullopt;
    switch (static_cast<int>(asked.kind)) {
        case HEDDLE_MEMORY_ALLOCATE:
            return op::Allocate{asked.size, cache};
        case HEDDLE_MEMORY_RELEASE:
            return op::Release{local_of(asked.local)};
        case HEDDLE_MEMORY_GET_CONST:
            return op::GetConst{global, cache, tag, asked.prefer_direct};
        case HEDDLE_MEMORY_GET_MUTABLE:
            return op::GetMutable{global, cache, tag, asked.prefer_direct};
        case HEDDLE_MEMORY_GET_EXCLUSIVE:
            return op::GetExclusive{global, cache};
        case HEDDLE_MEMORY_PUT:
            return op::Put{local_of(asked.local), global, tag, asked.release, asked.readers, asked.retain};
        default:
            refuse("there is no operation of kind " + std::to_string(static_cast<int>(asked.kind)));
    }
}

std::vector<Operation> operations_of(const heddle_memory_operation_t* operations, size_t count) {
    if (operations == nullptr && count > 0) refuse("the operations are a null pointer");
    std::vector<Operation> all;
    for (size_t i = 0; i < count; ++i) all.push_back(operation_of(operations[i]));
    return all;
}

bool gives_nothing(const Operation& operation) {
    return std::holds_alternative<op::Put>(operation) || std::holds_alternative<op::Release>(operation);
}

heddle_memory_ret_t execute_one(heddle_memory_client_t* client, const Operation& operation,
                                heddle_memory_local_t* result) noexcept {
    return guarded([&] {
        Client& of = object(client).client;
        if (!gives_nothing(operation)) (void)given(result, "the local range");
        const OperationResult got = of.execute_sync(operation);
        if (result != nullptr) *result = local_of(got);
    });
}

GlobalRange global_of(const heddle_memory_global_t& global) {
    return {{global.data}, {global.offset, global.size}};
}

void tell_success(void (*success)(const heddle_memory_local_t*, size_t, void*),
                  const std::vector<OperationResult>& results, void* data) {
    std::vector<heddle_memory_local_t> all;
    for (const OperationResult& result : results) all.push_back(local_of(result));
    success(all.data(), all.size(), data);
}

void tell_failure(void (*failure)(const heddle_memory_bunch_error_t*, size_t, bool, void*),
                  const BunchError& failed, void* data) {
    std::vector<std::string> messages;
    std::vector<heddle_memory_bunch_error_t> all;
    for (const auto& [place, error] : failed.errors()) {
        try {
            std::rethrow_exception(error);
        } catch (const Error& one) {
            messages.emplace_back(one.what());
            all.push_back({place, code_of(one), nullptr});
        } catch (const std::exception& one) {
            messages.emplace_back(one.what());
            all.push_back({place, HEDDLE_MEMORY_SYSTEM, nullptr});
        }
    }
    for (size_t i = 0; i < all.size(); ++i) all[i].message = messages[i].c_str();
    failure(all.data(), all.size(), failed.may_have_written(), data);
}

}  // namespace
}  // namespace heddle::memory::c

using namespace heddle::memory;     // NOLINT: the functions below are the C interface of all that is in it
using namespace heddle::memory::c;  // NOLINT: and this is what it is made of

heddle_memory_ret_t heddle_memory_execute_sync(heddle_memory_client_t* client,
                                               const heddle_memory_operation_t* operation,
                                               heddle_memory_local_t* result) {
    Operation asked;
    const heddle_memory_ret_t read = guarded([&] {
        if (operation == nullptr) refuse("the operation is a null pointer");
        asked = operation_of(*operation);
    });
    return read == HEDDLE_MEMORY_SUCCESS ? execute_one(client, asked, result) : read;
}

heddle_memory_ret_t heddle_memory_execute_batch(heddle_memory_client_t* client,
                                                const heddle_memory_operation_t* operations, size_t count,
                                                heddle_memory_local_t* results) {
    return guarded([&] {
        Client& of = object(client).client;
        if (count > 0) (void)given(results, "the local ranges");
        const std::vector<OperationResult> got = of.execute_sync(operations_of(operations, count));
        for (size_t i = 0; i < count; ++i) results[i] = local_of(got[i]);
    });
}

heddle_memory_future_t* heddle_memory_execute(heddle_memory_client_t* client,
                                              const heddle_memory_operation_t* operation) {
    return made<heddle_memory_future_t>([&] {
        if (operation == nullptr) refuse("the operation is a null pointer");
        return std::make_unique<FutureObject>(object(client), operation_of(*operation));
    });
}

heddle_memory_ret_t heddle_memory_future_is_ready(heddle_memory_future_t* future, bool* ready) {
    return guarded([&] {
        auto& to = given(ready, "whether it is ready");
        to = object(future).future.is_ready();
    });
}

heddle_memory_ret_t heddle_memory_future_get(heddle_memory_future_t* future, heddle_memory_local_t* result) {
    return guarded([&] {
        (void)object(future);
        const std::unique_ptr<FutureObject> last = taken<FutureObject>(future);
        const OperationResult got = last->future.get();
        if (result != nullptr) *result = local_of(got);
    });
}

heddle_memory_ret_t heddle_memory_future_destroy(heddle_memory_future_t* future) {
    return guarded([&] {
        (void)object(future);
        (void)taken<FutureObject>(future);
    });
}

heddle_memory_ret_t heddle_memory_execute_bunch(
    heddle_memory_client_t* client, const heddle_memory_operation_t* operations, size_t count,
    void (*success)(const heddle_memory_local_t* results, size_t count, void* data),
    void (*failure)(const heddle_memory_bunch_error_t* errors, size_t count, bool may_have_written,
                    void* data),
    void* data) {
    return guarded([&] {
        if (success == nullptr || failure == nullptr)
            refuse("a bunch needs two functions: one to call when it succeeds and one when it fails");
        object(client).client.execute_bunch(
            operations_of(operations, count),
            [=](const std::vector<OperationResult>& results) { tell_success(success, results, data); },
            [=](const BunchError& failed) { tell_failure(failure, failed, data); });
    });
}

heddle_memory_ret_t heddle_memory_allocate_local(heddle_memory_client_t* client, uint64_t size,
                                                 heddle_memory_cache_t cache, heddle_memory_local_t* local) {
    return execute_one(client, op::Allocate{size, {cache}}, local);
}
heddle_memory_ret_t heddle_memory_release(heddle_memory_client_t* client, heddle_memory_local_t local) {
    return execute_one(client, op::Release{local_of(local)}, nullptr);
}
heddle_memory_ret_t heddle_memory_get_const(heddle_memory_client_t* client, heddle_memory_global_t global,
                                            heddle_memory_cache_t cache, heddle_memory_local_t* local) {
    return execute_one(client, op::GetConst{global_of(global), {cache}}, local);
}
heddle_memory_ret_t heddle_memory_get_mutable(heddle_memory_client_t* client, heddle_memory_global_t global,
                                              heddle_memory_cache_t cache, heddle_memory_local_t* local) {
    return execute_one(client, op::GetMutable{global_of(global), {cache}}, local);
}
heddle_memory_ret_t heddle_memory_get_exclusive(heddle_memory_client_t* client, heddle_memory_global_t global,
                                                heddle_memory_cache_t cache, heddle_memory_local_t* local) {
    return execute_one(client, op::GetExclusive{global_of(global), {cache}}, local);
}
heddle_memory_ret_t heddle_memory_put(heddle_memory_client_t* client, heddle_memory_local_t source,
                                      heddle_memory_global_t global) {
    return execute_one(client, op::Put{local_of(source), global_of(global)}, nullptr);
}
heddle_memory_ret_t heddle_memory_put_and_release(heddle_memory_client_t* client,
                                                  heddle_memory_local_t source,
                                                  heddle_memory_global_t global) {
    return execute_one(client, op::Put{local_of(source), global_of(global), {}, true}, nullptr);
}

heddle_memory_ret_t heddle_memory_reserve_versions(heddle_memory_client_t* client, heddle_memory_data_t data,
                                                   uint32_t count) {
    return guarded([&] { object(client).client.reserve_versions({data}, count); });
}

heddle_memory_ret_t heddle_memory_register_reader(heddle_memory_client_t* client,
                                                  heddle_memory_global_t global) {
    return guarded([&] { object(client).client.register_reader(global_of(global)); });
}

heddle_memory_ret_t heddle_memory_unregister_reader(heddle_memory_client_t* client,
                                                    heddle_memory_global_t global) {
    return guarded([&] { object(client).client.unregister_reader(global_of(global)); });
}

heddle_memory_ret_t heddle_memory_transfer_costs(heddle_memory_client_t* client,
                                                 const heddle_memory_operation_t* operations, size_t count,
                                                 heddle_memory_cost_t* costs, size_t room, size_t* ranks) {
    return guarded([&] {
        Client& of = object(client).client;
        auto& to = given(ranks, "how many ranks there are");
        if (room > 0) (void)given(costs, "the costs");
        const std::vector<TransferCost> all = of.transfer_costs(operations_of(operations, count));
        for (size_t i = 0; i < std::min(room, all.size()); ++i) costs[i] = {all[i].rank, all[i].seconds};
        to = all.size();
    });
}

heddle_memory_ret_t heddle_memory_data_locality(
    heddle_memory_client_t* client, const heddle_memory_global_t* ranges, size_t count,
    void (*each)(const heddle_memory_locality_t* piece, void* data), void* data) {
    return guarded([&] {
        Client& of = object(client).client;
        if (each == nullptr) refuse("there is no function to call with the places");
        if (ranges == nullptr && count > 0) refuse("the ranges are a null pointer");
        std::vector<GlobalRange> asked;
        for (size_t i = 0; i < count; ++i) asked.push_back(global_of(ranges[i]));
        for (const DataLocality& one : of.data_locality(asked)) {
            const std::vector<uint32_t> copies(one.copies.begin(), one.copies.end());
            const heddle_memory_locality_t piece{
                {one.range.data.value, one.range.range.offset, one.range.range.size},
                one.home,
                copies.data(),
                copies.size()};
            each(&piece, data);
        }
    });
}
