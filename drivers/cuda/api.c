/* Opening libcuda.so.1, which comes with the GPU's driver and not with the toolkit. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "drivers/cuda/cuda.h"

#define NAME_(f) #f
#define NAME(f) NAME_(f)

static struct {
    pthread_mutex_t lock;
    bool loaded;
    cuda_api api;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* *where becomes the function of that name. */
static bool resolve(void *handle, void *where, const char *name, mr_drv_error *error) {
    void *symbol = dlsym(handle, name);
    if (!symbol) {
        mr_drv_fail(error, MR_UNAVAILABLE, "libcuda.so.1 has no %s: the driver is too old", name);
        return false;
    }
    memcpy(where, &symbol, sizeof symbol);
    return true;
}

static bool load_library(cuda_api *api, mr_drv_error *error) {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        mr_drv_fail(error, MR_UNAVAILABLE, "the CUDA driver is not installed: %s", dlerror());
        return false;
    }
#define RESOLVE(f) resolve(handle, &api->f##_, NAME(f), error) &&
    bool good = MR_CUDA_FUNCTIONS(RESOLVE) true;
#undef RESOLVE
    if (!good)
        dlclose(handle);
    return good;
}

const cuda_api *cuda_load(mr_drv_error *error) {
    const cuda_api *api = NULL;
    pthread_mutex_lock(&library.lock);
    if (!library.loaded)
        library.loaded = load_library(&library.api, error);
    if (library.loaded) {
        CUresult code = library.api.cuInit_(0);
        if (code == CUDA_SUCCESS)
            api = &library.api;
        else
            cuda_fail(&library.api, error, "cuInit", code);
    }
    pthread_mutex_unlock(&library.lock);
    return api;
}

mr_status cuda_fail(const cuda_api *api, mr_drv_error *error, const char *what, CUresult code) {
    const char *name = NULL, *text = NULL;
    mr_status status = MR_DEVICE_ERROR;
    if (api->cuGetErrorName_(code, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    if (api->cuGetErrorString_(code, &text) != CUDA_SUCCESS || !text)
        text = "";
    switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        status = MR_OUT_OF_MEMORY;
        break;
    /* after these the context is of no more use to anybody */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
        status = MR_DEVICE_LOST;
        break;
    default:
        break;
    }
    return mr_drv_fail(error, status, "%s failed: %s (%d)%s%s", what, name, (int)code,
                       *text ? ": " : "", text);
}
