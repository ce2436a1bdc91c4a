/* A program that is not linked with the layer and has it all the same: OPENCL_LAYERS names it. Exit code 77:
 * no OpenCL device. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS)
        return 77;
    if (clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueNativeKernelWithType") != NULL) return 0;
    fputs("the loader has not taken the layer\n", stderr);
    return 1;
}
