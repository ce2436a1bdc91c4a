/* Flags of task arguments, and the macros that make tasks of functions (AL4SAN 1.1).
 *
 * Flags are constants here, the same on every engine; AL4SAN's are variables that change with the runtime.
 * docs/AL4SAN.md tells for each what it does, or that it is refused. */
#ifndef HEDDLE_COMPAT_AL4SAN_TASK_H
#define HEDDLE_COMPAT_AL4SAN_TASK_H

#include "../../compat/al4san/struct.h"

#define ARG_END 0
/* As wide as a pointer, which stands in its place where an argument is AL4SAN_ADDR(). */
#define AL4SAN_DEP ((size_t)101)

/* How a task uses an argument. */
#define AL4SAN_INPUT 0x1
#define AL4SAN_OUTPUT 0x2
#define AL4SAN_INOUT 0x3
#define AL4SAN_VALUE 0x4
#define AL4SAN_SCRATCH 0x5
#define AL4SAN_NODEP 0x6
#define AL4SAN_REDUX 0x7
/* Added to those. */
#define AL4SAN_COMMUTE 0x10
#define AL4SAN_LOCALITY 0x20
#define AL4SAN_NOLOCALITY 0
#define AL4SAN_ACCUMULATOR 0x40
#define AL4SAN_NOACCUMULATOR 0
#define AL4SAN_GATHERV 0x80
#define AL4SAN_NOGATHERV 0
#define AL4SAN_REGION_0 0x100
#define AL4SAN_REGION_1 0x200
#define AL4SAN_REGION_2 0x400
#define AL4SAN_REGION_3 0x800
#define AL4SAN_REGION_4 0x1000
#define AL4SAN_REGION_5 0x2000
#define AL4SAN_REGION_6 0x4000
#define AL4SAN_REGION_7 0x8000
#define AL4SAN_REGION_L (AL4SAN_REGION_0 | AL4SAN_REGION_1 | AL4SAN_REGION_2)
#define AL4SAN_REGION_D (AL4SAN_REGION_3 | AL4SAN_REGION_4)
#define AL4SAN_REGION_U (AL4SAN_REGION_5 | AL4SAN_REGION_6 | AL4SAN_REGION_7)
#define AL4SAN_AFFINITY 0x10000
#define AL4SAN_DONT_TRACK 0x20000
#define AL4SAN_SSEND 0x40000
#define AL4SAN_FULL_TILE 0x80000
#define AL4SAN_REF 0x100000
#define AL4SAN_PASSED_BY_REF 0x200000

/* What is said of a task: the flag, a value, its size. */
#define AL4SAN_PRIORITY 0x1000001
#define AL4SAN_LABEL 0x1000002
#define AL4SAN_COLOR 0x1000003
#define AL4SAN_FLOPS 0x1000004
#define AL4SAN_TAG 0x1000005
#define AL4SAN_TAG_ONLY 0x1000006
#define AL4SAN_WORKER_ORDER 0x1000007
#define AL4SAN_HYPERVISOR_TAG 0x1000008
#define AL4SAN_NODE_SELECTION_POLICY 0x1000009
#define AL4SAN_CUDA_FLG 0x100000a
#define AL4SAN_CUDA_ASYNC_FLG 0x100000b
#define AL4SAN_THREAD_COUNT 0x100000c
#define AL4SAN_EXECUTE_ON_NODE 0x100000d
#define AL4SAN_SCHED_CTX 0x100000e
#define AL4SAN_POSSIBLY_PARALLEL 0x100000f
#define AL4SAN_EXECUTE_ON_DATA 0x1000010
#define AL4SAN_EXECUTE_ON_WORKER 0x1000011
#define AL4SAN_EXECUTE_WHERE 0x1000012
#define AL4SAN_LOCK_TO_THREAD 0x1000013
#define AL4SAN_LOCK_TO_THREAD_MASK 0x1000014
#define AL4SAN_THREAD_SET_TO_MANUAL_SCHEDULING 0x1000015
#define AL4SAN_SEQUENCE 0x1000016
#define AL4SAN_DATA_ARRAY 0x1000017
#define AL4SAN_DATA_MODE_ARRAY 0x1000018
#define AL4SAN_CL_ARGS 0x1000019
#define AL4SAN_CL_ARGS_NFREE 0x100001a
#define AL4SAN_TASK_DEPS_ARRAY 0x100001b
#define AL4SAN_CALLBACK 0x100001c
#define AL4SAN_CALLBACK_WITH_ARG 0x100001d
#define AL4SAN_CALLBACK_ARG 0x100001e
#define AL4SAN_PROLOGUE_CALLBACK 0x100001f
#define AL4SAN_PROLOGUE_CALLBACK_ARG 0x1000020
#define AL4SAN_PROLOGUE_CALLBACK_POP 0x1000021
#define AL4SAN_PROLOGUE_CALLBACK_POP_ARG 0x1000022

#ifdef __cplusplus
extern "C" {
#endif

/** What a task is made of; `function` is NULL where there is one for GPUs alone. */
typedef struct {
    void (*function)(AL4SAN_arg_list*);
    const char* name;
} heddle_al4san_task_t;

#ifdef __cplusplus
}
#define HEDDLE_AL4SAN_EXTERN extern "C"
#else
#define HEDDLE_AL4SAN_EXTERN extern
#endif

/* At file scope. AL4SAN_TASK_HEADER is for other files than the one with the task. */
#define AL4SAN_TASK_HEADER(name) HEDDLE_AL4SAN_EXTERN heddle_al4san_task_t al4san_task_##name;
#define AL4SAN_TASK_CPU(name, cpu_function) \
    void cpu_function(AL4SAN_arg_list*);    \
    AL4SAN_TASK_HEADER(name)                \
    heddle_al4san_task_t al4san_task_##name = {cpu_function, #name};
#define AL4SAN_TASK_GPU(name, gpu_function) \
    AL4SAN_TASK_HEADER(name)                \
    heddle_al4san_task_t al4san_task_##name = {NULL, #name};
#define AL4SAN_TASK_CPU_GPU(name, cpu_function, gpu_function) AL4SAN_TASK_CPU(name, cpu_function)
#define AL4SAN_Task_CPU(name, cpu_function) AL4SAN_TASK_CPU(name, cpu_function)

/* One for each of AL4SAN's back ends. */
#define AL4SAN_TASK(name) &al4san_task_##name, &al4san_task_##name, &al4san_task_##name, &al4san_task_##name

/* A tile as an argument: its address, and whose it is. AL4SAN_ADDR(descriptor, type[, row[, column]]) */
#define AL4SAN_ADDR(...) \
    HEDDLE_AL4SAN_PICK(__VA_ARGS__, AL4SAN_ADDR4, AL4SAN_ADDR3, AL4SAN_ADDR2, )(__VA_ARGS__)
#define HEDDLE_AL4SAN_PICK(_1, _2, _3, _4, name, ...) name
#define AL4SAN_ADDR4(desc, type, m, n) ((type*)AL4SAN_Data_getaddr(desc, m, n)), (desc)->schedopt
#define AL4SAN_ADDR3(desc, type, m) AL4SAN_ADDR4(desc, type, m, 0)
#define AL4SAN_ADDR2(desc, type) AL4SAN_ADDR4(desc, type, 0, 0)

/* What a function that inserts tasks says of its data first: for MPI, where a rank leaves out what it has no
 * part in. */
#define AL4SAN_BEGIN_ACCESS_DECLARATION
#define AL4SAN_ACCESS_R(...)
#define AL4SAN_ACCESS_W(...)
#define AL4SAN_ACCESS_RW(...)
#define AL4SAN_RANK_CHANGED(rank)
#define AL4SAN_END_ACCESS_DECLARATION

#endif
