/* Structures of AL4SAN 1.1 whose fields programs read and write. The library makes contexts, sequences and
 * descriptors; `schedopt` is the library's. Fields for MPI are there always: rank 0 of 1. */
#ifndef HEDDLE_COMPAT_AL4SAN_STRUCT_H
#define HEDDLE_COMPAT_AL4SAN_STRUCT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int8_t al4san_bool_t;
typedef int AL4SAN_enum;
typedef int AL4SAN_bool;
typedef long AL4SAN_index;
typedef long AL4SAN_size;
typedef void* AL4SAN_codelet;
typedef void* AL4SAN_arg;
#ifndef __cplusplus
#define AL4SAN_Complex32_t float _Complex
#define AL4SAN_Complex64_t double _Complex
#endif

static inline int al4san_max(int a, int b) {
    return a > b ? a : b;
}
static inline int al4san_min(int a, int b) {
    return a < b ? a : b;
}

/** Which engine runs tasks; the last three are not in AL4SAN. */
typedef enum al4san_sched_e {
    AL4SAN_RUNTIME_SCHED_QUARK = 0,
    AL4SAN_RUNTIME_SCHED_STARPU = 1,
    AL4SAN_RUNTIME_SCHED_PARSEC = 2,
    AL4SAN_RUNTIME_SCHED_OPENMP = 3,
    AL4SAN_RUNTIME_SCHED_NATIVE = 4,
    AL4SAN_RUNTIME_SCHED_TBB = 5,
    AL4SAN_RUNTIME_SCHED_OTHER = 6
} AL4SAN_sched_t;

typedef struct al4san_context_s {
    AL4SAN_sched_t scheduler;
    AL4SAN_sched_t starpu_schd;
    int nworkers;
    int ncudas;
    int nthreads_per_worker;
    int my_mpi_rank;
    int mpi_comm_size;
    int pcols;
    int prows;
    int world_size;
    int group_size;
    AL4SAN_bool warnings_enabled;
    AL4SAN_bool autotuning_enabled;
    AL4SAN_bool parallel_enabled;
    AL4SAN_bool profiling_enabled;
    AL4SAN_bool progress_enabled;
    int householder;
    int translation;
    int nb;
    int ib;
    void* schedopt;
    int mpi_outer_init;
} AL4SAN_context_t;

/** A matrix of tiles: each tile is contiguous, tiles by columns, the full ones (A11) first, then the lower
 * edge (A21), the right edge (A12) and the corner (A22). */
typedef struct al4san_desc_s AL4SAN_desc_t;
struct al4san_desc_s {
    void* (*get_blkaddr)(const AL4SAN_desc_t*, int, int);
    int (*get_blkldd)(const AL4SAN_desc_t*, int);
    int (*get_rankof)(const AL4SAN_desc_t*, int, int);
    void* mat;
    size_t A21, A12, A22; /**< where these parts begin, in elements */
    unsigned int styp;
    unsigned int dtyp;
    int mb, nb;   /**< rows and columns of a tile */
    int bsiz;     /**< elements of a tile */
    int lm, ln;   /**< rows and columns of the whole matrix */
    int lmt, lnt; /**< the same, of tiles */
    int i, j;     /**< where the submatrix begins */
    int m, n;     /**< rows and columns of the submatrix */
    int mt, nt;   /**< the same, of tiles */
    int p, q;     /**< the grid of processes: 1 x 1 */
    int llm, lln, llm1, lln1, llmt, llnt;
    int id;
    int occurences;
    int use_mat, alloc_mat, register_mat;
    int myrank;
    int ooc;
    void* schedopt;
};

typedef struct al4san_request_s {
    AL4SAN_enum status;
} AL4SAN_request_t;

typedef struct al4san_sequence_s {
    /** Not AL4SAN_SUCCESS: its tasks that have not begun do not run, and what is inserted is refused. */
    AL4SAN_bool status;
    AL4SAN_request_t* request;
    void* schedopt;
} AL4SAN_sequence_t;

typedef struct al4san_option_s {
    AL4SAN_sequence_t* sequence;
    AL4SAN_request_t* request;
    int profiling;
    int parallel;
    int priority;
    size_t ws_wsize;
    size_t ws_hsize;
    void* ws_worker;
    void* ws_host;
    void* schedopt;
} AL4SAN_option_t;

typedef struct {
    void** spaces; /**< by AL4SAN_Thread_Rank() */
    size_t lworkspace;
    int nthread;
    size_t dtyp; /**< bytes of an element */
} AL4SAN_workspace_t;

typedef struct al4san_arg_list_s {
    void* Quark_arg_list;
    void* Starpu_arg_list;
    void* Parsec_arg_list;
    void* Openmp_arg_list;
} AL4SAN_arg_list;
/** As seed 003 writes it. */
typedef AL4SAN_arg_list AL4SAN_arglist;

#ifdef __cplusplus
}
#endif

#endif
