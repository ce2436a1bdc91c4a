/* OpenCL with kernels of other runtimes, and sub-devices of chosen CPUs (seed 000 sections 2.1.2 and 3.2).
 *
 * A program that is linked with -lheddle_cl (before -lOpenCL; `pkg-config heddle_cl`) has them on each CPU
 * device of each driver, in the same contexts, queues and buffers as kernels in OpenCL C. So has one that
 * runs with OPENCL_LAYERS=.../libheddle_cl.so. All functions may be called by any thread. docs/OPENCL.md. */
#ifndef HEDDLE_COMPAT_CL_HEDDLE_H
#define HEDDLE_COMPAT_CL_HEDDLE_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The runtime that a native kernel is written for. */
typedef cl_bitfield cl_native_kernel_type;
#define CL_NATIVE_KERNEL_HEDDLE ((cl_native_kernel_type)1 << 16)
#define CL_NATIVE_KERNEL_OPENMP ((cl_native_kernel_type)1 << 17)
#define CL_NATIVE_KERNEL_STARPU ((cl_native_kernel_type)1 << 18)
#define CL_NATIVE_KERNEL_TBB ((cl_native_kernel_type)1 << 19)
#define CL_NATIVE_KERNEL_QUARK ((cl_native_kernel_type)1 << 20)
#define CL_NATIVE_KERNEL_PARSEC ((cl_native_kernel_type)1 << 21)
#define CL_NATIVE_KERNEL_OMPSS CL_NATIVE_KERNEL_HEDDLE

/** Of CL_DEVICE_EXECUTION_CAPABILITIES: this process has that runtime. */
#define CL_EXEC_NATIVE_KERNEL_HEDDLE ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_HEDDLE)
#define CL_EXEC_NATIVE_KERNEL_OPENMP ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_OPENMP)
#define CL_EXEC_NATIVE_KERNEL_STARPU ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_STARPU)
#define CL_EXEC_NATIVE_KERNEL_TBB ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_TBB)
#define CL_EXEC_NATIVE_KERNEL_QUARK ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_QUARK)
#define CL_EXEC_NATIVE_KERNEL_PARSEC ((cl_device_exec_capabilities)CL_NATIVE_KERNEL_PARSEC)
#define CL_EXEC_NATIVE_KERNEL_OMPSS CL_EXEC_NATIVE_KERNEL_HEDDLE

/** For clCreateSubDevices. By names: compute units of the device by their numbers, from 0, ended by
 * CL_PARTITION_BY_NAMES_LIST_END_HEDDLE: one sub-device. By CPU set: pointers to cpu_set_t, ended by 0: a
 * sub-device for each. A set with a CPU that is not the device's: CL_INVALID_DEVICE_PARTITION_COUNT. */
#define CL_DEVICE_PARTITION_BY_NAMES_HEDDLE 0x4D01
#define CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE 0x4D02
#define CL_PARTITION_BY_NAMES_LIST_END_HEDDLE ((cl_device_partition_property)-1)
/** For clGetDeviceInfo of a CPU device: a cpu_set_t, where its kernels run. */
#define CL_DEVICE_CPU_SET_HEDDLE 0x4D10

/** The status of the event of a kernel that has thrown a C++ exception. */
#define CL_NATIVE_KERNEL_FAILED_HEDDLE (-1234)

/** As clEnqueueNativeKernel, with a function that is written for the runtime `type`, and runs on its workers,
 * on the CPUs of the queue's device. CL_INVALID_OPERATION where the device or this process has no such
 * runtime. A kernel that fails gives its event a negative status; commands that wait for that event do not
 * run, and theirs is CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST. */
extern cl_int clEnqueueNativeKernelWithType(cl_command_queue command_queue,
                                            void(CL_CALLBACK* user_func)(void*), void* args, size_t cb_args,
                                            cl_uint num_mem_objs, const cl_mem* mem_list,
                                            const void** args_mem_loc, cl_native_kernel_type type,
                                            cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                            cl_event* event);

/** In a kernel, by any of its threads: it has failed, with this negative status. `args` is what the kernel
 * was called with. CL_INVALID_VALUE for one that is not running, or a status that is not negative. */
extern cl_int clSetNativeKernelStatusHEDDLE(const void* args, cl_int status);

#ifdef __cplusplus
}
#endif

#endif
