/* AL4SAN 1.1 (seed 003) by its own names: tasks over the engines of heddle.
 *
 * Programs written for AL4SAN build with -I<prefix>/include/heddle/compat and libheddle. One context for a
 * process; the thread that made it inserts, waits and switches, as with AL4SAN. The engine goes by its name
 * in any case: native, openmp, openmp-libomp, tbb, starpu, quark, parsec. What heddle cannot do is refused:
 * a call answers with a code, heddle_task_error_message() (heddle/task.h) says why, and the sequence keeps
 * the code as its status. Tasks have stacks of 64 KiB, or of HEDDLE_STACK_BYTES (a variable of the
 * environment), where their engine can pause them. docs/AL4SAN.md goes through all calls and flags. */
#ifndef HEDDLE_COMPAT_AL4SAN_H
#define HEDDLE_COMPAT_AL4SAN_H

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "../compat/al4san/constants.h"
#include "../compat/al4san/struct.h"
#include "../compat/al4san/task.h"
#include "../task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AL4SAN_API HEDDLE_TASK_API

/* The context. Null: it could not be made. `ncpus`: tasks at once; 0 or less for as many as CPUs. GPUs are
 * refused. */
AL4SAN_API AL4SAN_context_t* AL4SAN_Init(const char* runtime, int ncpus, int ncudas);
AL4SAN_API AL4SAN_context_t* AL4SAN_InitPar(const char* runtime, int ncpus, int ncudas,
                                            int nthreads_per_worker);
/** Waits for all tasks. Null: the old one goes on. */
AL4SAN_API AL4SAN_context_t* AL4SAN_Switch_Runtime(const char* runtime, int ncpus, int ncudas);
/** Waits for all tasks. Sequences and descriptors that are left may be destroyed afterwards, no more. */
AL4SAN_API int AL4SAN_Finalize(void);
AL4SAN_API AL4SAN_context_t* al4san_context_self(void);
AL4SAN_API int AL4SAN_Version(int* major, int* minor, int* micro);
AL4SAN_API int AL4SAN_Element_Size(int type);
/** When it returns no task runs. What is inserted then waits for AL4SAN_Resume(). */
AL4SAN_API int AL4SAN_Pause(void);
AL4SAN_API int AL4SAN_Resume(void);
/** Until all tasks so far have ended. */
AL4SAN_API int AL4SAN_Barrier(void);
AL4SAN_API int AL4SAN_Progress(void);
/** In a task: 0 to AL4SAN_Thread_Size() - 1, no two at once the same. Elsewhere -1. */
AL4SAN_API int AL4SAN_Thread_Rank(void);
AL4SAN_API int AL4SAN_Thread_Size(void);
AL4SAN_API int AL4SAN_GetThreadNbr(void);
AL4SAN_API int AL4SAN_Enable(AL4SAN_enum option);
AL4SAN_API int AL4SAN_Disable(AL4SAN_enum option);
AL4SAN_API int AL4SAN_Set(AL4SAN_enum param, int value);
AL4SAN_API int AL4SAN_Get(AL4SAN_enum param, int* value);

/* One process: rank 0 of 1. */
AL4SAN_API int AL4SAN_My_Mpi_Rank(void);
AL4SAN_API int AL4SAN_Comm_Size(void);
AL4SAN_API int AL4SAN_Comm_Rank(void);
AL4SAN_API int AL4SAN_Distributed_Start(void);
AL4SAN_API int AL4SAN_Distributed_Stop(void);
AL4SAN_API void AL4SAN_Init_Processor_Grid(int p, int q);
AL4SAN_API void AL4SAN_User_Tag_Size(int width, int separation);
AL4SAN_API void AL4SAN_Broadcast(AL4SAN_sequence_t* sequence, int myrank, int root, void* tile_root,
                                 int arena_index, int* dest_ranks, int dest_rank_idx);
AL4SAN_API void AL4SAN_Broadcast_ID(int32_t bcast_id, AL4SAN_sequence_t* sequence, int myrank, int root,
                                    void* tile_root, int arena_index, int* dest_ranks, int dest_rank_idx);

/* Sequences. A wait answers with the status. */
AL4SAN_API AL4SAN_sequence_t* AL4SAN_Sequence_Create(void);
AL4SAN_API int AL4SAN_Sequence_Wait(AL4SAN_sequence_t* sequence);
AL4SAN_API int AL4SAN_Sequence_Destroy(AL4SAN_sequence_t* sequence);
/** Tasks that have not begun do not run. */
AL4SAN_API int AL4SAN_Sequence_Flush(AL4SAN_sequence_t* sequence, AL4SAN_request_t* request);
AL4SAN_API int al4san_request_fail(AL4SAN_sequence_t* sequence, AL4SAN_request_t* request, int error);
AL4SAN_API AL4SAN_sequence_t* al4san_sequence_create(AL4SAN_context_t* context);
AL4SAN_API int al4san_sequence_wait(AL4SAN_context_t* context, AL4SAN_sequence_t* sequence);
AL4SAN_API int al4san_sequence_destroy(AL4SAN_context_t* context, AL4SAN_sequence_t* sequence);

/* Options of tasks. */
AL4SAN_API int AL4SAN_Options_Init(AL4SAN_option_t* options, AL4SAN_sequence_t* sequence,
                                   AL4SAN_request_t* request);
AL4SAN_API int AL4SAN_Options_Finalize(AL4SAN_option_t* options);
/** `ws_worker` is NULL: AL4SAN_SCRATCH with NULL gives each task memory of its own. */
AL4SAN_API int AL4SAN_Options_Workspace_Alloc(AL4SAN_option_t* options, size_t worker_size, size_t host_size);
/** `ws_host` goes when the sequence has been waited for. */
AL4SAN_API int AL4SAN_Options_Workspace_Free(AL4SAN_option_t* options);
/** `element` bytes each. */
AL4SAN_API int AL4SAN_Workspace_Create(AL4SAN_workspace_t* workspace, size_t lworkspace, size_t element);
AL4SAN_API int AL4SAN_Workspace_Destroy(AL4SAN_workspace_t* workspace);

/* Descriptors. Memory of the caller's is a matrix of tiles as AL4SAN_desc_t says. */
AL4SAN_API int AL4SAN_Desc_Create(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int mb, int nb,
                                  int bsiz, int lm, int ln, int i, int j, int m, int n, int p, int q);
AL4SAN_API int AL4SAN_Desc_Create_User(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int mb, int nb,
                                       int bsiz, int lm, int ln, int i, int j, int m, int n, int p, int q,
                                       void* (*get_blkaddr)(const AL4SAN_desc_t*, int, int),
                                       int (*get_blkldd)(const AL4SAN_desc_t*, int),
                                       int (*get_rankof)(const AL4SAN_desc_t*, int, int));
AL4SAN_API int AL4SAN_Desc_Create_OOC(AL4SAN_desc_t** desc, al4san_flttype_t dtyp, int mb, int nb, int bsiz,
                                      int lm, int ln, int i, int j, int m, int n, int p, int q);
AL4SAN_API int AL4SAN_Desc_Create_OOC_User(AL4SAN_desc_t** desc, al4san_flttype_t dtyp, int mb, int nb,
                                           int bsiz, int lm, int ln, int i, int j, int m, int n, int p, int q,
                                           int (*get_rankof)(const AL4SAN_desc_t*, int, int));
/** `bld` is mb (contiguous tiles), or ld = lm (tiles of a column-major matrix). */
AL4SAN_API int AL4SAN_Matrix_Create(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int order, int mb,
                                    int nb, int bld, int lm, int ln, int ld);
AL4SAN_API int AL4SAN_Vector_Create(AL4SAN_desc_t** desc, void* vec, al4san_flttype_t dtyp, int mb, int lm);
AL4SAN_API int AL4SAN_Scaler_Create(AL4SAN_desc_t** desc, void* scaler, al4san_flttype_t dtyp);
#define AL4SAN_Scalar_Create AL4SAN_Scaler_Create
/** Waits for the tasks that use it. */
AL4SAN_API int AL4SAN_Desc_Destroy(AL4SAN_desc_t** desc);
/** The same, but memory and descriptor stay: for another descriptor over the same memory. */
AL4SAN_API int AL4SAN_Desc_Discharge(AL4SAN_desc_t** desc);
/** Waits for the tasks that use it. */
AL4SAN_API int AL4SAN_Desc_Acquire(AL4SAN_desc_t* desc);
AL4SAN_API int AL4SAN_Desc_Release(AL4SAN_desc_t* desc);
AL4SAN_API void AL4SAN_Free(void* pointer, size_t size);
AL4SAN_API int al4san_desc_init(AL4SAN_desc_t* desc, void* mat, al4san_flttype_t dtyp, int mb, int nb,
                                int bsiz, int lm, int ln, int i, int j, int m, int n, int p, int q,
                                void* (*get_blkaddr)(const AL4SAN_desc_t*, int, int),
                                int (*get_blkldd)(const AL4SAN_desc_t*, int),
                                int (*get_rankof)(const AL4SAN_desc_t*, int, int));
AL4SAN_API AL4SAN_desc_t* al4san_desc_submatrix(AL4SAN_desc_t* desc, int i, int j, int m, int n);
/** Without the descriptor itself. */
AL4SAN_API void al4san_desc_destroy(AL4SAN_desc_t* desc);
AL4SAN_API int al4san_desc_check(const AL4SAN_desc_t* desc);
AL4SAN_API int al4san_desc_islocal(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* al4san_getaddr_ccrb(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* al4san_getaddr_cm(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* al4san_getaddr_diag(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* al4san_getaddr_null(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API int al4san_getblkldd_ccrb(const AL4SAN_desc_t* desc, int m);
AL4SAN_API int al4san_getblkldd_cm(const AL4SAN_desc_t* desc, int m);
AL4SAN_API int al4san_getrankof_2d(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API int al4san_getrankof_2d_diag(const AL4SAN_desc_t* desc, int m, int n);

/* Where a tile is. */
AL4SAN_API void* AL4SAN_Data_getaddr(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* AL4SAN_Matrix_getaddr(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void* AL4SAN_Vector_getaddr(const AL4SAN_desc_t* desc, int m);
AL4SAN_API void* AL4SAN_Scaler_getaddr(const AL4SAN_desc_t* desc);
AL4SAN_API void AL4SAN_Data_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m, int n);
AL4SAN_API void AL4SAN_Matrix_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m, int n);
AL4SAN_API void AL4SAN_Vector_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m);
AL4SAN_API void AL4SAN_Scaler_Getaddr(const AL4SAN_desc_t* desc, void** pointer);
AL4SAN_API int AL4SAN_Data_Getrank(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API int AL4SAN_Matrix_Getrank(const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API int AL4SAN_Vector_Getrank(const AL4SAN_desc_t* desc, int m);
AL4SAN_API int AL4SAN_Scaler_Getrank(const AL4SAN_desc_t* desc, void** pointer);

/* That data are not needed for a while: in one memory there is nothing to do. */
AL4SAN_API void AL4SAN_Flush(void);
AL4SAN_API int AL4SAN_Desc_Flush(AL4SAN_desc_t* desc, AL4SAN_sequence_t* sequence);
AL4SAN_API void AL4SAN_Data_Flush(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m, int n);
AL4SAN_API void AL4SAN_Matrix_Flush(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m,
                                    int n);
AL4SAN_API void AL4SAN_Vector_Flush(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m);
AL4SAN_API void AL4SAN_Scaler_Flush(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc);
/* To rank 0, where they are. Another rank is an error of the sequence. */
AL4SAN_API void AL4SAN_Data_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m,
                                    int n, int new_rank);
AL4SAN_API void AL4SAN_Matrix_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m,
                                      int n, int new_rank);
AL4SAN_API void AL4SAN_Vector_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m,
                                      int new_rank);
AL4SAN_API void AL4SAN_Scaler_Migrate(const AL4SAN_sequence_t* sequence, const AL4SAN_desc_t* desc, int m,
                                      int new_rank);

/** AL4SAN_Insert_Task(AL4SAN_TASK(name), options, flag, ..., ARG_END). Each argument is VALUE, SCRATCH or
 * NODEP with a pointer and a size, or INPUT, OUTPUT or INOUT with AL4SAN_ADDR() or a plain address, and
 * AL4SAN_DEP. In the place of options a sequence will do. */
AL4SAN_API int AL4SAN_Insert_Task(AL4SAN_codelet quark, AL4SAN_codelet starpu, AL4SAN_codelet parsec,
                                  AL4SAN_codelet openmp, const AL4SAN_option_t* options, ...);
/** Copies values to, and sets pointers at, the places that are given, one for each argument in its order.
 * Too many or too few are ILLEGAL_VALUE, and an error of the sequence. */
AL4SAN_API int AL4SAN_Unpack_Arg(AL4SAN_arg_list* arguments, ...);

/** Options that name the sequence and nothing else. */
AL4SAN_API const AL4SAN_option_t* heddle_al4san_options_of(AL4SAN_sequence_t* sequence);
static inline const AL4SAN_option_t* heddle_al4san_same_options(const AL4SAN_option_t* options) {
    return options;
}

#ifdef __cplusplus
}
static inline const AL4SAN_option_t* heddle_al4san_options(AL4SAN_sequence_t* sequence) {
    return heddle_al4san_options_of(sequence);
}
static inline const AL4SAN_option_t* heddle_al4san_options(const AL4SAN_option_t* options) {
    return options;
}
#else
#define heddle_al4san_options(options)           \
    _Generic((options), AL4SAN_sequence_t *      \
             : heddle_al4san_options_of, default \
             : heddle_al4san_same_options)(options)
#endif

/* The ends are added, so that a missing one does no harm, and what is unpacked can be counted. */
#define AL4SAN_Insert_Task(task, options, ...) \
    AL4SAN_Insert_Task(task, heddle_al4san_options(options), __VA_ARGS__, ARG_END)
#define AL4SAN_Unpack_Arg(...) AL4SAN_Unpack_Arg(__VA_ARGS__, (void*)NULL)

/* What a program says and does by these; the library itself neither prints nor exits. AL4SAN's fatal error
 * ends the program with 0. */
static inline void al4san_error(const char* function, const char* message) {
    fprintf(stderr, "AL4SAN ERROR: %s(): %s\n", function, message);
}
static inline void al4san_warning(const char* function, const char* message) {
    const AL4SAN_context_t* context = al4san_context_self();
    if (context == NULL || context->warnings_enabled)
        fprintf(stderr, "AL4SAN WARNING: %s(): %s\n", function, message);
}
static inline void al4san_fatal_error(const char* function, const char* message) {
    fprintf(stderr, "AL4SAN FATAL ERROR: %s(): %s\n", function, message);
    exit(EXIT_FAILURE);
}
#define AL4SAN_Error al4san_error
#define AL4SAN_Warning al4san_warning
#define AL4SAN_Fatal_Error al4san_fatal_error

#endif
