// The calls of AL4SAN that are not about tasks' arguments or descriptors.
#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "compat/al4san.hpp"

namespace heddle::al4san {
namespace {

SequenceObject& given(AL4SAN_sequence_t* sequence) {
    if (sequence == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there is no sequence");
    return *static_cast<SequenceObject*>(sequence);
}

void refuse_gpus(int ncudas) {
    if (ncudas > 0)
        refuse(AL4SAN_ERR_NOT_SUPPORTED,
               fmt::format("{} GPUs were asked for: tasks of AL4SAN run on CPUs here", ncudas));
}

/// The flag of the context that an option stands for; null where it is kept in no flag.
AL4SAN_bool* flag_of(Context& context, AL4SAN_enum option) {
    switch (option) {
        case AL4SAN_WARNINGS:
            return &context.warnings_enabled;
        case AL4SAN_AUTOTUNING:
            return &context.autotuning_enabled;
        case AL4SAN_PROFILING_MODE:
            return &context.profiling_enabled;
        case AL4SAN_PARALLEL_MODE:
            return &context.parallel_enabled;
        case AL4SAN_PROGRESS:
            return &context.progress_enabled;
        case AL4SAN_BOUND:
            return nullptr;
    }
    refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("there is no option {} to enable or disable", option));
}

int switch_flag(AL4SAN_enum option, AL4SAN_bool value) {
    return answer([&] {
        if (AL4SAN_bool* flag = flag_of(Context::here(), option); flag != nullptr) *flag = value;
    });
}

int* parameter_of(Context& context, AL4SAN_enum parameter) {
    switch (parameter) {
        case AL4SAN_CONCURRENCY:
            return &context.nworkers;
        case AL4SAN_TILE_SIZE:
            return &context.nb;
        case AL4SAN_INNER_BLOCK_SIZE:
            return &context.ib;
        case AL4SAN_HOUSEHOLDER_MODE:
            return &context.householder;
        case AL4SAN_TRANSLATION_MODE:
            return &context.translation;
        default:
            refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("there is no parameter {}", parameter));
    }
}

/// Data are in one place, that of rank 0.
void check_rank(const AL4SAN_sequence_t* sequence, int rank) {
    if (rank == 0) return;
    (void)answer([&] {
        refuse(AL4SAN_ERR_NOT_SUPPORTED,
               fmt::format("data cannot go to rank {}: there is one process", rank));
    });
    if (sequence != nullptr) set_status(*const_cast<AL4SAN_sequence_t*>(sequence), AL4SAN_ERR_NOT_SUPPORTED);
}

/// Until the tasks of the sequence have ended; what they threw becomes its status, and is returned. Throws
/// where the wait is refused, which is no failure of the sequence.
std::string wait_for_tasks(SequenceObject& sequence) {
    Context* const context = Context::of_process().get();
    if (context == nullptr) return "";  // after the last context its tasks have ended
    context->check_not_paused();
    const auto wait = [&] { return answer([&] { context->wait(sequence); }); };
    const int code = wait();
    if (code == AL4SAN_SUCCESS) return "";
    std::string failure = heddle_task_error_message();
    // A failure is told once: what fails again was not a task, but the wait.
    if (wait() != AL4SAN_SUCCESS) refuse(code, failure);
    fail(sequence, code, failure.c_str());
    return failure;
}

void check_status(SequenceObject& sequence, std::string failure) {
    const int status = status_of(sequence);
    if (status == AL4SAN_SUCCESS) return;
    if (failure.empty()) {
        const std::lock_guard guard(sequence.mutex);
        failure = sequence.failure;
    }
    refuse(status, failure.empty() ? "a task or a call has failed the sequence, or flushed it" : failure);
}

}  // namespace
}  // namespace heddle::al4san

using namespace heddle::al4san;

AL4SAN_context_t* AL4SAN_Init(const char* runtime, int ncpus, int ncudas) {
    return AL4SAN_InitPar(runtime, ncpus, ncudas, -1);
}

AL4SAN_context_t* AL4SAN_InitPar(const char* runtime, int ncpus, int ncudas, int nthreads_per_worker) {
    const int code = answer([&] {
        if (Context::of_process() != nullptr)
            refuse(AL4SAN_ERR_REINITIALIZED, "there is a context: call AL4SAN_Finalize() before");
        refuse_gpus(ncudas);
        if (nthreads_per_worker > 1)
            refuse(AL4SAN_ERR_NOT_SUPPORTED,
                   fmt::format("{} threads in a worker: a task has one thread", nthreads_per_worker));
        Context::of_process() = std::make_unique<Context>(runtime, ncpus);
    });
    return code == AL4SAN_SUCCESS ? Context::of_process().get() : nullptr;
}

AL4SAN_context_t* AL4SAN_Switch_Runtime(const char* runtime, int ncpus, int ncudas) {
    const int code = answer([&] {
        refuse_gpus(ncudas);
        Context::here().switch_to(runtime, ncpus);
    });
    return code == AL4SAN_SUCCESS ? Context::of_process().get() : nullptr;
}

int AL4SAN_Finalize(void) {
    return answer([] {
        Context::here().stop();  // while tasks find it still
        Context::of_process().reset();
    });
}

AL4SAN_context_t* al4san_context_self(void) {
    return Context::of_process().get();
}

int AL4SAN_Version(int* major, int* minor, int* micro) {
    if (major == nullptr && minor == nullptr && micro == nullptr) return AL4SAN_ERR_ILLEGAL_VALUE;
    if (major != nullptr) *major = AL4SAN_VERSION_MAJOR;
    if (minor != nullptr) *minor = AL4SAN_VERSION_MINOR;
    if (micro != nullptr) *micro = AL4SAN_VERSION_MICRO;
    return AL4SAN_SUCCESS;
}

int AL4SAN_Pause(void) {
    return answer([] { Context::here().pause(); });
}

int AL4SAN_Resume(void) {
    return answer([] { Context::here().resume(); });
}

int AL4SAN_Barrier(void) {
    return answer([] { Context::here().wait_all(); });
}

int AL4SAN_Progress(void) {
    return answer([] { (void)Context::here(); });
}

int AL4SAN_Thread_Size(void) {
    const AL4SAN_context_t* context = al4san_context_self();
    return context == nullptr ? AL4SAN_ERR_NOT_INITIALIZED : context->world_size;
}

int AL4SAN_GetThreadNbr(void) {
    return AL4SAN_Thread_Size();
}

int AL4SAN_Enable(AL4SAN_enum option) {
    return switch_flag(option, AL4SAN_TRUE);
}

int AL4SAN_Disable(AL4SAN_enum option) {
    return switch_flag(option, AL4SAN_FALSE);
}

int AL4SAN_Set(AL4SAN_enum param, int value) {
    return answer([&] {
        int* const parameter = parameter_of(Context::here(), param);
        if (param == AL4SAN_CONCURRENCY)
            refuse(AL4SAN_ERR_NOT_SUPPORTED, "the number of workers: AL4SAN_Switch_Runtime() sets it");
        if (value < 1) refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("a parameter cannot be {}", value));
        *parameter = value;
    });
}

int AL4SAN_Get(AL4SAN_enum param, int* value) {
    return answer([&] {
        if (value == nullptr) refuse(AL4SAN_ERR_ILLEGAL_VALUE, "there is no place for the value");
        *value = *parameter_of(Context::here(), param);
    });
}

int AL4SAN_My_Mpi_Rank(void) {
    return 0;
}

int AL4SAN_Comm_Size(void) {
    return 1;
}

int AL4SAN_Comm_Rank(void) {
    return 0;
}

int AL4SAN_Distributed_Start(void) {
    return AL4SAN_SUCCESS;
}

int AL4SAN_Distributed_Stop(void) {
    return AL4SAN_SUCCESS;
}

/// It has no answer: matrices over such a grid are refused when they are made.
void AL4SAN_Init_Processor_Grid(int p, int q) {
    (void)answer([&] {
        Context& context = Context::here();
        context.prows = p;
        context.pcols = q;
        if (p != 1 || q != 1)
            refuse(AL4SAN_ERR_NOT_SUPPORTED, fmt::format("a grid of {} x {}: there is one process", p, q));
    });
}

void AL4SAN_User_Tag_Size(int, int) {}

void AL4SAN_Broadcast(AL4SAN_sequence_t* sequence, int, int root, void*, int, int*, int) {
    check_rank(sequence, root);
}

void AL4SAN_Broadcast_ID(int32_t, AL4SAN_sequence_t* sequence, int, int root, void*, int, int*, int) {
    check_rank(sequence, root);
}

AL4SAN_sequence_t* AL4SAN_Sequence_Create(void) {
    AL4SAN_sequence_t* sequence = nullptr;
    (void)answer([&] { sequence = Context::here().make_sequence(); });
    return sequence;
}

int AL4SAN_Sequence_Wait(AL4SAN_sequence_t* sequence) {
    return answer([&] { check_status(given(sequence), wait_for_tasks(given(sequence))); });
}

int AL4SAN_Sequence_Destroy(AL4SAN_sequence_t* sequence) {
    std::string failure;
    // Where that is refused, it has tasks yet.
    if (const int refused = answer([&] { failure = wait_for_tasks(given(sequence)); });
        refused != AL4SAN_SUCCESS)
        return refused;
    const int code = answer([&] { check_status(given(sequence), failure); });
    if (Context::of_process() != nullptr) Context::of_process()->forget(given(sequence));
    delete static_cast<SequenceObject*>(sequence);
    return code;
}

int AL4SAN_Sequence_Flush(AL4SAN_sequence_t* sequence, AL4SAN_request_t* request) {
    return answer([&] {
        (void)Context::here();
        (void)al4san_request_fail(&given(sequence), request, AL4SAN_ERR_SEQUENCE_FLUSHED);
    });
}

int al4san_request_fail(AL4SAN_sequence_t* sequence, AL4SAN_request_t* request, int error) {
    if (sequence != nullptr) {
        sequence->request = request;
        set_status(*sequence, error);
    }
    if (request != nullptr) request->status = error;
    return error;
}

AL4SAN_sequence_t* al4san_sequence_create(AL4SAN_context_t*) {
    return AL4SAN_Sequence_Create();
}

int al4san_sequence_wait(AL4SAN_context_t*, AL4SAN_sequence_t* sequence) {
    return AL4SAN_Sequence_Wait(sequence);
}

int al4san_sequence_destroy(AL4SAN_context_t*, AL4SAN_sequence_t* sequence) {
    return AL4SAN_Sequence_Destroy(sequence);
}

int AL4SAN_Options_Init(AL4SAN_option_t* options, AL4SAN_sequence_t* sequence, AL4SAN_request_t* request) {
    return answer([&] {
        if (options == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there are no options");
        const Context& context = Context::here();
        *options = {};
        options->sequence = sequence;
        options->request = request;
        options->profiling = context.profiling_enabled;
        options->parallel = context.parallel_enabled;
    });
}

int AL4SAN_Options_Finalize(AL4SAN_option_t* options) {
    return AL4SAN_Options_Workspace_Free(options);
}

int AL4SAN_Options_Workspace_Alloc(AL4SAN_option_t* options, size_t worker_size, size_t host_size) {
    return answer([&] {
        if (options == nullptr || options->sequence == nullptr)
            refuse(AL4SAN_ERR_UNALLOCATED, "a workspace needs options with a sequence");
        options->ws_wsize = worker_size;
        options->ws_hsize = host_size;
        if (host_size == 0) return;
        options->ws_host = Context::here().new_workspace(given(options->sequence), host_size);
    });
}

int AL4SAN_Options_Workspace_Free(AL4SAN_option_t* options) {
    return answer([&] {
        if (options == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there are no options");
        if (Context* const context = Context::of_process().get();
            context != nullptr && options->ws_host != nullptr)
            context->release_workspace(options->ws_host);
        options->ws_wsize = options->ws_hsize = 0;
        options->ws_worker = options->ws_host = nullptr;
    });
}

int AL4SAN_Workspace_Create(AL4SAN_workspace_t* workspace, size_t lworkspace, size_t element) {
    return answer([&] {
        if (workspace == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there is no workspace");
        *workspace = {};
        const auto count = static_cast<size_t>(Context::here().world_size);
        auto** spaces = static_cast<void**>(std::calloc(count, sizeof(void*)));
        if (spaces == nullptr) throw std::bad_alloc();
        *workspace = {spaces, lworkspace, static_cast<int>(count), element};
        for (size_t i = 0; i < count; ++i) {
            spaces[i] = std::calloc(lworkspace, element);
            if (spaces[i] != nullptr) continue;
            (void)AL4SAN_Workspace_Destroy(workspace);
            throw std::bad_alloc();
        }
    });
}

int AL4SAN_Workspace_Destroy(AL4SAN_workspace_t* workspace) {
    return answer([&] {
        if (workspace == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there is no workspace");
        for (int i = 0; i < workspace->nthread; ++i) std::free(workspace->spaces[i]);
        std::free(workspace->spaces);
        *workspace = {};
    });
}

const AL4SAN_option_t* heddle_al4san_options_of(AL4SAN_sequence_t* sequence) {
    return sequence == nullptr ? nullptr : &static_cast<SequenceObject*>(sequence)->options;
}

int AL4SAN_Data_Getrank(const AL4SAN_desc_t*, int, int) {
    return 0;
}

int AL4SAN_Matrix_Getrank(const AL4SAN_desc_t*, int, int) {
    return 0;
}

int AL4SAN_Vector_Getrank(const AL4SAN_desc_t*, int) {
    return 0;
}

int AL4SAN_Scaler_Getrank(const AL4SAN_desc_t*, void**) {
    return 0;
}

void AL4SAN_Flush(void) {}

int AL4SAN_Desc_Flush(AL4SAN_desc_t* desc, AL4SAN_sequence_t*) {
    return AL4SAN_Desc_Release(desc);
}

void AL4SAN_Data_Flush(const AL4SAN_sequence_t*, const AL4SAN_desc_t*, int, int) {}

void AL4SAN_Matrix_Flush(const AL4SAN_sequence_t*, const AL4SAN_desc_t*, int, int) {}

void AL4SAN_Vector_Flush(const AL4SAN_sequence_t*, const AL4SAN_desc_t*, int) {}

void AL4SAN_Scaler_Flush(const AL4SAN_sequence_t*, const AL4SAN_desc_t*) {}

void AL4SAN_Data_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t*, int, int, int new_rank) {
    check_rank(sequence, new_rank);
}

void AL4SAN_Matrix_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t*, int, int, int new_rank) {
    check_rank(sequence, new_rank);
}

void AL4SAN_Vector_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t*, int, int new_rank) {
    check_rank(sequence, new_rank);
}

void AL4SAN_Scaler_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t*, int, int new_rank) {
    check_rank(sequence, new_rank);
}
