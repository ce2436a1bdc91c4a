/* A kernel of another runtime in queues of the first driver's CPU device, in order and not: it runs, its
 * event is complete, and what stands behind it comes after it. Also for drivers that do all work of a queue
 * when it is flushed (Oclgrind). Ends with 77 where there is no such device. */
#include <CL/cl_heddle.h>
#include <stdio.h>

static int runs;

static void CL_CALLBACK run(void* unused) {
    (void)unused;
    ++runs;
}

static int failed(const char* what, cl_int code) {
    fprintf(stderr, "%s: %d\n", what, (int)code);
    return 1;
}

static int in_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties) {
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &code);
    if (code != CL_SUCCESS) return failed("no queue", code);
    for (int i = 0; i < 5; ++i) {
        const int before = runs;
        cl_event event = NULL;
        code = clEnqueueNativeKernelWithType(queue, run, NULL, 0, 0, NULL, NULL, CL_NATIVE_KERNEL_HEDDLE, 0,
                                             NULL, &event);
        if (code != CL_SUCCESS) return failed("no kernel", code);
        code = i % 2 == 0 ? clWaitForEvents(1, &event) : clFinish(queue);
        if (code != CL_SUCCESS || runs != before + 1) return failed("it has not run", code);
        cl_int status = CL_QUEUED;
        code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        if (code != CL_SUCCESS || status != CL_COMPLETE) return failed("it is not complete", status);
        clReleaseEvent(event);
    }
    clReleaseCommandQueue(queue);
    return 0;
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS)
        return 77;
    cl_int code = CL_SUCCESS;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code != CL_SUCCESS) return failed("no context", code);
    return in_queue(context, device, 0) || in_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}
