/*
 * A stand-in for libcuda.so.1 on machines without a GPU: the driver functions that the cuda back
 * end uses, kernels run by the CPU as they were compiled as C. It keeps the driver's rules (a
 * current context, matched retains, live handles), counts what is alive, and fails where a test
 * tells it to.
 *
 *   fake_cuda_fail(function, nth, code)   the nth next call of that function fails (1: the next)
 *   fake_cuda_fault(code)                 the next kernel faults; its context is dead until it was
 * released fake_cuda_live()                      retains + live allocations, streams, events,
 * modules
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "host/core/kernels.h"
#include "kernels/mr_portable.h"

void fake_cuda_fail(const char *function, int nth, int code);
void fake_cuda_fault(int code);
long fake_cuda_live(void);

enum { MAX_STACK = 64, MEMORY_BYTES = 1 << 30, SM_MAJOR = 9, SM_MINOR = 0 };

static struct {
    pthread_mutex_t lock;
    long live;
    long retains;
    long lost; /* what lived in a healthy context when it went */
    char failing[64];
    int nth, code;
    int fault; /* of the next kernel */
    int dead;  /* sticky: what every call with the context returns */
    size_t used;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local CUcontext stack[MAX_STACK];
static _Thread_local int depth;
static CUcontext const the_context = (CUcontext)&fake;

void fake_cuda_fail(const char *function, int nth, int code) {
    pthread_mutex_lock(&fake.lock);
    snprintf(fake.failing, sizeof fake.failing, "%s", function);
    fake.nth = nth;
    fake.code = code;
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_fault(int code) { fake.fault = code; }

long fake_cuda_live(void) {
    pthread_mutex_lock(&fake.lock);
    long live = fake.live + fake.retains + fake.lost;
    pthread_mutex_unlock(&fake.lock);
    return live;
}

static CUresult ordered_to_fail(const char *function) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fake.lock);
    if (fake.nth && !strcmp(fake.failing, function) && --fake.nth == 0)
        result = (CUresult)fake.code;
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static void count(long change) {
    pthread_mutex_lock(&fake.lock);
    fake.live += change;
    pthread_mutex_unlock(&fake.lock);
}

/* Every function that works in a context begins with this. */
#define IN_CONTEXT(name)                                                                           \
    do {                                                                                           \
        CUresult why_ = ordered_to_fail(name);                                                     \
        if (why_)                                                                                  \
            return why_;                                                                           \
        if (depth == 0 || fake.retains == 0)                                                       \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
        if (fake.dead)                                                                             \
            return (CUresult)fake.dead;                                                            \
    } while (0)
#define ANYWHERE(name)                                                                             \
    do {                                                                                           \
        CUresult why_ = ordered_to_fail(name);                                                     \
        if (why_)                                                                                  \
            return why_;                                                                           \
    } while (0)

CUresult cuInit(unsigned flags) {
    (void)flags;
    ANYWHERE("cuInit");
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **text) {
    static _Thread_local char name[32];
    switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
        *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
        break;
    case CUDA_ERROR_OUT_OF_MEMORY:
        *text = "CUDA_ERROR_OUT_OF_MEMORY";
        break;
    case CUDA_ERROR_NO_DEVICE:
        *text = "CUDA_ERROR_NO_DEVICE";
        break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        *text = "CUDA_ERROR_NO_BINARY_FOR_GPU";
        break;
    default:
        snprintf(name, sizeof name, "CUDA_ERROR_%d", (int)code);
        *text = name;
    }
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char **text) {
    (void)code;
    *text = "as the test ordered";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
    ANYWHERE("cuDeviceGetCount");
    *n = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int index) {
    ANYWHERE("cuDeviceGet");
    if (index != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 7; /* not the index: mixing them up shows */
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    if (device != 7)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)size, "Fake GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device) {
    if (device != 7)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? SM_MAJOR
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? SM_MINOR
                                                                    : 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    *bytes = MEMORY_BYTES;
    return device == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ANYWHERE("cuDevicePrimaryCtxRetain");
    if (device != 7)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fake.lock);
    fake.retains++;
    pthread_mutex_unlock(&fake.lock);
    *context = the_context;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fake.lock);
    if (device != 7 || fake.retains == 0)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (--fake.retains == 0) { /* all that lived in the context is gone with it */
        fake.lost += fake.dead ? 0 : fake.live;
        fake.dead = 0;
        fake.live = 0;
        fake.used = 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    ANYWHERE("cuCtxPushCurrent");
    if (context != the_context || depth == MAX_STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    IN_CONTEXT("cuModuleLoadData");
    *module = malloc(1);
    count(1);
    return image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleUnload(CUmodule module) {
    IN_CONTEXT("cuModuleUnload");
    free(module);
    count(-1);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    IN_CONTEXT("cuModuleGetFunction");
    (void)module;
    for (size_t i = 0; i < mr_kernels_builtin.num_kernels; i++)
        if (!strcmp(mr_kernels_builtin.kernels[i].name, name)) {
            *function = (CUfunction)&mr_kernels_builtin.kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuMemAlloc(CUdeviceptr *p, size_t bytes) {
    IN_CONTEXT("cuMemAlloc");
    pthread_mutex_lock(&fake.lock);
    size_t *block = bytes <= MEMORY_BYTES - fake.used
                        ? aligned_alloc(256, (bytes + 256 + 255) & ~(size_t)255)
                        : NULL;
    if (block) {
        *block = bytes;
        fake.used += bytes;
        fake.live++;
    }
    pthread_mutex_unlock(&fake.lock);
    *p = block ? (CUdeviceptr)(uintptr_t)block + 256 : 0;
    return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr p) {
    IN_CONTEXT("cuMemFree");
    size_t *block = (size_t *)(uintptr_t)(p - 256);
    pthread_mutex_lock(&fake.lock);
    fake.used -= *block;
    fake.live--;
    pthread_mutex_unlock(&fake.lock);
    free(block);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
    IN_CONTEXT("cuMemcpyHtoD");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
    IN_CONTEXT("cuMemcpyDtoH");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    IN_CONTEXT("cuStreamCreate");
    (void)flags;
    *stream = malloc(1);
    count(1);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
    IN_CONTEXT("cuStreamDestroy");
    free(stream);
    count(-1);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    IN_CONTEXT("cuStreamSynchronize");
    (void)stream;
    if (fake.fault) { /* a fault shows when somebody waits, and stays */
        fake.dead = fake.fault;
        fake.fault = 0;
        return (CUresult)fake.dead;
    }
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    IN_CONTEXT("cuEventCreate");
    (void)flags;
    *event = malloc(1);
    count(1);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    if (fake.dead) {
        free(event);
        return (CUresult)fake.dead;
    }
    IN_CONTEXT("cuEventDestroy");
    free(event);
    count(-1);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    IN_CONTEXT("cuEventRecord");
    return event && stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
    IN_CONTEXT("cuEventElapsedTime");
    *ms = 0.001f;
    return begin && end ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra) {
    IN_CONTEXT("cuLaunchKernel");
    const mr_kernel *kernel = (const mr_kernel *)function;
    mr_work w = {.groups = {gx, gy, gz}, .lanes = bx};
    if (by != 1 || bz != 1 || shared || !stream || extra || !gx || !gy || !gz || bx > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.fault)
        return CUDA_SUCCESS; /* it is on its way */
    for (w.group[2] = 0; w.group[2] < gz; w.group[2]++)
        for (w.group[1] = 0; w.group[1] < gy; w.group[1]++)
            for (w.group[0] = 0; w.group[0] < gx; w.group[0]++)
                kernel->run(params, &w);
    return CUDA_SUCCESS;
}
