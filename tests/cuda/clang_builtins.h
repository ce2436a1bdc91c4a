// What NVRTC knows by itself, as far as kernels here use it, for clang without CUDA's headers.
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __constant__ __attribute__((constant))

typedef unsigned long size_t;
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct uchar4 {
    unsigned char x, y, z, w;
};
static __device__ float2 make_float2(float x, float y) {
    return {x, y};
}
static __device__ uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
    return {x, y, z, w};
}

struct Index {
    unsigned x, y, z;
};
#define HEDDLE_INDEX(name)                                                                           \
    (Index{(unsigned)__nvvm_read_ptx_sreg_##name##_x(), (unsigned)__nvvm_read_ptx_sreg_##name##_y(), \
           (unsigned)__nvvm_read_ptx_sreg_##name##_z()})
#define blockIdx HEDDLE_INDEX(ctaid)
#define blockDim HEDDLE_INDEX(ntid)
#define threadIdx HEDDLE_INDEX(tid)

extern "C" __device__ float logf(float);
extern "C" __device__ float expf(float);
extern "C" __device__ float powf(float, float);
extern "C" __device__ float fmaxf(float, float);
extern "C" __device__ float fminf(float, float);
extern "C" __device__ float __fsub_rn(float, float);
extern "C" __device__ float __fadd_rn(float, float);
