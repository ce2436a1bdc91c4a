/* AL4SAN's interface on each engine that is there: the Cholesky factorisation of seed 003 Fig. 2 as it is
 * written there, the same over descriptors with the calls of AL4SAN's header, and what is refused. */
#include <al4san.h>
#include <al4san/timer.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "available_engines.h"
#include "control/al4san_descriptor.h"
#include "runtime/al4san_openmp.h"
#include "runtime/al4san_parsec.h"
#include "runtime/al4san_quark.h"
#include "runtime/al4san_runtime.h"
#include "runtime/al4san_starpu.h"

#define REFUSED(call, code, words) EXPECT((call) == (code)), EXPECT_SAID(words)

enum { kTile = 8, kTiles = 5, kEdge = 3, kRows = kTile * (kTiles - 1) + kEdge };

static double element(int i, int j) {
    return i == j ? 2.0 * kRows : 1.0 / (1 + abs(i - j));
}
static int rows_of(int tile) {
    return tile == kTiles - 1 ? kEdge : kTile;
}

/* Kernels on column-major tiles: A = L L^T, B = B L^-T, C = C - A B^T. */
static void potrf(int n, double* a, int lda, int* info) {
    for (int j = 0; j < n && *info == 0; ++j) {
        for (int k = 0; k < j; ++k) a[j + j * lda] -= a[j + k * lda] * a[j + k * lda];
        if (a[j + j * lda] <= 0) *info = j + 1;
        a[j + j * lda] = sqrt(a[j + j * lda]);
        for (int i = j + 1; i < n; ++i) {
            for (int k = 0; k < j; ++k) a[i + j * lda] -= a[i + k * lda] * a[j + k * lda];
            a[i + j * lda] /= a[j + j * lda];
        }
    }
}
static void trsm(int m, int n, const double* l, int ldl, double* b, int ldb) {
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
            for (int k = 0; k < j; ++k) b[i + j * ldb] -= b[i + k * ldb] * l[j + k * ldl];
            b[i + j * ldb] /= l[j + j * ldl];
        }
}
static void gemm(int m, int n, int k, const double* a, int lda, const double* b, int ldb, double* c,
                 int ldc) {
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i)
            for (int l = 0; l < k; ++l) c[i + j * ldc] -= a[i + l * lda] * b[j + l * ldb];
}

AL4SAN_Task_CPU(POTRF, POTRF_CPU) AL4SAN_TASK_CPU(TRSM, TRSM_CPU) AL4SAN_TASK_CPU(SYRK, SYRK_CPU)
    AL4SAN_TASK_CPU_GPU(GEMM, GEMM_CPU, GEMM_GPU) AL4SAN_TASK_GPU(GPU_ALONE, GEMM_GPU)

        void POTRF_CPU(AL4SAN_arglist* al4san_arg) {
    int uplo, nb, lda, info;
    double* A;
    AL4SAN_Unpack_Arg(al4san_arg, &uplo, &nb, &A, &lda, &info);
    potrf(nb, A, lda, &info);
}
void TRSM_CPU(AL4SAN_arg_list* al4san_arg) {
    int m, n, ldl, ldb;
    double *L, *B;
    AL4SAN_Unpack_Arg(al4san_arg, &m, &n, &L, &ldl, &B, &ldb);
    trsm(m, n, L, ldl, B, ldb);
}
void SYRK_CPU(AL4SAN_arg_list* al4san_arg) {
    int n, k, lda, ldc;
    double *A, *C;
    AL4SAN_Unpack_Arg(al4san_arg, &n, &k, &A, &lda, &C, &ldc);
    gemm(n, n, k, A, lda, A, lda, C, ldc);
}
void GEMM_CPU(AL4SAN_arg_list* al4san_arg) {
    int m, n, k, lda, ldb, ldc;
    double *A, *B, *C, *work;
    AL4SAN_Unpack_Arg(al4san_arg, &m, &n, &k, &A, &lda, &B, &ldb, &C, &ldc, &work);
    memset(work, 0, (size_t)(m * n) * sizeof *work);
    gemm(m, n, k, A, lda, B, ldb, work, m);
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) C[i + j * ldc] += work[i + j * m];
}

/* Where element (i, j) of a matrix of tiles is. */
static double* in_tiles(double* (*tile)(const void*, int, int), const void* matrix, int i, int j) {
    return tile(matrix, i / kTile, j / kTile) + i % kTile + j % kTile * rows_of(i / kTile);
}

static double residual(double* (*tile)(const void*, int, int), const void* matrix) {
    double worst = 0;
    for (int j = 0; j < kRows; ++j)
        for (int i = j; i < kRows; ++i) {
            double sum = 0;
            for (int k = 0; k <= j; ++k) sum += *in_tiles(tile, matrix, i, k) * *in_tiles(tile, matrix, j, k);
            worst = fmax(worst, fabs(sum - element(i, j)));
        }
    return worst / (2.0 * kRows);
}

typedef double* tiles_t[kTiles][kTiles];
static double* tile_of_array(const void* matrix, int m, int n) {
    return ((double*(*)[kTiles])(uintptr_t)matrix)[m][n];
}
static double* tile_of_descriptor(const void* matrix, int m, int n) {
    const AL4SAN_desc_t* A = matrix;
    return A->get_blkaddr(A, m, n);
}

/* The call of Fig. 2 (b), and its like for the other tasks. */
static void insert_potrf(AL4SAN_sequence_t* sequence, double* A, int nb, int lda) {
    int uplo = Al4sanLower, info = 0;
    AL4SAN_Insert_Task(AL4SAN_TASK(POTRF), sequence, AL4SAN_VALUE, &uplo, sizeof(int), AL4SAN_VALUE, &nb,
                       sizeof(int), AL4SAN_INOUT, A, AL4SAN_DEP, AL4SAN_VALUE, &lda, sizeof(int),
                       AL4SAN_VALUE, &info, sizeof(int), ARG_END);
}

/* Fig. 2 (a): dependencies by addresses, tasks inserted into a sequence. */
static void figure_2(void) {
    static double memory[kTiles][kTiles][kTile * kTile];
    tiles_t A;
    for (int m = 0; m < kTiles; ++m)
        for (int n = 0; n < kTiles; ++n) A[m][n] = memory[m][n];
    for (int j = 0; j < kRows; ++j)
        for (int i = 0; i < kRows; ++i) *in_tiles(tile_of_array, A, i, j) = element(i, j);

    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    for (int k = 0; k < kTiles; k++) {
        int kb = rows_of(k);
        insert_potrf(sequence, A[k][k], kb, kb);
        for (int m = k + 1; m < kTiles; m++) {
            int mb = rows_of(m);
            AL4SAN_Insert_Task(AL4SAN_TASK(TRSM), sequence, AL4SAN_VALUE, &mb, sizeof(int), AL4SAN_VALUE, &kb,
                               sizeof(int), AL4SAN_INPUT, A[k][k], AL4SAN_DEP, AL4SAN_VALUE, &kb, sizeof(int),
                               AL4SAN_INOUT, A[m][k], AL4SAN_DEP, AL4SAN_VALUE, &mb, sizeof(int), ARG_END);
        }
        for (int n = k + 1; n < kTiles; n++) {
            int nb = rows_of(n);
            AL4SAN_Insert_Task(AL4SAN_TASK(SYRK), sequence, AL4SAN_VALUE, &nb, sizeof(int), AL4SAN_VALUE, &kb,
                               sizeof(int), AL4SAN_INPUT, A[n][k], AL4SAN_DEP, AL4SAN_VALUE, &nb, sizeof(int),
                               AL4SAN_INOUT, A[n][n], AL4SAN_DEP, AL4SAN_VALUE, &nb, sizeof(int), ARG_END);
            for (int m = n + 1; m < kTiles; m++) {
                int mb = rows_of(m);
                AL4SAN_Insert_Task(AL4SAN_TASK(GEMM), sequence, AL4SAN_VALUE, &mb, sizeof(int), AL4SAN_VALUE,
                                   &nb, sizeof(int), AL4SAN_VALUE, &kb, sizeof(int), AL4SAN_INPUT, A[m][k],
                                   AL4SAN_DEP, AL4SAN_VALUE, &mb, sizeof(int), AL4SAN_INPUT, A[n][k],
                                   AL4SAN_DEP, AL4SAN_VALUE, &nb, sizeof(int), AL4SAN_INOUT, A[m][n],
                                   AL4SAN_DEP, AL4SAN_VALUE, &mb, sizeof(int), AL4SAN_SCRATCH, NULL,
                                   (size_t)(mb * nb) * sizeof(double), ARG_END);
            }
        }
    }
    EXPECT(AL4SAN_Sequence_Wait(sequence) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(residual(tile_of_array, A) < 1e-14);
}

#define TILE(m, n) AL4SAN_ADDR(A, double, m, n), AL4SAN_DEP
#define INT(variable) AL4SAN_VALUE, &variable, sizeof(int)

/* As AL4SAN's own programs do it: descriptors, options, priorities; halfway another engine. */
static void over_descriptors(AL4SAN_desc_t* A, const char* second) {
    AL4SAN_request_t request = AL4SAN_REQUEST_INITIALIZER;
    AL4SAN_option_t options;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    EXPECT(AL4SAN_Options_Init(&options, sequence, &request) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Options_Workspace_Alloc(&options, kTile * kTile, 100) == AL4SAN_SUCCESS);
    EXPECT(options.ws_host != NULL && options.ws_worker == NULL);
    for (int k = 0; k < A->nt; k++) {
        if (k == A->nt / 2) EXPECT(AL4SAN_Switch_Runtime(second, 2, 0) != NULL);
        int uplo = Al4sanLower, info = 0, kb = rows_of(k), ldk = A->get_blkldd(A, k);
        options.priority = 2 * A->nt - 2 * k;
        AL4SAN_Insert_Task(AL4SAN_TASK(POTRF), &options, INT(uplo), INT(kb), AL4SAN_INOUT | AL4SAN_AFFINITY,
                           TILE(k, k), INT(ldk), INT(info), AL4SAN_PRIORITY, options.priority, sizeof(int),
                           AL4SAN_LABEL, "potrf", sizeof(char), AL4SAN_COLOR, "green", sizeof(char), ARG_END);
        for (int m = k + 1; m < A->mt; m++) {
            int mb = rows_of(m), ldm = A->get_blkldd(A, m);
            AL4SAN_Insert_Task(AL4SAN_TASK(TRSM), (AL4SAN_option_t*)&options, INT(mb), INT(kb),
                               AL4SAN_INPUT | AL4SAN_REGION_D, TILE(k, k), INT(ldk), AL4SAN_INOUT, TILE(m, k),
                               INT(ldm), AL4SAN_EXECUTE_ON_NODE, A->get_rankof(A, m, k), sizeof(int),
                               ARG_END);
        }
        AL4SAN_Data_Flush(sequence, A, k, k);
        for (int n = k + 1; n < A->nt; n++) {
            int nb = rows_of(n), ldn = A->get_blkldd(A, n);
            AL4SAN_Insert_Task(AL4SAN_TASK(SYRK), &options, INT(nb), INT(kb), AL4SAN_INPUT, TILE(n, k),
                               INT(ldn), AL4SAN_INOUT | AL4SAN_COMMUTE, TILE(n, n), INT(ldn), ARG_END);
            for (int m = n + 1; m < A->mt; m++) {
                int mb = rows_of(m), ldm = A->get_blkldd(A, m);
                AL4SAN_Insert_Task(AL4SAN_TASK(GEMM), &options, INT(mb), INT(nb), INT(kb), AL4SAN_INPUT,
                                   TILE(m, k), INT(ldm), AL4SAN_INPUT, TILE(n, k), INT(ldn),
                                   AL4SAN_INOUT | AL4SAN_LOCALITY, TILE(m, n), INT(ldm), AL4SAN_SCRATCH,
                                   options.ws_worker, sizeof(double) * options.ws_wsize, AL4SAN_CUDA_FLG,
                                   m % 2 ? ON : OFF, sizeof(int), ARG_END);
            }
        }
    }
    EXPECT(AL4SAN_Options_Workspace_Free(&options) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Options_Finalize(&options) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Desc_Flush(A, sequence) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Desc_Acquire(A) == AL4SAN_SUCCESS);
    EXPECT(residual(tile_of_descriptor, A) < 1e-14);
    EXPECT(AL4SAN_Desc_Release(A) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Wait(sequence) == AL4SAN_SUCCESS && sequence->status == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
}

static void fill(AL4SAN_desc_t* A) {
    for (int j = 0; j < kRows; ++j)
        for (int i = 0; i < kRows; ++i) *in_tiles(tile_of_descriptor, A, i, j) = element(i, j);
}

AL4SAN_TASK_CPU(count, count_in_workspace)
void count_in_workspace(AL4SAN_arg_list* arguments) {
    AL4SAN_workspace_t* workspace;
    AL4SAN_Unpack_Arg(arguments, &workspace);
    const int rank = AL4SAN_Thread_Rank();
    if (rank >= 0 && rank < workspace->nthread) ++*(int*)workspace->spaces[rank];
}

static void workspaces_are_for_one_task_at_a_time(void) {
    AL4SAN_workspace_t workspace, *pointer = &workspace;
    EXPECT(AL4SAN_Workspace_Create(&workspace, 16, sizeof(int)) == AL4SAN_SUCCESS);
    EXPECT(workspace.nthread == AL4SAN_Thread_Size() && AL4SAN_Thread_Rank() == -1);
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    for (int i = 0; i < 1000; ++i)
        AL4SAN_Insert_Task(AL4SAN_TASK(count), sequence, AL4SAN_VALUE, &pointer, sizeof pointer, ARG_END);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    int sum = 0;
    for (int i = 0; i < workspace.nthread; ++i) sum += *(int*)workspace.spaces[i];
    EXPECT(sum == 1000);
    EXPECT(AL4SAN_Workspace_Destroy(&workspace) == AL4SAN_SUCCESS);
}

AL4SAN_TASK_CPU(increment, increment)
void increment(AL4SAN_arg_list* arguments) {
    int* value;
    AL4SAN_Unpack_Arg(arguments, &value);
    ++*value;
}
AL4SAN_TASK_CPU(wrong, unpack_too_much)
void unpack_too_much(AL4SAN_arg_list* arguments) {
    int *value, another;
    AL4SAN_Unpack_Arg(arguments, &value, &another);
}

static void paused_tasks_wait(void) {
    int value = 0;
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    EXPECT(AL4SAN_Pause() == AL4SAN_SUCCESS);
    for (int i = 0; i < 10; ++i)
        AL4SAN_Insert_Task(AL4SAN_TASK(increment), sequence, AL4SAN_INOUT, &value, AL4SAN_DEP, ARG_END);
    REFUSED(AL4SAN_Barrier(), AL4SAN_ERR_ILLEGAL_VALUE, "paused");
    REFUSED(AL4SAN_Sequence_Destroy(sequence), AL4SAN_ERR_ILLEGAL_VALUE, "paused");
    EXPECT(value == 0);
    EXPECT(AL4SAN_Resume() == AL4SAN_SUCCESS && AL4SAN_Barrier() == AL4SAN_SUCCESS);
    EXPECT(value == 10);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
}

/* Each on a sequence of its own, which keeps the code. */
#define INSERT_REFUSED(code, words, ...)                                                             \
    do {                                                                                             \
        AL4SAN_sequence_t* one = AL4SAN_Sequence_Create();                                           \
        REFUSED(AL4SAN_Insert_Task(AL4SAN_TASK(increment), one, __VA_ARGS__, ARG_END), code, words); \
        EXPECT(one->status == (code) && AL4SAN_Sequence_Wait(one) == (code));                        \
        EXPECT(AL4SAN_Sequence_Destroy(one) == (code));                                              \
    } while (0)

static void what_tasks_cannot_be_is_refused(void) {
    int value = 0;
    INSERT_REFUSED(AL4SAN_ERR_ILLEGAL_VALUE, "no flag", 0x800, &value, AL4SAN_DEP);
    INSERT_REFUSED(AL4SAN_ERR_ILLEGAL_VALUE, "no pointer", AL4SAN_VALUE, NULL, sizeof(int));
    INSERT_REFUSED(AL4SAN_ERR_ILLEGAL_VALUE, "no address", AL4SAN_INOUT, NULL, AL4SAN_DEP);
    INSERT_REFUSED(AL4SAN_ERR_NOT_SUPPORTED, "rank 0", AL4SAN_EXECUTE_ON_NODE, 3, sizeof(int));
    INSERT_REFUSED(AL4SAN_ERR_NOT_SUPPORTED, "one thread", AL4SAN_THREAD_COUNT, 4, sizeof(int));
    INSERT_REFUSED(AL4SAN_ERR_NOT_SUPPORTED, "AL4SAN.md", AL4SAN_LOCK_TO_THREAD, 1, sizeof(int));
    INSERT_REFUSED(AL4SAN_ERR_NOT_SUPPORTED, "AL4SAN.md", AL4SAN_CALLBACK, NULL, sizeof(int));
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    REFUSED(AL4SAN_Insert_Task(AL4SAN_TASK(GPU_ALONE), sequence, ARG_END), AL4SAN_ERR_NOT_SUPPORTED, "GPUs");
    REFUSED(AL4SAN_Insert_Task(AL4SAN_TASK(increment), sequence, ARG_END), AL4SAN_ERR_SEQUENCE_FLUSHED,
            "-103");
    AL4SAN_Sequence_Destroy(sequence);
    sequence = AL4SAN_Sequence_Create();
    AL4SAN_Insert_Task(AL4SAN_TASK(wrong), sequence, AL4SAN_INOUT, &value, AL4SAN_DEP, ARG_END);
    REFUSED(AL4SAN_Sequence_Wait(sequence), AL4SAN_ERR_ILLEGAL_VALUE,
            "has 1 arguments, and its function unpacks more");
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_ERR_ILLEGAL_VALUE);
    sequence = AL4SAN_Sequence_Create();
    AL4SAN_request_t request = AL4SAN_REQUEST_INITIALIZER;
    EXPECT(AL4SAN_Sequence_Flush(sequence, &request) == AL4SAN_SUCCESS);
    EXPECT(request.status == AL4SAN_ERR_SEQUENCE_FLUSHED);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_ERR_SEQUENCE_FLUSHED);
    REFUSED(AL4SAN_Insert_Task(AL4SAN_TASK(increment), (AL4SAN_option_t*)NULL, ARG_END),
            AL4SAN_ERR_UNALLOCATED, "no sequence");
    REFUSED(AL4SAN_Sequence_Wait(NULL), AL4SAN_ERR_UNALLOCATED, "no sequence");
}

static void what_descriptors_cannot_be_is_refused(void) {
    AL4SAN_desc_t* desc = NULL;
    REFUSED(AL4SAN_Matrix_Create(&desc, NULL, Al4sanRealDouble, AL4SAN_Row_Major, 4, 4, 4, 8, 8, 8),
            AL4SAN_ERR_NOT_SUPPORTED, "by rows");
    REFUSED(AL4SAN_Matrix_Create(&desc, NULL, Al4sanRealDouble, AL4SAN_Col_Major, 4, 4, 5, 8, 8, 8),
            AL4SAN_ERR_NOT_SUPPORTED, "leading dimension");
    REFUSED(AL4SAN_Matrix_Create(&desc, NULL, Al4sanRealDouble, AL4SAN_Col_Major, 0, 4, 0, 8, 8, 8),
            AL4SAN_ERR_ILLEGAL_VALUE, "tiles cannot be");
    REFUSED(AL4SAN_Desc_Create(&desc, NULL, Al4sanRealDouble, 4, 4, 16, 8, 8, 0, 0, 8, 8, 2, 1),
            AL4SAN_ERR_NOT_SUPPORTED, "one process");
    REFUSED(AL4SAN_Desc_Create(&desc, NULL, Al4sanRealDouble, 4, 4, 15, 8, 8, 0, 0, 8, 8, 1, 1),
            AL4SAN_ERR_ILLEGAL_VALUE, "15 elements");
    REFUSED(AL4SAN_Desc_Create(&desc, NULL, Al4sanRealDouble, 4, 4, 32, 8, 8, 0, 0, 8, 8, 1, 1),
            AL4SAN_ERR_ILLEGAL_VALUE, "32 elements");
    REFUSED(AL4SAN_Desc_Create(&desc, NULL, Al4sanRealDouble, 4, 4, 16, 8, 8, 4, 0, 8, 8, 1, 1),
            AL4SAN_ERR_ILLEGAL_VALUE, "from (4, 0) on");
    REFUSED(AL4SAN_Vector_Create(&desc, NULL, (al4san_flttype_t)9, 4, 8), AL4SAN_ERR_ILLEGAL_VALUE,
            "no type 9");
    EXPECT(desc == NULL);
    REFUSED(AL4SAN_Desc_Destroy(&desc), AL4SAN_ERR_UNALLOCATED, "no descriptor");
    EXPECT(AL4SAN_Desc_Create_OOC(&desc, Al4sanComplexFloat, 4, 4, 16, 10, 10, 0, 0, 10, 10, 1, 1) == 0);
    EXPECT(desc->mt == 3 && desc->get_blkldd(desc, 2) == 2 && al4san_desc_check(desc) == AL4SAN_SUCCESS);
    AL4SAN_desc_t* part = al4san_desc_submatrix(desc, 4, 4, 6, 6);
    EXPECT(part != NULL && part->mt == 2 && part->get_blkaddr(part, 1, 0) == desc->get_blkaddr(desc, 2, 1));
    EXPECT(AL4SAN_Desc_Destroy(&part) == AL4SAN_SUCCESS && part == NULL);
    /* The whole is there yet, and its tiles can be named. */
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    AL4SAN_Insert_Task(AL4SAN_TASK(increment), sequence, AL4SAN_INOUT, AL4SAN_ADDR(desc, int, 0, 0),
                       AL4SAN_DEP, ARG_END);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_SUCCESS);
    EXPECT(al4san_desc_submatrix(desc, 8, 8, 4, 4) == NULL);
    EXPECT(AL4SAN_Desc_Destroy(&desc) == AL4SAN_SUCCESS && desc == NULL);
}

static void all_on(const char* second) {
    figure_2();
    AL4SAN_desc_t* A = NULL;
    EXPECT(AL4SAN_Matrix_Create(&A, NULL, Al4sanRealDouble, AL4SAN_Col_Major, kTile, kTile, kTile, kRows,
                                kRows, kRows) == AL4SAN_SUCCESS);
    fill(A);
    over_descriptors(A, second);
    EXPECT(AL4SAN_Switch_Runtime(tested_engine, 1, 0) != NULL);
    EXPECT(AL4SAN_Thread_Size() == 1);
    EXPECT(AL4SAN_Desc_Discharge(&A) == AL4SAN_SUCCESS);
    AL4SAN_desc_t* again = NULL;
    EXPECT(AL4SAN_Matrix_Create(&again, A->mat, Al4sanRealDouble, AL4SAN_Col_Major, kTile, kTile, kTile,
                                kRows, kRows, kRows) == AL4SAN_SUCCESS);
    fill(again);
    over_descriptors(again, second);
    EXPECT(AL4SAN_Desc_Destroy(&again) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Desc_Destroy(&A) == AL4SAN_SUCCESS);
    EXPECT(AL4SAN_Switch_Runtime(tested_engine, 0, 0) != NULL);
    workspaces_are_for_one_task_at_a_time();
    paused_tasks_wait();
    what_tasks_cannot_be_is_refused();
    what_descriptors_cannot_be_is_refused();
}

static void before_there_is_a_context(void) {
    int number = 0;
    EXPECT(al4san_context_self() == NULL);
    REFUSED(AL4SAN_Finalize(), AL4SAN_ERR_NOT_INITIALIZED, "AL4SAN_Init()");
    EXPECT(AL4SAN_Sequence_Create() == NULL && AL4SAN_Barrier() == AL4SAN_ERR_NOT_INITIALIZED);
    EXPECT(AL4SAN_Init("loom", 2, 0) == NULL && AL4SAN_Init("native", 2, 1) == NULL);
    EXPECT(AL4SAN_Init(NULL, 2, 0) == NULL && AL4SAN_InitPar("native", 2, 0, 4) == NULL);
    EXPECT(AL4SAN_Version(&number, NULL, NULL) == AL4SAN_SUCCESS && number == 1);
    EXPECT(AL4SAN_Element_Size(Al4sanComplexDouble) == 16);
    EXPECT(AL4SAN_Element_Size(77) == AL4SAN_ERR_ILLEGAL_VALUE);
    EXPECT(AL4SAN_timer() > 0);
}

static void one_process_and_its_parameters(void) {
    int value = 0;
    EXPECT(AL4SAN_Comm_Rank() == 0 && AL4SAN_Comm_Size() == 1 && AL4SAN_My_Mpi_Rank() == 0);
    AL4SAN_sequence_t* sequence = AL4SAN_Sequence_Create();
    AL4SAN_Data_Migrate(sequence, NULL, 0, 0, 0);
    EXPECT(sequence->status == AL4SAN_SUCCESS);
    AL4SAN_Data_Migrate(sequence, NULL, 0, 0, 1);
    EXPECT(AL4SAN_Sequence_Destroy(sequence) == AL4SAN_ERR_NOT_SUPPORTED);
    EXPECT(AL4SAN_Set(AL4SAN_TILE_SIZE, 320) == 0 && AL4SAN_Get(AL4SAN_TILE_SIZE, &value) == 0 &&
           value == 320);
    EXPECT(AL4SAN_Set(99, 1) == AL4SAN_ERR_ILLEGAL_VALUE && AL4SAN_Enable(99) == AL4SAN_ERR_ILLEGAL_VALUE);
    EXPECT(AL4SAN_Disable(AL4SAN_WARNINGS) == 0 && !al4san_context_self()->warnings_enabled);
    EXPECT(AL4SAN_Init("native", 2, 0) == NULL);
    EXPECT(AL4SAN_Switch_Runtime("loom", 2, 0) == NULL && AL4SAN_Switch_Runtime(tested_engine, 2, 1) == NULL);
}

static void on(const char* engine) {
    /* Names are known in any case, as AL4SAN writes them. */
    char name[32];
    snprintf(name, sizeof name, "%c%s", engine[0] - 'a' + 'A', engine + 1);
    EXPECT(AL4SAN_Init(name, 2, 0) != NULL);
    one_process_and_its_parameters();
    static bool is_first = true;
    all_on(is_first ? engine : "Native");
    is_first = false;
    EXPECT(AL4SAN_Finalize() == AL4SAN_SUCCESS);
}

int main(void) {
    before_there_is_a_context();
    for_each_available_engine(on);
    return failures == 0 ? 0 : 1;
}
