/* The CUDA back end, on the driver API. */
#include "drivers/cuda/cuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GRID_YZ = 65535 };

typedef struct cuda_device {
    const cuda_api *api;
    const mr_kernel_table *table;
    CUdevice id;
    CUcontext context; /* the primary one: shared with whoever else uses the GPU in this process */
    int index, sm;
    bool debug;
    pthread_mutex_t lock; /* modules and functions */
    CUmodule *modules;    /* one a source, loaded when first needed */
    CUfunction *functions;
    char modules_dir[3800];
} cuda_device;

/* ---- The context is current only while we work ------------------------------------------------
 */

static mr_status enter(const cuda_device *dev, mr_drv_error *error) {
    CUresult code = dev->api->cuCtxPushCurrent_(dev->context);
    return code ? cuda_fail(dev->api, error, "cuCtxPushCurrent", code) : MR_OK;
}

static void leave(const cuda_device *dev) {
    CUcontext old;
    dev->api->cuCtxPopCurrent_(&old);
}

/* ---- Finding and opening ----------------------------------------------------------------------
 */

static int attribute(const cuda_api *api, CUdevice id, CUdevice_attribute what) {
    int value = 0;
    return api->cuDeviceGetAttribute_(&value, what, id) ? 0 : value;
}

static void describe(const cuda_api *api, CUdevice id, int index, mr_device_info *info) {
    size_t memory = 0;
    char name[100] = "";
    api->cuDeviceTotalMem_(&memory, id);
    if (api->cuDeviceGetName_(name, sizeof name, id))
        snprintf(name, sizeof name, "CUDA device");
    *info = (mr_device_info){.available = true,
                             .caps = MR_CAP_KERNELS,
                             .view_align = 1,
                             .memory = memory,
                             .max_buffer = memory};
    snprintf(info->uri, sizeof info->uri, "cuda:%d", index);
    snprintf(info->name, sizeof info->name, "%s, sm_%d%d", name,
             attribute(api, id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             attribute(api, id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

/* The number of devices, or 0 with the reason. */
static int count_devices(const cuda_api **api, mr_drv_error *error) {
    int count = 0;
    *api = cuda_load(error);
    if (!*api)
        return 0;
    CUresult code = (*api)->cuDeviceGetCount_(&count);
    if (code) {
        cuda_fail(*api, error, "cuDeviceGetCount", code);
        return 0;
    }
    if (count <= 0)
        mr_drv_fail(error, MR_UNAVAILABLE, "the CUDA driver finds no device");
    return count < 0 ? 0 : count;
}

static void cuda_list(const mr_drv_host *host, mr_drv_emit emit, void *context) {
    mr_device_info info = {.uri = "cuda:", .view_align = 1};
    const cuda_api *api;
    mr_drv_error error;
    int count = count_devices(&api, &error);
    (void)host;
    if (!count) {
        snprintf(info.reason, sizeof info.reason, "%.500s", error.text);
        emit(context, &info);
    }
    for (int i = 0; i < count; i++) {
        CUdevice id;
        if (api->cuDeviceGet_(&id, i))
            continue;
        describe(api, id, i, &info);
        emit(context, &info);
    }
}

static void cuda_close(void *device) {
    cuda_device *dev = device;
    mr_drv_error ignored;
    if (dev->context) {
        if (enter(dev, &ignored) == MR_OK) {
            for (size_t i = 0; dev->modules && i < dev->table->num_sources; i++)
                if (dev->modules[i])
                    dev->api->cuModuleUnload_(dev->modules[i]);
            leave(dev);
        }
        /* what was retained is released, whatever happened in between */
        dev->api->cuDevicePrimaryCtxRelease_(dev->id);
    }
    pthread_mutex_destroy(&dev->lock);
    free(dev->modules);
    free(dev->functions);
    free(dev);
}

static mr_status read_options(cuda_device *dev, const mr_drv_option *options, size_t num_options,
                              mr_drv_error *error) {
    for (size_t i = 0; i < num_options; i++) {
        const char *value = options[i].value;
        if (!strcmp(options[i].key, "debug")) {
            if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
                return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                                   "option debug: '%s' is neither 0 nor 1", value);
            dev->debug = *value == '1';
        } else if (!strcmp(options[i].key, "modules")) {
            snprintf(dev->modules_dir, sizeof dev->modules_dir, "%s", value);
        } else {
            return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                               "unknown option '%s' (there are: debug, modules)", options[i].key);
        }
    }
    return MR_OK;
}

static mr_status set_up(cuda_device *dev, mr_drv_error *error) {
    const cuda_api *api;
    int count = count_devices(&api, error);
    if (!count)
        return MR_UNAVAILABLE;
    dev->api = api;
    if (dev->index >= count)
        return mr_drv_fail(error, MR_NOT_FOUND, "no CUDA device %d, there are %d", dev->index,
                           count);
    CUresult code = api->cuDeviceGet_(&dev->id, dev->index);
    if (code)
        return cuda_fail(api, error, "cuDeviceGet", code);
    dev->sm = 10 * attribute(api, dev->id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
              attribute(api, dev->id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    dev->modules = calloc(dev->table->num_sources + 1, sizeof(CUmodule));
    dev->functions = calloc(dev->table->num_kernels + 1, sizeof(CUfunction));
    if (!dev->modules || !dev->functions)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    CUcontext context = NULL;
    code = api->cuDevicePrimaryCtxRetain_(&context, dev->id);
    if (code)
        return cuda_fail(api, error, "cuDevicePrimaryCtxRetain", code);
    dev->context = context;
    mr_status status = enter(dev, error); /* a context that is dead already shows here */
    if (status == MR_OK)
        leave(dev);
    return status;
}

static mr_status cuda_open(const mr_drv_host *host, const char *target,
                           const mr_drv_option *options, size_t num_options, void **device,
                           mr_drv_error *error) {
    char *end;
    errno = 0;
    long index = strtol(target, &end, 10);
    if (target[0] < '0' || target[0] > '9' || *end || errno || index > 9999)
        return mr_drv_fail(error, MR_INVALID_ARGUMENT, "'%s' is no device number", target);
    cuda_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    pthread_mutex_init(&dev->lock, NULL);
    dev->table = host->kernels;
    dev->index = (int)index;
    snprintf(dev->modules_dir, sizeof dev->modules_dir, "%s", host->library_dir);
    mr_status status = read_options(dev, options, num_options, error);
    if (status == MR_OK)
        status = set_up(dev, error);
    if (status != MR_OK) {
        cuda_close(dev);
        return status == MR_DEVICE_ERROR || status == MR_DEVICE_LOST ? MR_UNAVAILABLE : status;
    }
    *device = dev;
    return MR_OK;
}

static void cuda_info(void *device, mr_device_info *info) {
    cuda_device *dev = device;
    describe(dev->api, dev->id, dev->index, info);
}

/* ---- Memory -----------------------------------------------------------------------------------
 */

static mr_status cuda_alloc(void *device, size_t bytes, void **mem, mr_drv_error *error) {
    cuda_device *dev = device;
    CUdeviceptr p = 0;
    mr_status status = enter(dev, error);
    if (status != MR_OK)
        return status;
    CUresult code = dev->api->cuMemAlloc_(&p, bytes);
    leave(dev);
    if (code)
        return cuda_fail(dev->api, error, "cuMemAlloc", code);
    *mem = (void *)(uintptr_t)p;
    return MR_OK;
}

static void cuda_free(void *device, void *mem) {
    cuda_device *dev = device;
    mr_drv_error ignored;
    if (enter(dev, &ignored) != MR_OK)
        return;
    dev->api->cuMemFree_((CUdeviceptr)(uintptr_t)mem);
    leave(dev);
}

static mr_status cuda_copy(void *device, void *mem, size_t offset, void *host, size_t bytes,
                           mr_sync_dir dir, mr_drv_error *error) {
    cuda_device *dev = device;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)mem + offset;
    mr_status status = enter(dev, error);
    if (status != MR_OK)
        return status;
    CUresult code = dir == MR_TO_DEVICE ? dev->api->cuMemcpyHtoD_(p, host, bytes)
                                        : dev->api->cuMemcpyDtoH_(host, p, bytes);
    /* A copy to the GPU may return when it has read the host's memory; our streams do not wait for
     * it by themselves. */
    if (!code && dir == MR_TO_DEVICE)
        code = dev->api->cuStreamSynchronize_(NULL);
    leave(dev);
    return code ? cuda_fail(dev->api, error, "copying a buffer", code) : MR_OK;
}

/* ---- Queues and launches ----------------------------------------------------------------------
 */

typedef struct pending {
    struct pending *next;
    mr_counters *counters;
    CUevent begin, end;
} pending;

typedef struct {
    CUstream stream;
    pending *first;
} cuda_queue;

static mr_status cuda_queue_open(void *device, void **queue, mr_drv_error *error) {
    cuda_device *dev = device;
    cuda_queue *q = calloc(1, sizeof *q);
    if (!q)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    mr_status status = enter(dev, error);
    if (status == MR_OK) {
        CUresult code = dev->api->cuStreamCreate_(&q->stream, CU_STREAM_NON_BLOCKING);
        leave(dev);
        if (code)
            status = cuda_fail(dev->api, error, "cuStreamCreate", code);
    }
    if (status != MR_OK) {
        free(q);
        return status;
    }
    *queue = q;
    return MR_OK;
}

/* With the context current. */
static void drop(const cuda_device *dev, pending *p) {
    if (p->begin)
        dev->api->cuEventDestroy_(p->begin);
    if (p->end)
        dev->api->cuEventDestroy_(p->end);
    free(p);
}

static void cuda_queue_close(void *device, void *queue) {
    cuda_device *dev = device;
    cuda_queue *q = queue;
    mr_drv_error ignored;
    bool current = enter(dev, &ignored) == MR_OK;
    while (q->first) {
        pending *p = q->first;
        q->first = p->next;
        if (current)
            drop(dev, p);
        else
            free(p);
    }
    if (current) {
        dev->api->cuStreamDestroy_(q->stream);
        leave(dev);
    }
    free(q);
}

static mr_status find_function(cuda_device *dev, const mr_kernel *kernel, CUfunction *out,
                               mr_drv_error *error) {
    CUfunction *slot = &dev->functions[kernel - dev->table->kernels];
    CUmodule *module = &dev->modules[kernel->source];
    mr_status status = MR_OK;
    pthread_mutex_lock(&dev->lock);
    if (!*module)
        status = cuda_module(dev->api, dev->modules_dir, kernel->file, dev->sm, module, error);
    if (status == MR_OK && !*slot) {
        CUresult code = dev->api->cuModuleGetFunction_(slot, *module, kernel->name);
        if (code)
            status = cuda_fail(dev->api, error, "cuModuleGetFunction", code);
    }
    *out = *slot;
    pthread_mutex_unlock(&dev->lock);
    return status;
}

/* With the context current. */
static mr_status start(cuda_device *dev, cuda_queue *q, const mr_kernel *kernel,
                       const mr_drv_arg *args, const size_t *global, const size_t *local,
                       pending *p, mr_drv_error *error) {
    const cuda_api *api = dev->api;
    CUdeviceptr pointers[MR_KERNEL_MAX_ARGS];
    void *values[MR_KERNEL_MAX_ARGS];
    CUfunction function;
    mr_status status = find_function(dev, kernel, &function, error);
    if (status != MR_OK)
        return status;
    for (size_t i = 0; i < kernel->num_args; i++) {
        values[i] = (void *)&args[i].u; /* all members of the union start there */
        if (args[i].kind == MR_ARG_BUFFER) {
            pointers[i] = args[i].view.mem
                              ? (CUdeviceptr)(uintptr_t)args[i].view.mem + args[i].view.offset
                              : 0;
            values[i] = &pointers[i];
        }
    }
    CUresult code = api->cuEventCreate_(&p->begin, CU_EVENT_DEFAULT);
    if (!code)
        code = api->cuEventCreate_(&p->end, CU_EVENT_DEFAULT);
    if (!code)
        code = api->cuEventRecord_(p->begin, q->stream);
    if (!code)
        code = api->cuLaunchKernel_(function, (unsigned)(global[0] / local[0]), (unsigned)global[1],
                                    (unsigned)global[2], (unsigned)local[0], 1, 1, 0, q->stream,
                                    values, NULL);
    if (!code)
        code = api->cuEventRecord_(p->end, q->stream);
    if (!code && dev->debug)
        code = api->cuStreamSynchronize_(q->stream);
    return code ? cuda_fail(api, error, "the launch", code) : MR_OK;
}

static mr_status cuda_launch(void *device, void *queue, const mr_kernel *kernel,
                             const mr_drv_arg *args, const size_t global[3], const size_t local[3],
                             mr_counters *counters, mr_drv_error *error) {
    cuda_device *dev = device;
    cuda_queue *q = queue;
    if (global[1] > MAX_GRID_YZ || global[2] > MAX_GRID_YZ)
        return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                           "global is %zu x %zu x %zu, at most %d in y and z", global[0], global[1],
                           global[2], MAX_GRID_YZ);
    pending *p = calloc(1, sizeof *p);
    if (!p)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    p->counters = counters;
    mr_status status = enter(dev, error);
    if (status != MR_OK) {
        free(p);
        return status;
    }
    status = start(dev, q, kernel, args, global, local, p, error);
    if (status == MR_OK) {
        p->next = q->first;
        q->first = p;
    } else {
        drop(dev, p);
    }
    leave(dev);
    return status;
}

static mr_status cuda_finish(void *device, void *queue, mr_drv_error *error) {
    cuda_device *dev = device;
    cuda_queue *q = queue;
    mr_status status = enter(dev, error);
    if (status != MR_OK)
        return status;
    CUresult code = dev->api->cuStreamSynchronize_(q->stream);
    if (code)
        status = cuda_fail(dev->api, error, "the work", code);
    while (q->first) {
        pending *p = q->first;
        float ms = 0;
        q->first = p->next;
        if (!code && !dev->api->cuEventElapsedTime_(&ms, p->begin, p->end))
            p->counters->host_ns += (uint64_t)((double)ms * 1e6);
        drop(dev, p);
    }
    leave(dev);
    return status;
}

const mr_driver *mr_driver_entry(void);
const mr_driver *mr_driver_entry(void) {
    static const mr_driver driver = {
        .abi = MR_DRIVER_ABI,
        .scheme = "cuda",
        .deferred = true,
        .list = cuda_list,
        .open = cuda_open,
        .close = cuda_close,
        .info = cuda_info,
        .alloc = cuda_alloc,
        .free = cuda_free,
        .copy = cuda_copy,
        .queue_open = cuda_queue_open,
        .queue_close = cuda_queue_close,
        .launch = cuda_launch,
        .finish = cuda_finish,
    };
    return &driver;
}
