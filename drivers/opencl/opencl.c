/* The OpenCL back end (1.2 and later): devices, memory, launches. */
#include "drivers/opencl/opencl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64, NO_PLATFORM = -1001 };

/* ---- Errors -----------------------------------------------------------------------------------
 */

const char *ocl_error_name(cl_int code) {
    switch (code) {
    case CL_DEVICE_NOT_FOUND:
        return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE:
        return "CL_DEVICE_NOT_AVAILABLE";
    case CL_COMPILER_NOT_AVAILABLE:
        return "CL_COMPILER_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
        return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
        return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
        return "CL_BUILD_PROGRAM_FAILURE";
    case CL_MISALIGNED_SUB_BUFFER_OFFSET:
        return "CL_MISALIGNED_SUB_BUFFER_OFFSET";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
        return "CL_EXEC_STATUS_ERROR";
    case CL_INVALID_VALUE:
        return "CL_INVALID_VALUE";
    case CL_INVALID_BUFFER_SIZE:
        return "CL_INVALID_BUFFER_SIZE";
    case CL_INVALID_KERNEL_NAME:
        return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_WORK_GROUP_SIZE:
        return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_OPERATION:
        return "CL_INVALID_OPERATION";
    default:
        return "OpenCL error";
    }
}

mr_status ocl_fail(mr_drv_error *error, const char *what, cl_int code) {
    mr_status status = MR_DEVICE_ERROR;
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
        code == CL_INVALID_BUFFER_SIZE)
        status = MR_OUT_OF_MEMORY;
    if (code == CL_DEVICE_NOT_AVAILABLE)
        status = MR_DEVICE_LOST;
    return mr_drv_fail(error, status, "%s failed: %s (%d)", what, ocl_error_name(code), code);
}

/* ---- Finding devices --------------------------------------------------------------------------
 */

void ocl_device_text(cl_device_id id, cl_device_info what, char *text, size_t size) {
    text[0] = 0;
    if (clGetDeviceInfo(id, what, size, text, NULL))
        text[0] = 0;
    text[size - 1] = 0;
}

/*
 * pocl, the OpenCL of CPUs, learns cores and memory through hwloc, and calls abort() when it learns
 * nothing: in a bare chroot or container without /sys. A process must not end because it asked.
 */
static bool topology_known(void) {
    return access("/sys/devices/system/cpu", R_OK) == 0 || getenv("HWLOC_SYNTHETIC") ||
           getenv("HWLOC_XMLFILE");
}

/* All devices of all platforms, or 0 with the reason. */
static size_t find_devices(cl_device_id ids[MAX_DEVICES], char *reason, size_t size) {
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint num_platforms = 0;
    size_t count = 0;
    if (!topology_known()) {
        snprintf(reason, size, "/sys is not mounted; OpenCL on the CPU would end the process");
        return 0;
    }
    cl_int code = clGetPlatformIDs(MAX_PLATFORMS, platforms, &num_platforms);
    if (code == NO_PLATFORM || (code == CL_SUCCESS && num_platforms == 0)) {
        snprintf(reason, size, "no OpenCL platform is installed (no ICD)");
        return 0;
    }
    if (code != CL_SUCCESS) {
        snprintf(reason, size, "clGetPlatformIDs failed: %s (%d)", ocl_error_name(code), code);
        return 0;
    }
    if (num_platforms > MAX_PLATFORMS)
        num_platforms = MAX_PLATFORMS;
    for (cl_uint p = 0; p < num_platforms && count < MAX_DEVICES; p++) {
        cl_uint n = 0;
        code = clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, (cl_uint)(MAX_DEVICES - count),
                              ids + count, &n);
        if (code == CL_SUCCESS)
            count += n < MAX_DEVICES - count ? n : MAX_DEVICES - count;
    }
    if (!count)
        snprintf(reason, size, "%u OpenCL platform(s) without a device", num_platforms);
    return count;
}

static size_t view_align(cl_device_id id) {
    cl_uint bits = 0; /* the one alignment that OpenCL counts in bits */
    if (clGetDeviceInfo(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL) || bits < 8)
        return 1;
    return bits / 8;
}

static void describe(cl_device_id id, unsigned index, mr_device_info *info) {
    cl_ulong memory = 0, largest = 0;
    clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    *info = (mr_device_info){.available = true,
                             .caps = MR_CAP_KERNELS,
                             .view_align = (uint32_t)view_align(id),
                             .memory = memory,
                             .max_buffer = largest};
    snprintf(info->uri, sizeof info->uri, "opencl:%u", index);
    ocl_device_text(id, CL_DEVICE_NAME, info->name, sizeof info->name);
}

static void ocl_list(const mr_drv_host *host, mr_drv_emit emit, void *context) {
    cl_device_id ids[MAX_DEVICES];
    mr_device_info info = {.uri = "opencl:", .view_align = 1};
    size_t count = find_devices(ids, info.reason, sizeof info.reason);
    (void)host;
    if (!count)
        emit(context, &info);
    for (size_t i = 0; i < count; i++) {
        describe(ids[i], (unsigned)i, &info);
        emit(context, &info);
    }
}

/* ---- Opening ----------------------------------------------------------------------------------
 */

static void ocl_close(void *device) {
    ocl_device *dev = device;
    for (size_t i = 0; i < dev->table->num_kernels; i++)
        if (dev->kernels && dev->kernels[i])
            clReleaseKernel(dev->kernels[i]);
    for (size_t i = 0; i < dev->table->num_sources; i++)
        if (dev->programs && dev->programs[i])
            clReleaseProgram(dev->programs[i]);
    if (dev->transfer)
        clReleaseCommandQueue(dev->transfer);
    if (dev->context)
        clReleaseContext(dev->context);
    pthread_mutex_destroy(&dev->lock);
    free(dev->programs);
    free(dev->kernels);
    free(dev);
}

/* $XDG_CACHE_HOME/millrace or ~/.cache/millrace, made if need be; "" when there is no place. */
static void default_cache(char *dir, size_t size) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    dir[0] = 0;
    if (base && base[0] == '/') {
        snprintf(dir, size, "%s", base);
    } else if (home && home[0] == '/') {
        snprintf(dir, size, "%s/.cache", home);
    } else {
        return;
    }
    if (mkdir(dir, 0755) && errno != EEXIST) {
        dir[0] = 0;
        return;
    }
    size_t length = strlen(dir);
    snprintf(dir + length, size - length, "/millrace");
    if (mkdir(dir, 0755) && errno != EEXIST)
        dir[0] = 0;
}

static mr_status parse_index(const char *target, unsigned *index, mr_drv_error *error) {
    char *end;
    errno = 0;
    unsigned long v = strtoul(target, &end, 10);
    if (target[0] < '0' || target[0] > '9' || *end || errno || v > 9999)
        return mr_drv_fail(error, MR_INVALID_ARGUMENT, "'%s' is no device number", target);
    *index = (unsigned)v;
    return MR_OK;
}

static mr_status set_up(ocl_device *dev, mr_drv_error *error) {
    cl_bool little = CL_FALSE;
    cl_int code;
    clGetDeviceInfo(dev->id, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
    if (!little)
        return mr_drv_fail(error, MR_UNAVAILABLE, "the device is big-endian");
    dev->programs = calloc(dev->table->num_sources + 1, sizeof *dev->programs);
    dev->kernels = calloc(dev->table->num_kernels + 1, sizeof *dev->kernels);
    if (!dev->programs || !dev->kernels)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    dev->context = clCreateContext(NULL, 1, &dev->id, NULL, NULL, &code);
    if (!dev->context)
        return ocl_fail(error, "clCreateContext", code);
    dev->transfer = clCreateCommandQueue(dev->context, dev->id, 0, &code);
    if (!dev->transfer)
        return ocl_fail(error, "clCreateCommandQueue", code);
    dev->align = view_align(dev->id);
    return ocl_probe(dev, error);
}

static mr_status ocl_open(const mr_drv_host *host, const char *target, const mr_drv_option *options,
                          size_t num_options, void **device, mr_drv_error *error) {
    cl_device_id ids[MAX_DEVICES];
    char reason[256], cache_dir[3900];
    bool cache_always = false;
    unsigned index = 0;
    mr_status status = parse_index(target, &index, error);
    if (status != MR_OK)
        return status;
    default_cache(cache_dir, sizeof cache_dir);
    for (size_t i = 0; i < num_options; i++) {
        if (strcmp(options[i].key, "cache") != 0)
            return mr_drv_fail(error, MR_INVALID_ARGUMENT, "unknown option '%s' (there is: cache)",
                               options[i].key);
        snprintf(cache_dir, sizeof cache_dir, "%s",
                 strcmp(options[i].value, "off") ? options[i].value : "");
        cache_always = *cache_dir != 0;
        struct stat info;
        if (*cache_dir && (stat(cache_dir, &info) || !S_ISDIR(info.st_mode)))
            return mr_drv_fail(error, MR_INVALID_ARGUMENT, "option cache: '%s' is no folder",
                               cache_dir);
    }
    size_t count = find_devices(ids, reason, sizeof reason);
    if (!count)
        return mr_drv_fail(error, MR_UNAVAILABLE, "%s", reason);
    if (index >= count)
        return mr_drv_fail(error, MR_NOT_FOUND, "no OpenCL device %u, there are %zu", index, count);
    ocl_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    pthread_mutex_init(&dev->lock, NULL);
    dev->table = host->kernels;
    memcpy(dev->cache_dir, cache_dir, sizeof cache_dir);
    dev->cache_always = cache_always;
    dev->id = ids[index];
    dev->index = index;
    status = set_up(dev, error);
    if (status != MR_OK) {
        ocl_close(dev);
        return status == MR_DEVICE_ERROR ? MR_UNAVAILABLE : status;
    }
    *device = dev;
    return MR_OK;
}

static void ocl_info(void *device, mr_device_info *info) {
    ocl_device *dev = device;
    describe(dev->id, dev->index, info);
}

/* ---- Memory -----------------------------------------------------------------------------------
 */

static mr_status ocl_alloc(void *device, size_t bytes, void **mem, mr_drv_error *error) {
    ocl_device *dev = device;
    cl_int code;
    *mem = clCreateBuffer(dev->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    return *mem ? MR_OK : ocl_fail(error, "clCreateBuffer", code);
}

static void ocl_free(void *device, void *mem) {
    (void)device;
    clReleaseMemObject(mem);
}

static mr_status ocl_copy(void *device, void *mem, size_t offset, void *host, size_t bytes,
                          mr_sync_dir dir, mr_drv_error *error) {
    ocl_device *dev = device;
    cl_int code =
        dir == MR_TO_DEVICE
            ? clEnqueueWriteBuffer(dev->transfer, mem, CL_TRUE, offset, bytes, host, 0, NULL, NULL)
            : clEnqueueReadBuffer(dev->transfer, mem, CL_TRUE, offset, bytes, host, 0, NULL, NULL);
    /* OpenCL 1.2 lets a blocking write return once it has read the host's memory. */
    if (!code && dir == MR_TO_DEVICE)
        code = clFinish(dev->transfer);
    return code ? ocl_fail(error, "copying a buffer", code) : MR_OK;
}

/* ---- Queues and launches ----------------------------------------------------------------------
 */

/* A launch that finish() has not seen yet, with what it needs until then. */
typedef struct pending {
    struct pending *next;
    cl_event event;
    mr_counters *counters;
    const char *name;
    cl_mem views[MR_KERNEL_MAX_ARGS];
    size_t num_views;
} pending;

typedef struct {
    cl_command_queue queue;
    pending *first;
} ocl_queue;

static mr_status ocl_queue_open(void *device, void **queue, mr_drv_error *error) {
    ocl_device *dev = device;
    cl_int code;
    ocl_queue *q = calloc(1, sizeof *q);
    if (!q)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    q->queue = clCreateCommandQueue(dev->context, dev->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (!q->queue) {
        free(q);
        return ocl_fail(error, "clCreateCommandQueue", code);
    }
    *queue = q;
    return MR_OK;
}

static void drop(pending *p) {
    for (size_t i = 0; i < p->num_views; i++)
        clReleaseMemObject(p->views[i]);
    if (p->event)
        clReleaseEvent(p->event);
    free(p);
}

static void ocl_queue_close(void *device, void *queue) {
    ocl_queue *q = queue;
    (void)device;
    clFinish(q->queue);
    while (q->first) {
        pending *p = q->first;
        q->first = p->next;
        drop(p);
    }
    clReleaseCommandQueue(q->queue);
    free(q);
}

static bool same_place(const mr_drv_view *a, const mr_drv_view *b) {
    return a->mem == b->mem && a->offset == b->offset;
}

/*
 * The memory object of argument i. A view that starts where the device allows is a sub-buffer; any
 * other is a copy, *copied is set, and what the kernel writes has to be copied back.
 */
static mr_status view_of(ocl_device *dev, ocl_queue *q, const mr_kernel *kernel,
                         const mr_drv_arg *args, size_t i, cl_mem made[], bool copied[], pending *p,
                         mr_drv_error *error) {
    const mr_drv_view *v = &args[i].view;
    cl_int code = CL_SUCCESS;
    copied[i] = false;
    made[i] = v->mem;
    if (!v->mem || v->offset == 0)
        return MR_OK;
    for (size_t k = 0; k < i; k++)
        if (args[k].kind == MR_ARG_BUFFER && same_place(v, &args[k].view) &&
            v->bytes <= args[k].view.bytes) {
            made[i] = made[k];
            return MR_OK;
        }
    if (v->offset % dev->align == 0) {
        cl_buffer_region region = {v->offset, v->bytes};
        made[i] = clCreateSubBuffer(v->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                    &region, &code);
        if (!made[i])
            return ocl_fail(error, "clCreateSubBuffer", code);
        p->views[p->num_views++] = made[i];
        return MR_OK;
    }
    for (size_t k = 0; k < kernel->num_args; k++)
        if (k != i && args[k].kind == MR_ARG_BUFFER && args[k].view.mem == v->mem &&
            !same_place(v, &args[k].view) && (kernel->args[i].written || kernel->args[k].written))
            return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                               "arguments %s and %s are different places of one buffer, one is "
                               "written, and offset "
                               "%zu is no multiple of this device's %zu",
                               kernel->args[i].name, kernel->args[k].name, v->offset, dev->align);
    made[i] = clCreateBuffer(dev->context, CL_MEM_READ_WRITE, v->bytes, NULL, &code);
    if (!made[i])
        return ocl_fail(error, "clCreateBuffer (aligned copy)", code);
    p->views[p->num_views++] = made[i];
    code = clEnqueueCopyBuffer(q->queue, v->mem, made[i], v->offset, 0, v->bytes, 0, NULL, NULL);
    if (code)
        return ocl_fail(error, "clEnqueueCopyBuffer", code);
    copied[i] = true;
    return MR_OK;
}

static cl_int set_arg(cl_kernel kernel, cl_uint i, const mr_drv_arg *arg, const cl_mem *mem) {
    switch (arg->kind) {
    case MR_ARG_BUFFER:
        return clSetKernelArg(kernel, i, sizeof *mem, *mem ? mem : NULL);
    case MR_ARG_I32:
        return clSetKernelArg(kernel, i, 4, &arg->u.i32);
    case MR_ARG_U32:
        return clSetKernelArg(kernel, i, 4, &arg->u.u32);
    case MR_ARG_I64:
        return clSetKernelArg(kernel, i, 8, &arg->u.i64);
    case MR_ARG_U64:
        return clSetKernelArg(kernel, i, 8, &arg->u.u64);
    case MR_ARG_F32:
        return clSetKernelArg(kernel, i, 4, &arg->u.f32);
    }
    return CL_INVALID_VALUE;
}

/* With dev->lock held. */
static mr_status enqueue(ocl_device *dev, ocl_queue *q, const mr_kernel *kernel,
                         const mr_drv_arg *args, const cl_mem *mems, const size_t *global,
                         const size_t *local, pending *p, mr_drv_error *error) {
    cl_kernel *object = &dev->kernels[kernel - dev->table->kernels];
    cl_int code;
    if (!*object) {
        cl_program program;
        mr_status status = ocl_program(dev, kernel->source, &program, error);
        if (status != MR_OK)
            return status;
        *object = clCreateKernel(program, kernel->name, &code);
        if (!*object)
            return ocl_fail(error, "clCreateKernel", code);
    }
    for (size_t i = 0; i < kernel->num_args; i++) {
        code = set_arg(*object, (cl_uint)i, &args[i], &mems[i]);
        if (code)
            return mr_drv_fail(error, MR_DEVICE_ERROR, "argument %zu (%s) refused: %s (%d)", i,
                               kernel->args[i].name, ocl_error_name(code), code);
    }
    code = clEnqueueNDRangeKernel(q->queue, *object, 3, NULL, global, local, 0, NULL, &p->event);
    return code ? ocl_fail(error, "clEnqueueNDRangeKernel", code) : MR_OK;
}

static mr_status ocl_launch(void *device, void *queue, const mr_kernel *kernel,
                            const mr_drv_arg *args, const size_t global[3], const size_t local[3],
                            mr_counters *counters, mr_drv_error *error) {
    ocl_device *dev = device;
    ocl_queue *q = queue;
    cl_mem mems[MR_KERNEL_MAX_ARGS] = {NULL};
    bool copied[MR_KERNEL_MAX_ARGS] = {false};
    mr_status status = MR_OK;
    pending *p = calloc(1, sizeof *p);
    if (!p)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    p->counters = counters;
    p->name = kernel->name;
    for (size_t i = 0; status == MR_OK && i < kernel->num_args; i++)
        if (args[i].kind == MR_ARG_BUFFER)
            status = view_of(dev, q, kernel, args, i, mems, copied, p, error);
    if (status == MR_OK) {
        pthread_mutex_lock(&dev->lock);
        status = enqueue(dev, q, kernel, args, mems, global, local, p, error);
        pthread_mutex_unlock(&dev->lock);
    }
    for (size_t i = 0; status == MR_OK && i < kernel->num_args; i++) {
        if (!copied[i] || !kernel->args[i].written)
            continue;
        const mr_drv_view *v = &args[i].view;
        cl_int code =
            clEnqueueCopyBuffer(q->queue, mems[i], v->mem, 0, v->offset, v->bytes, 0, NULL, NULL);
        if (code)
            status = ocl_fail(error, "clEnqueueCopyBuffer", code);
    }
    if (status != MR_OK) { /* what was put in the queue may still use the views */
        clFinish(q->queue);
        drop(p);
        return status;
    }
    p->next = q->first;
    q->first = p;
    clFlush(q->queue);
    return status;
}

static mr_status ocl_finish(void *device, void *queue, mr_drv_error *error) {
    ocl_queue *q = queue;
    mr_status status = MR_OK;
    (void)device;
    cl_int code = clFinish(q->queue);
    if (code)
        status = ocl_fail(error, "clFinish", code);
    while (q->first) {
        pending *p = q->first;
        cl_int state = CL_COMPLETE;
        cl_ulong begin = 0, end = 0;
        q->first = p->next;
        clGetEventInfo(p->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (state < 0 && status == MR_OK) {
            status = ocl_fail(error, p->name, state);
        } else if (state == CL_COMPLETE &&
                   !clGetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_START, sizeof begin,
                                            &begin, NULL) &&
                   !clGetEventProfilingInfo(p->event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                            NULL)) {
            p->counters->host_ns += end - begin;
        }
        drop(p);
    }
    return status;
}

const mr_driver *mr_driver_entry(void);
const mr_driver *mr_driver_entry(void) {
    static const mr_driver driver = {
        .abi = MR_DRIVER_ABI,
        .scheme = "opencl",
        .deferred = true,
        .list = ocl_list,
        .open = ocl_open,
        .close = ocl_close,
        .info = ocl_info,
        .alloc = ocl_alloc,
        .free = ocl_free,
        .copy = ocl_copy,
        .queue_open = ocl_queue_open,
        .queue_close = ocl_queue_close,
        .launch = ocl_launch,
        .finish = ocl_finish,
    };
    return &driver;
}
