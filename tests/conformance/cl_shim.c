/*
 * Laid over an OpenCL library with LD_PRELOAD: platforms that are not there, devices that refuse,
 * compilers that fail, and alignment rules that this machine's device does not have (cases 63, 64).
 * CL_SHIM says which:
 *
 *   no_icd        clGetPlatformIDs gives -1001, as a loader without any platform does
 *   no_device     platforms without devices
 *   bad_build     every build fails, with a log
 *   align=BYTES   views have to start at multiples of BYTES, else CL_MISALIGNED_SUB_BUFFER_OFFSET
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *mode(void) {
    const char *m = getenv("CL_SHIM");
    return m ? m : "";
}

static size_t shim_align(void) {
    return strncmp(mode(), "align=", 6) ? 0 : strtoul(mode() + 6, NULL, 10);
}

/* The back end loads OpenCL for itself alone, so the next library in line would not have it. */
static void *real(const char *name) { return dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), name); }
#define REAL(f) ((__typeof__(f) *)real(#f))

cl_int clGetPlatformIDs(cl_uint size, cl_platform_id *ids, cl_uint *count) {
    if (!strcmp(mode(), "no_icd"))
        return -1001;
    return REAL(clGetPlatformIDs)(size, ids, count);
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *ids,
                      cl_uint *count) {
    if (!strcmp(mode(), "no_device"))
        return CL_DEVICE_NOT_FOUND;
    return REAL(clGetDeviceIDs)(platform, type, size, ids, count);
}

cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
                      void(CL_CALLBACK *done)(cl_program, void *), void *data) {
    if (!strcmp(mode(), "bad_build"))
        return CL_BUILD_PROGRAM_FAILURE;
    return REAL(clBuildProgram)(program, n, ids, options, done, data);
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id id, cl_program_build_info what,
                             size_t size, void *value, size_t *used) {
    static const char log[] = "error: unknown target CPU 'generic'";
    if (!strcmp(mode(), "bad_build") && what == CL_PROGRAM_BUILD_LOG && size >= sizeof log) {
        memcpy(value, log, sizeof log);
        return CL_SUCCESS;
    }
    return REAL(clGetProgramBuildInfo)(program, id, what, size, value, used);
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void *value,
                       size_t *used) {
    cl_uint bits = (cl_uint)(8 * shim_align());
    if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN && bits && size >= sizeof bits) {
        memcpy(value, &bits, sizeof bits);
        return CL_SUCCESS;
    }
    return REAL(clGetDeviceInfo)(id, what, size, value, used);
}

/* The same bytes as a buffer of their own: how a device with a looser rule than this one's would
 * see them. */
static cl_mem alias(cl_mem buffer, cl_mem_flags flags, const cl_buffer_region *region,
                    cl_int *code) {
    cl_context context;
    cl_device_id id;
    REAL(clGetMemObjectInfo)(buffer, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    REAL(clGetContextInfo)(context, CL_CONTEXT_DEVICES, sizeof id, &id, NULL);
    cl_command_queue queue = REAL(clCreateCommandQueue)(context, id, 0, code);
    char *host = REAL(clEnqueueMapBuffer)(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                          region->origin, region->size, 0, NULL, NULL, code);
    REAL(clEnqueueUnmapMemObject)(queue, buffer, host, 0, NULL, NULL);
    REAL(clFinish)(queue);
    REAL(clReleaseCommandQueue)(queue);
    return REAL(clCreateBuffer)(context, flags | CL_MEM_USE_HOST_PTR, region->size, host, code);
}

cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                         const void *region, cl_int *code) {
    size_t align = shim_align();
    if (align && ((const cl_buffer_region *)region)->origin % align) {
        *code = CL_MISALIGNED_SUB_BUFFER_OFFSET;
        return NULL;
    }
    cl_mem view = REAL(clCreateSubBuffer)(buffer, flags, type, region, code);
    return !view && align && *code == CL_MISALIGNED_SUB_BUFFER_OFFSET
               ? alias(buffer, flags, region, code)
               : view;
}
