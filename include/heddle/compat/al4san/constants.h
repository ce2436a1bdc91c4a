/* Constants of AL4SAN 1.1: numbers that programs hand to BLAS, and codes that calls answer. */
#ifndef HEDDLE_COMPAT_AL4SAN_CONSTANTS_H
#define HEDDLE_COMPAT_AL4SAN_CONSTANTS_H

#define AL4SAN_VERSION_MAJOR 1
#define AL4SAN_VERSION_MINOR 1
#define AL4SAN_VERSION_MICRO 0

/* Whatever number comes is looked at, and refused where it is none of them. */
#ifdef __cplusplus
#define HEDDLE_AL4SAN_ANY : int
#else
#define HEDDLE_AL4SAN_ANY
#endif

typedef enum al4san_flttype_e HEDDLE_AL4SAN_ANY {
    Al4sanByte = 0,
    Al4sanInteger = 1,
    Al4sanRealFloat = 2,
    Al4sanRealDouble = 3,
    Al4sanComplexFloat = 4,
    Al4sanComplexDouble = 5
} al4san_flttype_t;

typedef enum al4san_storage_e {
    Al4sanCM = 101,
    Al4sanRM = 102,
    Al4sanCCRB = 103,
    Al4sanCRRB = 104,
    Al4sanRCRB = 105,
    Al4sanRRRB = 106
} al4san_storage_t;

typedef enum al4san_trans_e { Al4sanNoTrans = 111, Al4sanTrans = 112, Al4sanConjTrans = 113 } al4san_trans_t;

typedef enum al4san_uplo_e { Al4sanUpper = 121, Al4sanLower = 122, Al4sanUpperLower = 123 } al4san_uplo_t;

typedef enum al4san_diag_e { Al4sanNonUnit = 131, Al4sanUnit = 132 } al4san_diag_t;
typedef enum al4san_side_e { Al4sanLeft = 141, Al4sanRight = 142 } al4san_side_t;

typedef enum al4san_normtype_e {
    Al4sanOneNorm = 171,
    Al4sanFrobeniusNorm = 174,
    Al4sanInfNorm = 175,
    Al4sanMaxNorm = 177
} al4san_normtype_t;

typedef enum al4san_dist_e {
    Al4sanDistUniform = 201,
    Al4sanDistSymmetric = 202,
    Al4sanDistNormal = 203
} al4san_dist_t;

#define Al4sanHermGeev 241
#define Al4sanHermPoev 242
#define Al4sanNonsymPosv 243
#define Al4sanSymPosv 244
#define Al4sanNoPacking 291
#define Al4sanPackSubdiag 292
#define Al4sanPackSupdiag 293
#define Al4sanPackColumn 294
#define Al4sanPackRow 295
#define Al4sanPackLowerBand 296
#define Al4sanPackUpeprBand 297
#define Al4sanPackAll 298
#define Al4sanW 501
#define Al4sanA2 502
#define Al4sanTrd 1001
#define Al4sanBrd 1002

typedef enum al4san_job_e { Al4sanNoVec = 301, Al4sanVec = 302, Al4sanIvec = 303 } al4san_job_t;
typedef enum al4san_dir_e { Al4sanDirForward = 391, Al4sanDirBackward = 392 } al4san_dir_t;
typedef enum al4san_store_e { Al4sanColumnwise = 401, Al4sanRowwise = 402 } al4san_store_t;
typedef enum al4san_householder_e {
    Al4sanFlatHouseholder = 1,
    Al4sanTreeHouseholder = 2
} al4san_householder_t;
typedef enum al4san_translation_e { Al4sanInPlace = 1, Al4sanOutOfPlace = 2 } al4san_translation_t;

#define AL4SAN_FALSE 0
#define AL4SAN_TRUE 1
#define AL4SAN_CPU ((1ULL) << 1)
#define AL4SAN_CUDA ((1ULL) << 3)

/* Of AL4SAN_Enable and AL4SAN_Disable. */
#define AL4SAN_WARNINGS 1
#define AL4SAN_ERRORS 2
#define AL4SAN_AUTOTUNING 3
#define AL4SAN_DAG 4
#define AL4SAN_PROFILING_MODE 5
#define AL4SAN_PARALLEL_MODE 6
#define AL4SAN_BOUND 7
#define AL4SAN_PROGRESS 8
#define AL4SAN_GEMM3M 9

/* Of AL4SAN_Set and AL4SAN_Get. */
#define AL4SAN_CONCURRENCY 1
#define AL4SAN_TILE_SIZE 2
#define AL4SAN_INNER_BLOCK_SIZE 3
#define AL4SAN_HOUSEHOLDER_MODE 5
#define AL4SAN_HOUSEHOLDER_SIZE 6
#define AL4SAN_TRANSLATION_MODE 7

/* Instead of a matrix' memory. */
#define AL4SAN_MAT_ALLOC_GLOBAL NULL
#define AL4SAN_MAT_ALLOC_TILE ((void*)-1)
#define AL4SAN_MAT_OOC ((void*)-2)

#define AL4SAN_SUCCESS 0
#define AL4SAN_ERR_NOT_INITIALIZED (-101)
#define AL4SAN_ERR_REINITIALIZED (-102)
#define AL4SAN_ERR_NOT_SUPPORTED (-103)
#define AL4SAN_ERR_ILLEGAL_VALUE (-104)
#define AL4SAN_ERR_NOT_FOUND (-105)
#define AL4SAN_ERR_OUT_OF_RESOURCES (-106)
#define AL4SAN_ERR_INTERNAL_LIMIT (-107)
#define AL4SAN_ERR_UNALLOCATED (-108)
#define AL4SAN_ERR_FILESYSTEM (-109)
#define AL4SAN_ERR_UNEXPECTED (-110)
#define AL4SAN_ERR_SEQUENCE_FLUSHED (-111)

#define AL4SAN_Col_Major 132
#define AL4SAN_Row_Major 142
#define AL4SAN_PRIORITY_MIN 0
#define AL4SAN_PRIORITY_MAX INT_MAX
#define AL4SAN_REQUEST_INITIALIZER \
    { AL4SAN_SUCCESS }

#endif
