/* The library and the programs of seed 000 section 3.2, as they are printed but for misprints
 * (tests/compat/README.md), with a computation whose result is known. Exit code 77: no OpenCL device. */
#include <CL/cl_heddle.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    cl_context ctx;
    cl_command_queue queue;
} libMATH_info;

typedef struct {
    cl_event event;
} libMATH_async_t;

typedef struct {
    int N;
    float* vector;
} libMATH_compute_args;

static atomic_int computed;

/* 3.2.1 */
static libMATH_info* libMATH_initialize(cl_context ctx) {
    libMATH_info* info;
    cl_uint n_devs;

    clGetContextInfo(ctx, CL_CONTEXT_NUM_DEVICES, sizeof(cl_uint), &n_devs, NULL);

    if (n_devs != 1) {
        printf("This library can only work with one device");
        return NULL;
    }

    cl_device_id dev[1];
    clGetContextInfo(ctx, CL_CONTEXT_DEVICES, sizeof(cl_device_id*), &dev, NULL);

    cl_device_exec_capabilities exec;
    clGetDeviceInfo(dev[0], CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(cl_device_exec_capabilities), &exec,
                    NULL);

    if (!(exec & CL_EXEC_NATIVE_KERNEL_OMPSS)) {
        printf("Implementation does not allow execution of OmpSs kernels\n");
        return NULL;
    }

    info = malloc(sizeof(*info));
    info->ctx = ctx;
    info->queue = clCreateCommandQueueWithProperties(ctx, dev[0], 0, NULL);

    return info;
}

static void libMATH_finalize(libMATH_info* info) {
    clReleaseCommandQueue(info->queue);
    clReleaseContext(info->ctx);
    free(info);
}

static void libMATH_compute_kernel(void* a) {
    libMATH_compute_args* args = (libMATH_compute_args*)a;
    for (int i = 0; i < args->N; i++) args->vector[i] *= 2;
    atomic_fetch_add(&computed, 1);
}

/* 3.2.2 */
static void libMATH_compute_sync(libMATH_info* info, int N, float* vector) {
    libMATH_async_t* h = malloc(sizeof(libMATH_async_t));

    libMATH_compute_args args;
    args.N = N;
    args.vector = vector;

    clEnqueueNativeKernelWithType(info->queue, &libMATH_compute_kernel, &args, sizeof(args), 0, NULL, NULL,
                                  CL_NATIVE_KERNEL_OMPSS, 0, NULL, &h->event);

    clWaitForEvents(1, &h->event);
    clReleaseEvent(h->event);
    free(h);
}

static libMATH_async_t* libMATH_compute_async(libMATH_info* info, int N, float* vector) {
    libMATH_async_t* h = malloc(sizeof(libMATH_async_t));

    libMATH_compute_args args;
    args.N = N;
    args.vector = vector;

    clEnqueueNativeKernelWithType(info->queue, &libMATH_compute_kernel, &args, sizeof(args), 0, NULL, NULL,
                                  CL_NATIVE_KERNEL_OMPSS, 0, NULL, &h->event);

    return h;
}

static void libMATH_async_wait(libMATH_async_t* h) {
    clWaitForEvents(1, &h->event);
    clReleaseEvent(h->event);
    free(h);
}

#define COUNT 1000

static int all_are(const float* vector, float expected) {
    for (int i = 0; i < COUNT; i++)
        if (vector[i] != expected) return 0;
    return 1;
}

/* 3.2.4 */
static int simple(void) {
    cl_platform_id platform = 0;
    cl_device_id device;
    cl_context ctx;
    libMATH_info* info_MATH = NULL;
    float vector[COUNT];
    for (int i = 0; i < COUNT; i++) vector[i] = 1;

    clGetPlatformIDs(1, &platform, 0);
    if (platform == 0 || clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, 0) != CL_SUCCESS) return 77;
    ctx = clCreateContext(0, 1, &device, 0, 0, 0);

    info_MATH = libMATH_initialize(ctx);
    if (info_MATH == NULL) return 1;

    libMATH_async_t* handler;
    handler = libMATH_compute_async(info_MATH, COUNT, vector);

    libMATH_compute_sync(info_MATH, COUNT, vector);

    libMATH_async_wait(handler);

    libMATH_finalize(info_MATH);
    return all_are(vector, 4) && atomic_load(&computed) == 2 ? 0 : 2;
}

/* 3.2.5 */
static int advanced(void) {
    cl_platform_id platform = 0;
    cl_device_id device;
    cl_context ctx0, ctx1;
    libMATH_info *info_MATH = NULL, *info_HELP = NULL;
    float vector[2][COUNT];
    for (int i = 0; i < COUNT; i++) vector[0][i] = vector[1][i] = 1;

    clGetPlatformIDs(1, &platform, 0);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, 0);
    cl_uint compute_units = 0;
    clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(compute_units), &compute_units, 0);
    if (compute_units < 2) return 77;

    cl_device_partition_property props[3];

    props[0] = CL_DEVICE_PARTITION_EQUALLY;
    props[1] = compute_units / 2;
    props[2] = 0;

    cl_uint num_dev = 2;
    cl_device_id subdevices[2];

    if (clCreateSubDevices(device, props, num_dev, subdevices, 0) != CL_SUCCESS) return 3;

    ctx0 = clCreateContext(0, 1, &subdevices[0], 0, 0, 0);
    ctx1 = clCreateContext(0, 1, &subdevices[1], 0, 0, 0);

    info_MATH = libMATH_initialize(ctx0);
    info_HELP = libMATH_initialize(ctx1);
    if (info_MATH == NULL || info_HELP == NULL) return 4;

    libMATH_async_t* math = libMATH_compute_async(info_MATH, COUNT, vector[0]);
    libMATH_async_t* help = libMATH_compute_async(info_HELP, COUNT, vector[1]);
    libMATH_async_wait(math);
    libMATH_async_wait(help);

    libMATH_finalize(info_MATH);
    libMATH_finalize(info_HELP);
    clReleaseDevice(subdevices[0]);
    clReleaseDevice(subdevices[1]);
    return all_are(vector[0], 2) && all_are(vector[1], 2) ? 0 : 5;
}

int main(void) {
    const int first = simple();
    return first != 0 ? first : advanced();
}
