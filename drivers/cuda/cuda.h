/* What the files of the CUDA back end share: the driver API, resolved when it is first needed. */
#ifndef DRIVERS_CUDA_CUDA_H
#define DRIVERS_CUDA_CUDA_H

#include <cuda.h>

#include "drivers/driver.h"

/* The functions we use, under the names that cuda.h maps them to (cuMemAlloc is cuMemAlloc_v2). */
#define MR_CUDA_FUNCTIONS(X)                                                                       \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxPushCurrent)                                                                            \
    X(cuCtxPopCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventElapsedTime)                                                                          \
    X(cuLaunchKernel)

#define MR_CUDA_MEMBER(f) __typeof__(f) *f##_;
typedef struct cuda_api {
    MR_CUDA_FUNCTIONS(MR_CUDA_MEMBER)
} cuda_api;
#undef MR_CUDA_MEMBER

/* The driver library, initialised; NULL with the reason. */
const cuda_api *cuda_load(mr_drv_error *error);

/* "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"; the status fits the code. */
mr_status cuda_fail(const cuda_api *api, mr_drv_error *error, const char *what, CUresult code);

/*
 * The module of a kernel source: DIR/<name of the .cl>.fatbin. An image without code for the device
 * is named, with what it has and what was wanted.
 */
mr_status cuda_module(const cuda_api *api, const char *dir, const char *source, int sm,
                      CUmodule *module, mr_drv_error *error);

#endif
